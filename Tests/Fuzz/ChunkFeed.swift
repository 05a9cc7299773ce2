import NIOCore
import RTMP

/// Feeds a peer's bytes to a chunk decoder and checks its memory after each piece.
enum ChunkFeed {
    /// A connection's limits, lowered where inputs of a few kilobytes would not reach them.
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

    /// Passes each message to `receive` until that or the decoder throws. Returns the error.
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
            // A header is at most 18 bytes; the decoder has consumed everything else.
            expect(decoder.waitingBytes < 18, "\(decoder.waitingBytes) bytes wait")
            Self.check(&decoder)
        }
        expect(decoder.receivedBytes == UInt64(bytes.count), "\(decoder.receivedBytes) of \(bytes.count) bytes counted")
        return nil
    }

    /// Checks that memory follows the bytes received, never the lengths announced.
    private static func check(_ decoder: inout ChunkDecoder) {
        let firstPieces = Self.limits.partialMessages * (16 << 10)
        let received = Int(decoder.receivedBytes)
        // Four times the bytes received, rounded up to a power of two, and a chunk stream's state for each header of 8 bytes.
        let held = decoder.heldBytes()
        expect(held <= firstPieces + 8 * received + 128 * (received / 8), "holds \(held) of \(received) bytes")
    }
}
