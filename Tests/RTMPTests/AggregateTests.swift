import NIOCore
import RTMP
import Testing

/// Hand-made aggregate messages (RTMP 1.0 §7.1.6).
@Suite struct AggregateTests {
    private struct Tag {
        var type: UInt8
        var time: UInt32
        var payload: [UInt8]
        var bytes: [UInt8] {
            [self.type] + Chunks.bigEndian(UInt32(self.payload.count), 3) + Chunks.bigEndian(self.time & 0xFF_FFFF, 3)
                + [UInt8(self.time >> 24)] + [0, 0, 0] + self.payload
        }
        var backPointer: [UInt8] { Chunks.bigEndian(UInt32(self.payload.count + 11), 4) }
    }

    private func open(_ body: [UInt8], time: UInt32 = 0, stream: UInt32 = 3) -> Decoded {
        var aggregate = Aggregate(Message(22, time: time, stream: stream, body))
        var result = Decoded()
        do throws(RTMPError) {
            while let message = try aggregate.next() { result.messages.append(message) }
        } catch {
            result.error = error
        }
        return result
    }

    private static let tags = [
        Tag(type: 8, time: 500, payload: [0xAF, 1, 2]), Tag(type: 9, time: 520, payload: pattern(40)),
        Tag(type: 18, time: 540, payload: []),
        Tag(type: 8, time: 490, payload: [9]),
    ]

    @Test(arguments: [true, false]) func `inner messages move to the aggregate's time, with or without the last back pointer`(last: Bool) {
        var body = Self.tags.flatMap { $0.bytes + $0.backPointer }
        if !last { body.removeLast(4) }
        let expected = Self.tags.map { Message($0.type, time: 7000 &+ $0.time &- 500, stream: 3, $0.payload) }
        #expect(self.open(body, time: 7000) == Decoded(expected))
    }

    @Test func `times beyond 2^24 use the upper byte, and wrap with the aggregate's own`() {
        let tags = [Tag(type: 9, time: 0xFFFF_FFF0, payload: [1]), Tag(type: 9, time: 0x10, payload: [2])]
        let body = tags.flatMap { $0.bytes + $0.backPointer }
        let expected = [Message(9, time: 0xFFFF_FFFA, stream: 3, [1]), Message(9, time: 0x1A, stream: 3, [2])]
        #expect(self.open(body, time: 0xFFFF_FFFA) == Decoded(expected))
    }

    @Test func `an empty aggregate holds nothing`() {
        #expect(self.open([]) == Decoded())
    }

    @Test func `the back pointer's value is not judged`() {
        #expect(self.open(Self.tags[0].bytes + [0, 0, 0, 0]).error == nil)
    }

    @Test func `cut anywhere but between messages it is malformed`() {
        let first = Self.tags[0]
        let second = Self.tags[1]
        let body = first.bytes + first.backPointer + second.bytes + second.backPointer
        let whole = [0, first.bytes.count, first.bytes.count + 4, body.count - 4, body.count]
        for length in 0...body.count {
            let result = self.open(Array(body.prefix(length)))
            #expect(result.error == (whole.contains(length) ? nil : .malformedAggregate), "\(length) bytes")
            #expect(result.messages.count <= 2)
        }
    }

    @Test(arguments: [0x00_0004, 0x00_FFFF, 0xFF_FFFF] as [UInt32]) func `a length beyond the body is malformed`(length: UInt32) {
        var body = Self.tags[0].bytes
        body.replaceSubrange(1..<4, with: Chunks.bigEndian(length, 3))
        #expect(self.open(body) == Decoded(error: .malformedAggregate))
    }

    @Test func `an aggregate arrives through chunks like any message`() throws {
        let body = Self.tags.flatMap { $0.bytes + $0.backPointer }
        var chunks = Chunks()
        chunks.control(1, 16)
        chunks.add(0, 6, time: 100, length: body.count, type: 22, Array(body[..<16]))
        for start in stride(from: 16, to: body.count, by: 16) { chunks.add(3, 6, Array(body[start..<min(start + 16, body.count)])) }
        expectDecoded(chunks.bytes, Decoded([control(1, 16), Message(22, time: 100, body)]), "aggregate")
    }
}
