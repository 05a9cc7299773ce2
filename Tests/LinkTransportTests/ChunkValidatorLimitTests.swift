import NIOCore
import RTMP
import Testing

@testable import LinkTransport

/// Headers byte by byte, and limits to the byte.
@Suite struct ChunkValidatorLimitTests {
    private static func three(_ value: Int) -> [UInt8] { [UInt8(value >> 16 & 0xFF), UInt8(value >> 8 & 0xFF), UInt8(value & 0xFF)] }

    /// A fmt 0 header with a one-byte chunk stream id. Payload follows, up to one chunk of 128 bytes.
    private static func start(_ id: UInt8, type: UInt8 = 9, length: Int, timestamp: Int = 0) -> [UInt8] {
        [id] + Self.three(timestamp) + Self.three(length) + [type, 1, 0, 0, 0] + [UInt8](repeating: 0x55, count: min(length, 128))
    }

    private static func more(_ id: UInt8, _ count: Int) -> [UInt8] { [0xC0 | id] + [UInt8](repeating: 0x55, count: count) }

    /// All chunks of the bytes, which must be whole.
    private static func chunks(_ bytes: [UInt8], _ limits: Limits = Limits()) throws -> [ChunkValidator.Chunk] {
        var chunks = ChunkValidator(limits: limits)
        var buffer = ByteBuffer(bytes: bytes)
        var found: [ChunkValidator.Chunk] = []
        while let chunk = try chunks.nextChunk(in: buffer) {
            found.append(chunk)
            buffer.moveReaderIndex(forwardBy: chunk.length)
        }
        #expect(buffer.readableBytes == 0, "after \(found)")
        return found
    }

    private static func refuses(_ error: RTMPError, by limits: Limits = Limits(), _ bytes: [UInt8]) {
        #expect(throws: LinkError.protocolViolation(error.description)) { try Self.chunks(bytes, limits) }
    }

    /// RTMP 1.0 §5.4.1; no message is longer than 0xFFFFFF.
    @Test func chunkSizes() throws {
        var chunks = ChunkValidator(limits: Limits())
        #expect(chunks.chunkSize == 128)
        for (size, taken) in [(1, 1), (0xFF_FFFE, 0xFF_FFFE), (0xFF_FFFF, 0xFF_FFFF), (0x100_0000, 0xFF_FFFF), (0x7FFF_FFFF, 0xFF_FFFF)] {
            try chunks.setChunkSize(UInt32(size))
            #expect(chunks.chunkSize == taken)
        }
        for size: UInt32 in [0, 0x8000_0000, .max] {
            #expect(throws: LinkError.protocolViolation(RTMPError.invalidChunkSize(size).description)) { try chunks.setChunkSize(size) }
        }
    }

    /// RTMP 1.0 §5.3.1.1: the three forms of a chunk stream id.
    @Test(
        arguments: [
            ([0x02], 2), ([0x3F], 63), ([0x00, 0x00], 64), ([0x00, 0x01], 65), ([0x00, 0xFF], 319), ([0x01, 0x00, 0x01], 320),
            ([0x01, 0x01, 0x00], 65), ([0x01, 0xFF, 0xFF], 65_599),
        ] as [([UInt8], UInt32)])
    func chunkStreamIDs(bytes: [UInt8], id: UInt32) throws {
        for format: UInt8 in [2, 3] {
            let header = [bytes[0] | format << 6] + bytes.dropFirst() + [UInt8](repeating: 0, count: 20)
            Self.refuses(.chunkWithoutHeader(chunkStream: id, format: format), header)
        }
        let first = bytes + [0, 0, 0, 0, 0, 3, 9, 1, 0, 0, 0, 7, 7, 7]
        let timeOnly = [bytes[0] | 0x80] + bytes.dropFirst() + [0, 0, 1, 8, 8, 8]
        let nothing = [bytes[0] | 0xC0] + bytes.dropFirst() + [9, 9, 9]
        #expect(try Self.chunks(first + timeOnly + nothing).map(\.length) == [bytes.count + 14, bytes.count + 6, bytes.count + 3])
        // No chunk is found before its last byte has arrived.
        var chunks = ChunkValidator(limits: Limits())
        for count in 0..<first.count { #expect(try chunks.nextChunk(in: ByteBuffer(bytes: first[..<count])) == nil) }
    }

    /// librtmp accepts a fmt 1 header that opens a chunk stream; some servers send it.
    @Test func lengthsComeFromTheLatestHeader() throws {
        let first: [UInt8] = [0x44, 0, 0, 0, 1, 2, 3, 9]
        #expect(try Self.chunks(first + [UInt8](repeating: 0, count: 128) + Self.more(4, 128)).map(\.length) == [136, 129])
        let all = [0x44, 0, 0, 0, 0, 0, 2, 9, 1, 1] + [0x44, 0, 0, 0, 0, 0, 3, 8, 1, 1, 1] + [0x84, 0, 0, 9, 1, 1, 1] + [0xC4, 1, 1, 1]
        #expect(try Self.chunks(all.map { UInt8($0) }).map(\.length) == [10, 11, 7, 4])
        // Each of the length's three bytes counts.
        var limits = Limits()
        limits.dataMessageBytes = 0x01_0203
        #expect(try Self.chunks(Self.start(4, type: 18, length: 0x01_0203), limits).map(\.length) == [140])
        limits.dataMessageBytes -= 1
        Self.refuses(
            .messageTooLarge(type: 18, length: 0x01_0203, limit: 0x01_0202), by: limits, Self.start(4, type: 18, length: 0x01_0203))
    }

    @Test func noHeaderInsideAMessage() {
        let begun = Self.start(4, length: 200)
        for format: UInt8 in [0, 1, 2] {
            Self.refuses(.headerInsideMessage(chunkStream: 4), begun + [4 | format << 6] + [UInt8](repeating: 0, count: 200))
        }
    }

    @Test func soManyChunkStreams() throws {
        var limits = Limits()
        limits.chunkStreams = 2
        let two = Self.start(4, length: 1) + Self.start(5, length: 1)
        #expect(try Self.chunks(two + Self.start(4, length: 1), limits).count == 3)
        Self.refuses(.tooManyChunkStreams(limit: 2), by: limits, two + Self.start(6, length: 1))
    }

    @Test func soManyMessagesAtOnce() throws {
        var limits = Limits()
        limits.partialMessages = 2
        let two = Self.start(4, length: 129) + Self.start(5, length: 129)
        Self.refuses(.tooManyPartialMessages(limit: 2), by: limits, two + Self.start(6, length: 129))
        // A completed message makes room for exactly one more.
        let three = two + Self.more(4, 1) + Self.start(6, length: 129)
        #expect(try Self.chunks(three, limits).map(\.length) == [140, 140, 2, 140])
        Self.refuses(.tooManyPartialMessages(limit: 2), by: limits, three + Self.start(7, length: 1))
        // Empty messages and those of one chunk complete at once.
        let short = (0..<5).flatMap { _ in Self.start(7, length: 0) + Self.start(8, length: 128) }
        #expect(try Self.chunks(Self.start(4, length: 129) + short + Self.start(5, length: 129), limits).count == 12)
    }

    @Test func soManyBytesAtOnce() throws {
        var limits = Limits()
        limits.partialBytes = 500
        let begun = Self.start(4, length: 200)
        #expect(try Self.chunks(begun + Self.start(5, length: 300), limits).count == 2)
        Self.refuses(.tooManyPartialBytes(limit: 500), by: limits, begun + Self.start(5, length: 301))
        // A completed message frees its bytes, all of them and once.
        let whole = begun + Self.more(4, 72)
        #expect(try Self.chunks(whole + Self.start(5, length: 500), limits).count == 3)
        Self.refuses(.tooManyPartialBytes(limit: 500), by: limits, whole + Self.start(5, length: 501))
    }

    // MARK: Extended timestamps (RTMP 1.0 §5.3.1.3)

    private static let extended: [UInt8] = [0x01, 0x02, 0x03, 0x04]
    private static let begun =
        Array(Self.start(4, length: 129 + 256, timestamp: 0xFF_FFFF)[..<12]) + Self.extended + [UInt8](repeating: 0x55, count: 128)

    @Test func onlyAllOnesAreExtended() throws {
        #expect(try Self.chunks(Self.begun).map(\.length) == [144])
        for timestamp in [0xFF_FFFE, 0xFF_FEFF, 0xFE_FFFF] {
            #expect(try Self.chunks(Self.start(4, length: 100, timestamp: timestamp)).map(\.length) == [112])
        }
        // The same in fmt 1 and 2; the header after them is not extended.
        let deltas: [UInt8] = [0x44, 0xFF, 0xFF, 0xFF, 0, 0, 1, 9] + Self.extended + [7] + [0x84, 0xFF, 0xFF, 0xFF] + Self.extended + [7]
        #expect(try Self.chunks(deltas + [0x84, 0, 0, 1, 7] + [0xC4, 7]).map(\.length) == [13, 9, 5, 2])
    }

    @Test func aRepeatedTimestampBelongsToTheHeader() throws {
        let more = [0xC4] + Self.extended + [UInt8](repeating: 0x55, count: 128)
        let chunks = try Self.chunks(Self.begun + more + more + [0xC4] + Self.extended + [7])
        #expect(chunks.map(\.length) == [144, 133, 133, 6])
        #expect(chunks.allSatisfy { $0.missingTimestamp == nil })
    }

    @Test func aMissingTimestampIsReported() throws {
        let more = Self.more(4, 128)
        let chunks = try Self.chunks(Self.begun + more + more + Self.more(4, 1))
        #expect(chunks.map(\.length) == [144, 129, 129, 2])
        #expect(chunks.map { $0.missingTimestamp?.at } == [nil, 1, 1, 1])
        #expect(chunks.map { $0.missingTimestamp?.value } == [nil, 0x0102_0304, 0x0102_0304, 0x0102_0304])
        // A server that omits it once always omits it, even where the payload looks like it.
        let alike = [0xC4] + Self.extended + [UInt8](repeating: 0x55, count: 124)
        #expect(try Self.chunks(Self.begun + more + alike + Self.more(4, 1)).map(\.length) == [144, 129, 129, 2])
        // Three matching bytes are not the timestamp.
        for differing in 0..<4 {
            var bytes = [0xC4] + Self.extended + [UInt8](repeating: 0x55, count: 124)
            bytes[1 + differing] ^= 0x80
            let chunks = try Self.chunks(Self.begun + bytes + more + Self.more(4, 1))
            #expect(chunks.map(\.length) == [144, 129, 129, 2])
            #expect(chunks[1].missingTimestamp?.at == 1)
        }
    }

    /// While the bytes so far match the timestamp, the guard waits for more.
    @Test func aTimestampThatMayStillComeIsWaitedFor() throws {
        var chunks = ChunkValidator(limits: Limits())
        #expect(try chunks.nextChunk(in: ByteBuffer(bytes: Self.begun))?.length == 144)
        let more = [0xC4] + Self.extended + [UInt8](repeating: 0x55, count: 128)
        for count in 0..<more.count { #expect(try chunks.nextChunk(in: ByteBuffer(bytes: more[..<count])) == nil) }
        #expect(try chunks.nextChunk(in: ByteBuffer(bytes: more))?.length == 133)
    }
}
