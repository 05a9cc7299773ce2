import NIOCore
import RTMP

/// A peer's bytes on their way through a chunk decoder, which is held to its memory after each piece.
enum ChunkFeed {
    /// A connection's limits, with those that inputs of a few kilobytes would not reach made smaller.
    static let limits: Limits = {
        var limits = Limits()
        limits.partialBytes = 2 << 10
        limits.bytesBeforePublish = 4 << 10
        limits.messageBytesBeforePublish = 2 << 10
        limits.partialMessages = 8
        limits.chunkStreams = 32
        limits.messageStreams = 8
        return limits
    }()

    /// Hands each message on, until it or the decoder throws.
    static func read(
        _ bytes: [UInt8], _ cuts: Cuts, maySendMedia: Bool,
        _ receive: (Message, inout ChunkDecoder) throws(RTMPError) -> Void
    ) -> RTMPError? {
        var decoder = ChunkDecoder(limits: Self.limits, maySendMedia: maySendMedia)
        for piece in cuts.pieces(of: bytes) {
            decoder.append(piece)
            do throws(RTMPError) {
                while let message = try decoder.nextMessage() { try receive(message, &decoder) }
            } catch {
                expect(!"\(error)".isEmpty, "an error without words")
                return error
            }
            // A header has 18 bytes at most; whatever else there is has been taken in.
            expect(decoder.waitingBytes < 18, "\(decoder.waitingBytes) bytes wait")
            Self.check(decoder)
        }
        expect(decoder.receivedBytes == UInt64(bytes.count), "\(decoder.receivedBytes) of \(bytes.count) bytes counted")
        return nil
    }

    /// Memory follows what has come, never what was announced.
    private static func check(_ decoder: ChunkDecoder) {
        let firstPieces = Self.limits.partialMessages * (16 << 10)
        let received = Int(decoder.receivedBytes)
        // Four times what has come, to the next power of two; and what is remembered of a chunk stream for each header of 8 bytes.
        expect(decoder.heldBytes <= firstPieces + 8 * received + 128 * (received / 8), "holds \(decoder.heldBytes) of \(received) bytes")
    }
}
