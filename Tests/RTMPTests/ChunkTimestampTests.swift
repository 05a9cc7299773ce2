import NIOCore
import RTMP
import Testing

/// Extended timestamps (RTMP 1.0 §5.3.1.3), with and without repetition on fmt 3, and the ends of the number range.
@Suite struct ChunkTimestampTests {
    private static let edges: [UInt32] = [
        0, 1, 0xFF_FFFE, 0xFF_FFFF, 0x100_0000, 0x100_0001, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, 0xFFFF_FFFF,
    ]

    @Test(arguments: edges) func `a timestamp survives in fmt 0, with the field extended from 0xFFFFFF on`(time: UInt32) {
        var chunks = Chunks()
        chunks.message(4, type: 8, time: time, [1])
        #expect(chunks.bytes.count == 13 + (time >= 0xFF_FFFF ? 4 : 0))
        expectDecoded(chunks.bytes, Decoded([Message(8, time: time, [1])]), "\(time)")
    }

    @Test(arguments: edges) func `continuation chunks are read with and without the extended timestamp`(time: UInt32) {
        // No timestamp here starts with 0xA5, so a missing one shows.
        let payload = [0xA5] + pattern(299)
        for repeats in [true, false] where repeats || time >= 0xFF_FFFF {
            let extended = repeats && time >= 0xFF_FFFF ? time : nil
            var chunks = Chunks()
            chunks.add(0, 4, time: time, length: 300, type: 9, Array(payload[..<128]))
            chunks.add(3, 4, extended: extended, [0xA5] + Array(payload[129..<256]))
            chunks.add(3, 4, extended: extended, [0xA5] + Array(payload[257...]))
            var expected = payload
            expected[128] = 0xA5
            expected[256] = 0xA5
            expectDecoded(chunks.bytes, Decoded([Message(9, time: time, expected)]), "\(time), repeats \(repeats)")
        }
    }

    @Test func `a peer that does not repeat it is believed from then on`() {
        // The third chunk's payload starts with the timestamp's own bytes.
        let time: UInt32 = 0x0102_0304
        let payload = pattern(128) + [0xA5] + pattern(127) + [1, 2, 3, 4] + pattern(40)
        var chunks = Chunks()
        chunks.add(0, 4, time: time, length: payload.count, type: 9, Array(payload[..<128]))
        chunks.add(3, 4, Array(payload[128..<256]))
        chunks.add(3, 4, Array(payload[256...]))
        expectDecoded(chunks.bytes, Decoded([Message(9, time: time, payload)]), "not repeated")
    }

    @Test func `an extended delta adds up, and fmt 3 opens a message with it again`() {
        let delta: UInt32 = 0x0100_0005
        for repeats in [true, false] {
            var chunks = Chunks()
            chunks.message(4, type: 8, time: 7, [1])
            chunks.add(1, 4, time: delta, length: 1, type: 8, [2])
            chunks.add(3, 4, extended: repeats ? delta : nil, [0xA5])
            chunks.add(2, 4, time: delta, [4])
            let times = [7, 7 + delta, 7 + 2 * delta, 7 + 3 * delta]
            let expected = zip(times, [UInt8](arrayLiteral: 1, 2, 0xA5, 4)).map { Message(8, time: $0, [$1]) }
            // The decoder waits after a lone byte that may start a timestamp; 0xA5 cannot start one.
            expectDecoded(chunks.bytes, Decoded(expected), "repeats \(repeats)")
        }
    }

    @Test func `fmt 3 after an extended fmt 0 takes that timestamp as its delta`() {
        var chunks = Chunks()
        chunks.message(4, type: 8, time: 0x0100_0000, [1])
        chunks.add(3, 4, extended: 0x0100_0000, [2])
        expectDecoded(chunks.bytes, Decoded([Message(8, time: 0x0100_0000, [1]), Message(8, time: 0x0200_0000, [2])]), "extended delta")
    }

    @Test func `the extension is each chunk stream's own, and ends with the next small header`() {
        let time: UInt32 = 0x0102_0304
        var chunks = Chunks()
        chunks.add(0, 4, time: time, length: 130, type: 9, pattern(128))
        chunks.add(0, 5, time: 9, length: 130, type: 8, pattern(128))
        chunks.add(3, 5, [0xA5, 1])
        chunks.add(3, 4, extended: time, [0xA5, 2])
        chunks.add(1, 4, time: 20, length: 130, type: 9, pattern(128))
        chunks.add(3, 4, [1, 2])
        expectDecoded(
            chunks.bytes,
            Decoded([
                Message(8, time: 9, pattern(128) + [0xA5, 1]), Message(9, time: time, pattern(128) + [0xA5, 2]),
                Message(9, time: time + 20, pattern(128) + [1, 2]),
            ]), "two chunk streams")
    }

    private static let crossings: [(start: UInt32, delta: UInt32)] = [
        (0xFF_FFFE, 1), (0xFF_FFFE, 2), (0xFF_FFF0, 33), (0xFFFF_FFFE, 1), (0xFFFF_FFFE, 2), (0xFFFF_FFF0, 33), (0xFFFF_FFFF, 0xFF_FFFE),
        (0xFFFF_FFFF, 0xFFFF_FFFF),
    ]

    @Test(arguments: crossings) func `deltas carry over 2^24 and wrap at 2^32`(start: UInt32, delta: UInt32) {
        var chunks = Chunks()
        chunks.message(6, type: 9, time: start, [1])
        chunks.add(1, 6, time: delta, length: 1, type: 9, [2])
        chunks.add(2, 6, time: delta, [3])
        chunks.add(3, 6, extended: delta >= 0xFF_FFFF ? delta : nil, [4])
        let expected = (0..<4).map { Message(9, time: start &+ delta &* UInt32($0), [UInt8($0 + 1)]) }
        expectDecoded(chunks.bytes, Decoded(expected), "\(start) + \(delta)")
    }
}
