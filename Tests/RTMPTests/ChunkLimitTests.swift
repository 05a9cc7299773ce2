import NIOCore
import RTMP
import Testing

/// Chunk sizes, Abort and the limits (RTMP 1.0 §5.4.1, §5.4.2).
@Suite struct ChunkLimitTests {
    // MARK: Chunk sizes

    @Test(arguments: [1, 2, 127, 128, 129, 65536, 0xFF_FFFF, 0x100_0000, 0x7FFF_FFFF])
    func `any legal chunk size is obeyed`(size: Int) {
        let payload = pattern(300)
        var chunks = Chunks()
        chunks.control(1, UInt32(size))
        chunks.add(0, 4, time: 5, length: 300, type: 9, Array(payload.prefix(size)))
        var sent = size
        while sent < 300 {
            chunks.add(3, 4, Array(payload[sent..<min(300, sent + size)]))
            sent += size
        }
        let expected = Decoded([control(1, UInt32(size)), Message(9, time: 5, payload)])
        expectDecoded(chunks.bytes, expected, "\(size)")
        var decoder = ChunkDecoder()
        decoder.append(ByteBuffer(bytes: chunks.bytes))
        while (try? decoder.nextMessage()) != nil {}
        #expect(decoder.chunkSize == min(size, 0xFF_FFFF))
    }

    @Test(arguments: [0, 0x8000_0000, 0xFFFF_FFFF] as [UInt32]) func `an illegal chunk size changes nothing and is left to the session`(
        size: UInt32
    ) {
        var chunks = Chunks()
        chunks.control(1, size)
        chunks.add(0, 4, length: 129, type: 9, pattern(128))
        chunks.add(3, 4, [1])
        expectDecoded(chunks.bytes, Decoded([control(1, size), Message(9, pattern(128) + [1])]), "\(size)")
    }

    @Test func `a size change in the middle of a message counts from the next chunk`() {
        var chunks = Chunks()
        chunks.add(0, 4, length: 500, type: 9, pattern(128))
        chunks.control(1, 200)
        chunks.add(3, 4, pattern(200, from: 128))
        chunks.control(1, 50)
        chunks.add(3, 4, pattern(50, from: 328))
        chunks.control(1, 65536)
        chunks.add(3, 4, pattern(122, from: 378))
        expectDecoded(chunks.bytes, Decoded([control(1, 200), control(1, 50), control(1, 65536), Message(9, pattern(500))]), "change")
    }

    @Test func `a short Set Chunk Size changes nothing`() {
        var chunks = Chunks()
        chunks.message(2, type: 1, stream: 0, [0, 1])
        chunks.message(2, type: 2, stream: 0, [])
        chunks.add(0, 4, length: 129, type: 9, pattern(128))
        chunks.add(3, 4, [1])
        let expected = [Message(1, stream: 0, [0, 1]), Message(2, stream: 0), Message(9, pattern(128) + [1])]
        expectDecoded(chunks.bytes, Decoded(expected), "short")
    }

    // MARK: Abort

    @Test func `Abort drops the unfinished message, and the chunk stream goes on`() {
        var chunks = Chunks()
        chunks.add(0, 4, time: 10, length: 300, type: 9, pattern(128))
        chunks.control(2, 4)
        chunks.add(1, 4, time: 5, length: 3, type: 9, [1, 2, 3])
        expectDecoded(chunks.bytes, Decoded([control(2, 4), Message(9, time: 15, [1, 2, 3])]), "abort")
    }

    @Test func `after Abort fmt 3 opens a new message`() {
        var chunks = Chunks()
        chunks.add(0, 4, time: 10, length: 130, type: 9, pattern(128))
        chunks.control(2, 4)
        chunks.add(3, 4, pattern(128, from: 3))
        chunks.add(3, 4, pattern(2, from: 131))
        expectDecoded(chunks.bytes, Decoded([control(2, 4), Message(9, time: 20, pattern(130, from: 3))]), "abort")
    }

    @Test(arguments: [2, 3, 4, 77, 65599, 0xFFFF_FFFF] as [UInt32]) func `Abort of an idle or unknown chunk stream changes nothing`(
        id: UInt32
    ) {
        var chunks = Chunks()
        chunks.message(4, type: 8, [1])
        chunks.add(0, 5, time: 10, length: 130, type: 9, pattern(128))
        chunks.control(2, id)
        chunks.add(3, 5, [7, 8])
        chunks.add(3, 4, [9])
        expectDecoded(
            chunks.bytes, Decoded([Message(8, [1]), control(2, id), Message(9, time: 10, pattern(128) + [7, 8]), Message(8, [9])]), "\(id)")
    }

    @Test func `an aborted message gives its offset and its bytes back`() {
        var limits = Limits()
        limits.partialMessages = 2
        limits.partialBytes = 300
        var chunks = Chunks()
        for _ in 0..<20 {
            chunks.add(0, 4, length: 1000, type: 9, pattern(128))
            chunks.control(2, 4)
        }
        expectDecoded(chunks.bytes, Decoded(Array(repeating: control(2, 4), count: 20)), "aborts", limits: limits)
    }

    // MARK: Limits

    private static let lengths: [(type: UInt8, limit: Int)] = [
        (9, (15 << 20) + 64), (22, (15 << 20) + 64), (8, (1 << 20) + 64), (19, 64 << 10), (20, 64 << 10), (17, 64 << 10), (1, 64 << 10),
        (99, 64 << 10),
    ]

    @Test(arguments: lengths) func `a message over its type's limit is refused at the header`(type: UInt8, limit: Int) {
        var allowed = Chunks()
        allowed.add(0, 4, length: limit, type: type, pattern(5))
        expectDecoded(allowed.bytes, Decoded(), "type \(type), at the limit")
        for length in [limit + 1, 0xFF_FFFF] {
            var chunks = Chunks()
            chunks.add(0, 4, length: length, type: type)
            expectDecoded(
                chunks.bytes, Decoded(error: .messageTooLarge(type: type, length: length, limit: limit)), "type \(type), \(length)")
        }
    }

    /// Metadata of 117 KB, as from a device that puts a picture into it.
    @Test(arguments: [15, 18] as [UInt8]) func `a publisher's data over its limit comes out empty`(type: UInt8) {
        var limits = Limits()
        limits.dataMessageBytes = 300
        limits.partialBytes = 310
        var chunks = Chunks()
        chunks.add(0, 5, length: 300, type: type, pattern(128))
        chunks.add(3, 5, pattern(128, from: 128))
        chunks.add(3, 5, pattern(44, from: 256))
        chunks.add(0, 4, time: 7, length: 301, type: type, pattern(128))
        chunks.message(6, type: 8, [1, 2])
        chunks.add(3, 4, pattern(128))
        chunks.add(3, 4, pattern(45))
        chunks.add(3, 4, pattern(128))
        chunks.control(2, 4)
        chunks.add(1, 4, length: 3, type: type, [7, 8, 9])
        let expected = Decoded([
            Message(type, pattern(300)), Message(8, [1, 2]), Message(type, time: 7, []), control(2, 4), Message(type, time: 14, [7, 8, 9]),
        ])
        expectDecoded(chunks.bytes, expected, "type \(type)", limits: limits)
    }

    @Test func `the length of dropped data is told once`() throws {
        var chunks = Chunks()
        chunks.control(1, 0xFF_FFFF)
        chunks.message(4, type: 18, pattern(120_000))
        chunks.message(4, type: 18, [1])
        var decoder = ChunkDecoder()
        decoder.append(ByteBuffer(bytes: chunks.bytes))
        var seen: [(bytes: Int, dropped: [Int?])] = []
        while let message = try decoder.nextMessage() {
            seen.append((message.payload.readableBytes, [decoder.popDropped(), decoder.popDropped()]))
        }
        #expect(seen.map(\.bytes) == [4, 0, 1])
        #expect(seen.map(\.dropped) == [[nil, nil], [120_000, nil], [nil, nil]])
        // A stranger's is refused, as before.
        var stranger = ChunkDecoder(maySendMedia: false)
        stranger.append(ByteBuffer(bytes: chunks.bytes))
        _ = try stranger.nextMessage()
        #expect(throws: RTMPError.messageTooLarge(type: 18, length: 120_000, limit: 64 << 10)) { try stranger.nextMessage() }
    }

    @Test func `the 65th unfinished message is refused, finished ones do not count`() {
        var chunks = Chunks()
        for id in 0..<64 { chunks.add(0, 3 + id, length: 129, type: 9, stream: UInt32(id), pattern(128)) }
        var finished = chunks
        for id in 0..<64 { finished.add(3, 3 + id, [UInt8(id)]) }
        let messages = (0..<64).map { Message(9, stream: UInt32($0), pattern(128) + [UInt8($0)]) }
        #expect(Decoded(finished.bytes) == Decoded(messages))
        finished.add(0, 90, length: 1, type: 9, [7])
        #expect(Decoded(finished.bytes) == Decoded(messages + [Message(9, [7])]))
        chunks.add(0, 67, length: 129, type: 9)
        #expect(Decoded(chunks.bytes) == Decoded(error: .tooManyPartialMessages(limit: 64)))
        #expect(Decoded(chunks.bytes, splitAt: Array(0..<chunks.bytes.count)) == Decoded(error: .tooManyPartialMessages(limit: 64)))
    }

    @Test func `unfinished messages together hold no more than the limit`() {
        var limits = Limits()
        limits.partialBytes = 384
        var chunks = Chunks()
        for id in 4..<7 { chunks.add(0, id, length: 500, type: 9, pattern(128)) }
        expectDecoded(chunks.bytes, Decoded(), "at the limit", limits: limits)
        chunks.add(3, 5, [1])
        expectDecoded(chunks.bytes, Decoded(error: .tooManyPartialBytes(limit: 384)), "one byte more", limits: limits)
    }

    @Test func `a whole message beside unfinished ones counts like one that comes in pieces`() {
        var limits = Limits()
        limits.partialBytes = 384
        var chunks = Chunks()
        for id in 4..<6 { chunks.add(0, id, length: 500, type: 9, pattern(128)) }
        chunks.message(7, type: 8, pattern(128))
        let whole = Message(8, pattern(128))
        expectDecoded(chunks.bytes, Decoded([whole]), "at the limit", limits: limits)
        chunks.control(1, 200)
        chunks.message(7, type: 8, pattern(129))
        expectDecoded(
            chunks.bytes, Decoded([whole, control(1, 200)], error: .tooManyPartialBytes(limit: 384)), "over it", limits: limits)
    }

    @Test func `16 MiB announced on every chunk stream reserves next to nothing`() throws {
        var chunks = Chunks()
        var decoder = ChunkDecoder()
        chunks.control(1, 0x7FFF_FFFF)
        for id in 0..<64 { chunks.add(0, 3 + id, length: 8 << 20, type: 9) }
        decoder.append(ByteBuffer(bytes: chunks.bytes.dropLast(12 * 63)))
        #expect(try decoder.nextMessage() == control(1, 0x7FFF_FFFF))
        #expect(try decoder.nextMessage() == nil)
        #expect(HeldMemory(decoder).capacity < 64 << 10)
    }

    @Test func `the number of chunk streams is bounded`() {
        var limits = Limits()
        limits.chunkStreams = 12
        var chunks = Chunks()
        for id in 0..<12 { chunks.message(3 + 100 * id, type: 8, [UInt8(id)]) }
        for id in 0..<12 { chunks.add(3, 3 + 100 * id, [UInt8(100 + id)]) }
        let messages = (Array(0..<12) + Array(100..<112)).map { Message(8, [UInt8($0)]) }
        expectDecoded(chunks.bytes, Decoded(messages), "at the limit", limits: limits)
        chunks.message(2, type: 8, [1])
        expectDecoded(chunks.bytes, Decoded(messages, error: .tooManyChunkStreams(limit: 12)), "one more", limits: limits)
    }
}

/// The memory that a decoder holds, read from its stored properties.
struct HeldMemory {
    /// Payload bytes of unfinished messages.
    var partialBytes = 0
    /// Bytes reserved for them.
    var capacity = 0
    var streams = 0

    init(_ decoder: ChunkDecoder) {
        for child in Mirror(reflecting: decoder).children where child.label == "streams" {
            for stream in Mirror(reflecting: child.value).children {
                self.streams += 1
                for field in Mirror(reflecting: stream.value).children {
                    guard let buffer = field.value as? ByteBuffer else { continue }
                    self.partialBytes += buffer.readableBytes
                    self.capacity += buffer.capacity
                }
            }
        }
    }
}
