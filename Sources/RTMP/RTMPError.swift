/// A peer's violation of the RTMP protocol. Ends the connection, because a chunk stream cannot be resynchronised, unless it
/// ``concernsOneMessage``.
package enum RTMPError: Error, Equatable, Sendable, CustomStringConvertible {
    /// C0/S0 named a version other than 3 (RTMP 1.0 §5.2.2).
    case unsupportedVersion(UInt8)
    /// The first bytes are an HTTP request or a TLS hello: the wrong protocol for this port.
    case notRTMP(String)
    /// A digest handshake whose answer carries the wrong digest.
    case handshakeDigestMismatch
    /// fmt 2 or 3 on a chunk stream without an earlier fmt 0 or 1 header.
    case chunkWithoutHeader(chunkStream: UInt32, format: UInt8)
    /// A new message header in the middle of an unfinished message of the same chunk stream.
    case headerInsideMessage(chunkStream: UInt32)
    case messageTooLarge(type: UInt8, length: Int, limit: Int)
    /// A message too large for a peer without an accepted publish.
    case messageTooLargeBeforePublish(type: UInt8, length: Int, limit: Int)
    /// Too many bytes held for a peer without an accepted publish.
    case tooManyBytesBeforePublish(limit: Int)
    case tooManyPartialMessages(limit: Int)
    case tooManyPartialBytes(limit: Int)
    case tooManyChunkStreams(limit: Int)
    case invalidChunkSize(UInt32)
    /// A control message (types 1–6) with fewer bytes than its layout needs.
    case shortControlMessage(type: UInt8, length: Int)
    /// An aggregate message (type 22) whose inner lengths do not fit.
    case malformedAggregate
    /// A command whose AMF cannot be read.
    case malformedCommand(AMFError)
    /// A command out of order: for example publish before connect.
    case unexpectedCommand(String)
    case tooManyMessageStreams(limit: Int)
    /// Audio, video or data on a message stream that never published.
    case mediaWithoutPublish(streamID: UInt32)

    /// Whether one message is unusable and all bytes behind it can be read: a push that runs need not end for it.
    package var concernsOneMessage: Bool {
        switch self {
        case .malformedCommand, .malformedAggregate, .mediaWithoutPublish: true
        // Without a Set Chunk Size or an Abort that the peer acts on, later bytes would be misread.
        case .shortControlMessage(let type, _): type > MessageType.abort.rawValue
        default: false
        }
    }

    package var description: String {
        switch self {
        case .unsupportedVersion(let version): "handshake names RTMP version \(version); expected 3"
        case .notRTMP(let what): "the first bytes are \(what); expected an RTMP handshake"
        case .handshakeDigestMismatch: "the handshake's digest does not match; expected an HMAC-SHA256 of the packet"
        case .chunkWithoutHeader(let id, let format): "chunk stream \(id) starts with a fmt \(format) header; expected fmt 0 or 1"
        case .headerInsideMessage(let id): "chunk stream \(id) starts a new message inside an unfinished one; expected fmt 3"
        case .messageTooLarge(let type, let length, let limit): "message type \(type) announces \(length) bytes; the limit is \(limit)"
        case .messageTooLargeBeforePublish(let type, let length, let limit):
            "message type \(type) announces \(length) bytes; the limit is \(limit) until a publish is accepted"
        case .tooManyBytesBeforePublish(let limit): "the connection holds more than \(limit) bytes before a publish is accepted"
        case .tooManyPartialMessages(let limit): "more than \(limit) unfinished messages at once"
        case .tooManyPartialBytes(let limit): "unfinished messages hold more than \(limit) bytes"
        case .tooManyChunkStreams(let limit): "more than \(limit) chunk stream ids used"
        case .invalidChunkSize(let size): "set chunk size \(size); expected 1 to 2147483647"
        case .shortControlMessage(let type, let length): "control message type \(type) has \(length) bytes; too few for its layout"
        case .malformedAggregate: "aggregate message with lengths that do not fit its body"
        case .malformedCommand(let error): "unreadable command: \(error)"
        case .unexpectedCommand(let name): "command \(name) before connect"
        case .tooManyMessageStreams(let limit): "more than \(limit) message streams open at once"
        case .mediaWithoutPublish(let id): "media on message stream \(id), which is not publishing; expected publish first"
        }
    }
}
