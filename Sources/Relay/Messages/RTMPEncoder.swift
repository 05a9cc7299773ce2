package import Media
package import NIOCore
import RTMP

/// Encodes frames to RTMP chunks once for all viewers: one chunk size, message stream 1, absolute timestamps.
package struct RTMPEncoder: ReversibleEncoder {
    package init() {}
    private let chunks = ChunkEncoder(chunkSize: ServerSession.outgoingChunkSize)

    package func encodedLength(_ frame: Frame) -> Int {
        self.chunks.encodedLength(
            payload: frame.payload.readableBytes, timestamp: frame.wireTimestamp,
            chunkStream: Self.chunkStream(frame.kind))
    }

    package func encode(_ frame: Frame, into bytes: UnsafeMutableRawBufferPointer) -> Int {
        let message = Message(
            type: MessageType(rawValue: frame.kind.rawValue), streamID: 1, timestamp: frame.wireTimestamp,
            payload: frame.payload)
        return self.chunks.encode(message, chunkStream: Self.chunkStream(frame.kind), into: bytes)
    }

    package func setStreamID(_ streamID: UInt32, inHeader header: UnsafeMutableRawBufferPointer) {
        ChunkEncoder.setStreamID(streamID, inHeader: header)
    }

    package func payload(of encoded: UnsafeRawBufferPointer, headerLength: Int) -> ByteBuffer {
        self.chunks.payload(of: encoded, headerLength: headerLength)
    }

    /// One chunk stream per kind, as players expect; 2 is the protocol's own and 3 carries commands.
    private static func chunkStream(_ kind: Frame.Kind) -> UInt32 {
        switch kind {
        case .audio: 4
        case .data: 5
        case .video: 6
        }
    }
}
