import NIOCore
import RTMP
import Testing

/// Hand-made chunk headers (RTMP 1.0 §5.3.1, examples of §5.3.2), read whole and split at every byte.
@Suite struct ChunkHeaderTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let name: String
        let bytes: [UInt8]
        let expected: [Message]
        var error: RTMPError?
        var testDescription: String { self.name }

        init(_ name: String, _ expected: [Message] = [], error: RTMPError? = nil, _ build: (inout Chunks) -> Void) {
            var chunks = Chunks()
            build(&chunks)
            self.name = name
            self.bytes = chunks.bytes
            self.expected = expected
            self.error = error
        }
    }

    static let examples: [Case] = [
        // §5.3.2.1: four audio messages of 32 bytes, 20 ms apart, on message stream 12345.
        Case(
            "audio example", (0..<4).map { Message(8, time: 1000 + 20 * UInt32($0), stream: 12345, pattern(32, from: $0)) }
        ) {
            $0.add(0, 3, time: 1000, length: 32, type: 8, stream: 12345, pattern(32))
            $0.add(2, 3, time: 20, pattern(32, from: 1))
            $0.add(3, 3, pattern(32, from: 2))
            $0.add(3, 3, pattern(32, from: 3))
        },
        // §5.3.2.2: one video message of 307 bytes in chunks of 128.
        Case("video example", [Message(9, time: 1000, stream: 12346, pattern(307))]) {
            $0.add(0, 4, time: 1000, length: 307, type: 9, stream: 12346, pattern(128))
            $0.add(3, 4, pattern(128, from: 128))
            $0.add(3, 4, pattern(51, from: 256))
        },
        Case(
            "fmt 1 keeps the stream, fmt 2 the length and type",
            [Message(9, time: 10, stream: 7, [1]), Message(8, time: 15, stream: 7, [2, 3]), Message(8, time: 18, stream: 7, [4, 5])]
        ) {
            $0.add(0, 5, time: 10, length: 1, type: 9, stream: 7, [1])
            $0.add(1, 5, time: 5, length: 2, type: 8, [2, 3])
            $0.add(2, 5, time: 3, [4, 5])
        },
        // §5.3.1.2.4: fmt 3 after fmt 0 uses that timestamp as its delta.
        Case("fmt 3 opens a message after fmt 0", [Message(8, time: 40, [1]), Message(8, time: 80, [2]), Message(8, time: 120, [3])]) {
            $0.message(4, type: 8, time: 40, [1])
            $0.add(3, 4, [2])
            $0.add(3, 4, [3])
        },
        Case(
            "fmt 3 opens a message after fmt 1", [Message(8, time: 40, [1]), Message(8, time: 47, [2, 2]), Message(8, time: 54, [3, 3])]
        ) {
            $0.message(4, type: 8, time: 40, [1])
            $0.add(1, 4, time: 7, length: 2, type: 8, [2, 2])
            $0.add(3, 4, [3, 3])
        },
        Case("fmt 3 opens a message after fmt 2", [Message(8, time: 40, [1]), Message(8, time: 49, [2]), Message(8, time: 58, [3])]) {
            $0.message(4, type: 8, time: 40, [1])
            $0.add(2, 4, time: 9, [2])
            $0.add(3, 4, [3])
        },
        Case("fmt 3 goes on and then opens", [Message(8, time: 5, pattern(130)), Message(8, time: 10, pattern(130, from: 9))]) {
            $0.add(0, 4, time: 5, length: 130, type: 8, pattern(128))
            $0.add(3, 4, pattern(2, from: 128))
            $0.add(3, 4, pattern(128, from: 9))
            $0.add(3, 4, pattern(2, from: 137))
        },
        // librtmp opens chunk stream 2 this way.
        Case("fmt 1 opens a chunk stream", [Message(4, time: 3, stream: 0, [0, 3])]) { $0.add(1, 2, time: 3, length: 2, type: 4, [0, 3]) },
        Case("the message stream id is little-endian", [Message(9, stream: 0x0102_0304, [])]) {
            $0.add(0, 4, length: 0, type: 9, stream: 0x0102_0304)
        },
        Case("zero-length messages", [Message(8, time: 1), Message(8, time: 2), Message(8, time: 4), Message(20, stream: 0)]) {
            $0.message(4, type: 8, time: 1, [])
            $0.add(3, 4)
            $0.add(2, 4, time: 2)
            $0.message(3, type: 20, stream: 0, [])
        },
        Case("unknown types pass", [Message(0, [1]), Message(7, [2]), Message(255, [3])]) {
            $0.message(4, type: 0, [1])
            $0.message(4, type: 7, [2])
            $0.message(4, type: 255, [3])
        },
        Case("nothing"),
        Case("fmt 2 on a new chunk stream", error: .chunkWithoutHeader(chunkStream: 9, format: 2)) { $0.add(2, 9, time: 1, [1]) },
        Case("fmt 3 on a new chunk stream", error: .chunkWithoutHeader(chunkStream: 65599, format: 3)) { $0.add(3, 65599, [1]) },
        Case("fmt 0 inside a message", [Message(8, [1])], error: .headerInsideMessage(chunkStream: 4)) {
            $0.message(5, type: 8, [1])
            $0.add(0, 4, length: 200, type: 9, pattern(128))
            $0.add(0, 4, length: 1, type: 9, [1])
        },
        Case("fmt 2 inside a message", error: .headerInsideMessage(chunkStream: 4)) {
            $0.add(0, 4, length: 200, type: 9, pattern(128))
            $0.add(2, 4, time: 1, [1])
        },
    ]

    @Test(arguments: examples) func `chunks become messages`(example: Case) {
        expectDecoded(example.bytes, Decoded(example.expected, error: example.error), example.name)
    }

    // MARK: Chunk stream ids (§5.3.1.1)

    private static let ids: [(id: Int, forms: [Chunks.Form])] = [
        (2, [.shortest]), (3, [.shortest]), (63, [.shortest]), (64, [.two, .three]), (65, [.two, .three]), (319, [.two, .three]),
        (320, [.three]), (576, [.three]), (65599, [.three]),
    ]

    @Test(arguments: ids) func `a chunk stream id is the same in every form`(id: Int, forms: [Chunks.Form]) {
        for first in forms {
            for second in forms {
                var chunks = Chunks()
                chunks.add(0, id, time: 9, length: 130, type: 8, form: first, pattern(128))
                // Another chunk stream in between: the two must not mix.
                chunks.message(id == 40 ? 41 : 40, type: 9, time: 3, [7])
                chunks.add(3, id, form: second, pattern(2, from: 128))
                let expected = [Message(9, time: 3, [7]), Message(8, time: 9, pattern(130))]
                expectDecoded(chunks.bytes, Decoded(expected), "\(id) as \(first), \(second)")
            }
        }
    }

    @Test func `many chunk streams interleave, each chunk by chunk`() {
        let ids = Array(2...20) + [63, 64, 319, 320, 65599]
        var chunks = Chunks()
        for id in ids { chunks.add(0, id, time: UInt32(id), length: 300, type: 9, stream: UInt32(id), pattern(128, from: id)) }
        for id in ids.reversed() { chunks.add(3, id, pattern(128, from: id + 128)) }
        for id in ids { chunks.add(3, id, pattern(44, from: id + 256)) }
        let expected = ids.map { Message(9, time: UInt32($0), stream: UInt32($0), pattern(300, from: $0)) }
        expectDecoded(chunks.bytes, Decoded(expected), "interleaved", splits: 1024)
    }

    @Test func `received bytes are counted as they come`() throws {
        var decoder = ChunkDecoder()
        decoder.append(ByteBuffer(bytes: [0x04, 0, 0]))
        #expect(try decoder.nextMessage() == nil)
        #expect(decoder.receivedBytes == 3)
        #expect(decoder.waitingBytes == 3)
        decoder.append(ByteBuffer(bytes: [0, 0, 0, 1, 8, 1, 0, 0, 0, 0xAB, 0x04]))
        #expect(decoder.waitingBytes == 14)
        #expect(try decoder.nextMessage() == Message(8, [0xAB]))
        #expect(try decoder.nextMessage() == nil)
        #expect(decoder.receivedBytes == 14)
        #expect(decoder.waitingBytes == 1)
    }
}

extension ChunkHeaderTests.Case {
    fileprivate init(_ name: String) { self.init(name) { _ in } }
}
