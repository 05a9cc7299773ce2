import NIOCore
import RTMP
import Testing

/// Compares the encoder with hand-written layouts, and decodes its output with our own decoder.
@Suite struct ChunkEncoderTests {
    private func encode(_ message: Message, id: UInt32, size: Int) -> [UInt8] {
        var out = ByteBuffer()
        ChunkEncoder(chunkSize: size).encode(message, chunkStream: id, into: &out)
        return Array(out.readableBytesView)
    }

    @Test func `the spec's video example comes out byte for byte`() {
        var expected = Chunks()
        expected.add(0, 4, time: 1000, length: 307, type: 9, stream: 12346, pattern(128))
        expected.add(3, 4, pattern(128, from: 128))
        expected.add(3, 4, pattern(51, from: 256))
        #expect(self.encode(Message(9, time: 1000, stream: 12346, pattern(307)), id: 4, size: 128) == expected.bytes)
    }

    @Test func `the extended timestamp is repeated on every chunk`() {
        var expected = Chunks()
        expected.add(0, 320, time: 0x0102_0304, length: 5, type: 8, stream: 1, [1, 2])
        expected.add(3, 320, extended: 0x0102_0304, [3, 4])
        expected.add(3, 320, extended: 0x0102_0304, [5])
        #expect(self.encode(Message(8, time: 0x0102_0304, [1, 2, 3, 4, 5]), id: 320, size: 2) == expected.bytes)
    }

    private static let sizes = [1, 2, 127, 128, 129, 60_000, 65536]
    private static let lengths = [0, 1, 2, 127, 128, 129, 255, 256, 257, 70_000]
    private static let times: [UInt32] = [0, 1, 0xFF_FFFE, 0xFF_FFFF, 0x100_0000, 0x8000_0000, 0xFFFF_FFFF]
    private static let ids: [UInt32] = [2, 3, 63, 64, 319, 320, 65599]

    @Test(arguments: sizes) func `what is encoded decodes again, and its length is known before`(size: Int) throws {
        let encoder = ChunkEncoder(chunkSize: size)
        let payload = pattern(70_000)
        for length in Self.lengths where length < 70_000 || size > 1000 {
            for (index, time) in Self.times.enumerated() {
                for id in length > 1000 ? [Self.ids[index]] : Self.ids {
                    let message = Message(9, time: time, stream: 1 + id << 8, Array(payload.prefix(length)))
                    var out = ByteBuffer()
                    ChunkEncoder().encode(ControlMessage.setChunkSize(UInt32(size)).message, chunkStream: 2, into: &out)
                    let before = out.readableBytes
                    encoder.encode(message, chunkStream: id, into: &out)
                    #expect(out.readableBytes - before == encoder.encodedLength(payload: length, timestamp: time, chunkStream: id))
                    var decoder = ChunkDecoder()
                    decoder.append(out)
                    #expect(try decoder.nextMessage()?.type == .setChunkSize)
                    #expect(try decoder.nextMessage() == message)
                    #expect(try decoder.nextMessage() == nil)
                    #expect(decoder.waitingBytes == 0)
                }
            }
        }
    }

    @Test func `several messages on several chunk streams follow each other`() {
        var out = ByteBuffer()
        let encoder = ChunkEncoder(chunkSize: 100)
        var expected = [control(1, 100)]
        encoder.encode(expected[0], chunkStream: 2, into: &out)
        for (index, time) in Self.times.enumerated() {
            let message = Message(8, time: time, stream: 1, pattern(90 * index, from: index))
            expected.append(message)
            encoder.encode(message, chunkStream: Self.ids[index], into: &out)
        }
        expectDecoded(Array(out.readableBytesView), Decoded(expected), "several")
    }

    @Test func `the message stream id can be changed in offset`() {
        let message = Message(9, time: 0x0102_0304, stream: 1, pattern(300))
        var bytes = self.encode(message, id: 6, size: 128)
        bytes.withUnsafeMutableBytes { ChunkEncoder.setStreamID(0x0A0B_0C0D, inHeader: $0) }
        #expect(Decoded(bytes) == Decoded([Message(9, time: 0x0102_0304, stream: 0x0A0B_0C0D, pattern(300))]))
    }

    @Test func `encode tells the first header's length`() {
        for id in Self.ids {
            for time in Self.times {
                let message = Message(9, time: time, [1, 2, 3])
                let encoder = ChunkEncoder()
                let length = encoder.encodedLength(payload: 3, timestamp: time, chunkStream: id)
                var bytes = [UInt8](repeating: 0, count: length)
                let header = bytes.withUnsafeMutableBytes { encoder.encode(message, chunkStream: id, into: $0) }
                #expect(header == length - 3)
                #expect(Array(bytes[header...]) == [1, 2, 3])
            }
        }
    }
}
