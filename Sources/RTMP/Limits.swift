/// Every number that a peer controls on the RTMP wire, with the bound that we hold it to.
///
/// Owned by a connection's decoder and session; a plain value. A crossed limit throws ``RTMPError`` and ends that one connection.
package struct Limits: Sendable, Equatable {
    /// Bytes of one video message (type 9) or aggregate message (type 22), tag header not counted.
    package var videoMessageBytes = 15 << 20
    /// Bytes of one audio message (type 8), tag header not counted.
    package var audioMessageBytes = 1 << 20
    /// Bytes of any other message: data, commands, control.
    package var dataMessageBytes = 64 << 10
    /// Messages that may be under assembly at the same time on one connection.
    package var partialMessages = 64
    /// Bytes that all messages under assembly may hold together: the largest of each kind at once.
    package var partialBytes = 17 << 20
    /// Bytes of any one message until a publish is accepted.
    package var messageBytesBeforePublish = 64 << 10
    /// Bytes that one connection may make the server hold until a publish is accepted: messages under assembly, bytes that wait to be
    /// decoded, and what is remembered of chunk streams.
    package var bytesBeforePublish = 256 << 10
    /// Chunk stream ids one connection may have used: each costs a remembered header.
    package var chunkStreams = 4096
    /// Message streams (createStream) open at the same time on one connection.
    package var messageStreams = 64
    /// Bytes of an app or stream name, query included.
    package var nameBytes = 256
    /// Bytes of the query that carries credentials behind a name.
    package var queryBytes = 4096
    /// Depth and size of AMF values.
    package var amf = AMFLimits()

    /// The limits of media count the frame. Its tag header (FLV 10.1 §E.4.3, Enhanced RTMP with its ModEx and multitrack fields) comes on top.
    package static let tagHeaderBytes = 64

    package init() {}

    /// The bound for a message of this type, in bytes.
    package func messageBytes(_ type: MessageType) -> Int {
        switch type {
        case .audio: audioMessageBytes + Self.tagHeaderBytes
        case .video, .aggregate: videoMessageBytes + Self.tagHeaderBytes
        default: dataMessageBytes
        }
    }
}
