/// The limits on everything that a peer controls on the RTMP wire.
///
/// Read by a connection's decoder and session, through ``SharedLimits``; a plain value. Exceeding one throws ``RTMPError`` (``StreamAddressError`` for names and
/// queries) and ends only that connection.
package struct Limits: Sendable, Equatable {
    /// Bytes of one video message (type 9) or aggregate message (type 22), tag header not counted.
    package var videoMessageBytes = 15 << 20
    /// Bytes of one audio message (type 8), tag header not counted.
    package var audioMessageBytes = 1 << 20
    /// Bytes of any other message: data, commands, control. A publisher's larger data message is dropped.
    package var dataMessageBytes = 64 << 10
    /// Messages under assembly at the same time on one connection.
    package var partialMessages = 64
    /// Bytes of all messages under assembly together: the largest of each kind at once.
    package var partialBytes = 17 << 20
    /// Bytes of any one message until a publish is accepted.
    package var messageBytesBeforePublish = 64 << 10
    /// Bytes held for one connection until a publish is accepted: messages under assembly, bytes not decoded yet, and the state of chunk
    /// streams.
    package var bytesBeforePublish = 256 << 10
    /// Chunk stream ids that one connection may use; the header of each is kept.
    package var chunkStreams = 4096
    /// Message streams (createStream) open at the same time on one connection.
    package var messageStreams = 64
    /// Bytes of app and stream name together, without their queries.
    package var nameBytes = 256
    /// Bytes of both queries together, which carry credentials.
    package var queryBytes = 4096
    /// Depth and size of AMF values.
    package var amf = AMFLimits()

    /// Bytes of tag header on top of the media limits, which count the frame. FLV 10.1 §E.4.3, Enhanced RTMP with its ModEx and multitrack
    /// fields.
    package static let tagHeaderBytes = 64

    package init() {}

    /// The limit for a message of this type, in bytes.
    package func messageBytes(_ type: MessageType) -> Int {
        switch type {
        case .audio: audioMessageBytes + Self.tagHeaderBytes
        case .video, .aggregate: videoMessageBytes + Self.tagHeaderBytes
        default: dataMessageBytes
        }
    }
}

/// Limits that a server's connections have in common, so that none holds its own.
package final class SharedLimits: Sendable {
    package let values: Limits

    package init(_ values: Limits) { self.values = values }
}
