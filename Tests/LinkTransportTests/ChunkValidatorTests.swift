import NIOCore
import RTMP
import TestSupport
import Testing

@testable import LinkTransport

/// The ends of chunks, found from their headers alone.
@Suite struct ChunkValidatorTests {
    private static func stream(chunkSize: Int) -> ByteBuffer {
        var bytes = ByteBuffer()
        let encoder = ChunkEncoder(chunkSize: chunkSize)
        for (index, length) in [0, 1, 127, 128, 129, 300, 1_000].enumerated() {
            let payload = ByteBuffer(repeating: UInt8(index), count: length)
            let time: UInt32 = index % 2 == 0 ? UInt32(index * 40) : 0x100_0000 + UInt32(index)
            let message = Message(type: .video, streamID: 1, timestamp: time, payload: payload)
            encoder.encode(message, chunkStream: [3, 6, 64, 319, 320, 65_599, 6][index], into: &bytes)
        }
        return bytes
    }

    private static func lengths(_ bytes: ByteBuffer, chunkSize: Int, step: Int) throws -> [Int] {
        var chunks = ChunkValidator(limits: Limits())
        try chunks.setChunkSize(UInt32(chunkSize))
        var lengths: [Int] = []
        var arrived = ByteBuffer()
        var rest = bytes
        while rest.readableBytes > 0 {
            guard var piece = rest.readSlice(length: min(step, rest.readableBytes)) else { break }
            arrived.writeBuffer(&piece)
            while let chunk = try chunks.nextChunk(in: arrived) {
                #expect(chunk.missingTimestamp == nil)
                lengths.append(chunk.length)
                arrived.moveReaderIndex(forwardBy: chunk.length)
            }
        }
        #expect(arrived.readableBytes == 0)
        return lengths
    }

    /// However the bytes are split, all the same chunks are found.
    @Test(arguments: [1, 128, 129, 60_000]) func sameChunksHoweverTheyArrive(_ chunkSize: Int) throws {
        let bytes = Self.stream(chunkSize: chunkSize)
        let whole = try Self.lengths(bytes, chunkSize: chunkSize, step: bytes.readableBytes)
        #expect(whole.reduce(0, +) == bytes.readableBytes)
        #expect(whole.count == [0, 1, 127, 128, 129, 300, 1_000].reduce(0) { $0 + max(($1 + chunkSize - 1) / chunkSize, 1) })
        for step in 1...7 { #expect(try Self.lengths(bytes, chunkSize: chunkSize, step: step) == whole) }
    }

    /// An incomplete chunk leaves no trace: asking again gives the same answer.
    @Test func askingTwiceChangesNothing() throws {
        let bytes = Self.stream(chunkSize: 128)
        var chunks = ChunkValidator(limits: Limits())
        for length in 0..<12 { #expect(try chunks.nextChunk(in: bytes.getSlice(at: 0, length: length).orThrow()) == nil) }
        #expect(try chunks.nextChunk(in: bytes)?.length == 12)
    }
}
