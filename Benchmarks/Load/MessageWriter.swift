import NIOCore
import RTMP

/// The writing half of a client connection: encodes a session's outgoing messages. A plain value.
struct MessageWriter {
    private var encoder = ChunkEncoder()

    /// Commands and control messages travel on 2 and 3, as clients do; media on chunk streams of their own.
    static let videoChunkStream: UInt32 = 6
    static let audioChunkStream: UInt32 = 4

    mutating func encode(_ message: Message, into out: inout ByteBuffer) {
        let chunkStream: UInt32 =
            switch message.type {
            case .video: Self.videoChunkStream
            case .audio: Self.audioChunkStream
            case .commandAMF0, .dataAMF0: 3
            default: 2
            }
        self.encoder.encode(message, chunkStream: chunkStream, into: &out)
    }

    mutating func setChunkSize(_ size: Int) {
        self.encoder.chunkSize = size
    }
}
