import HTTPServer
import NIOCore
import ServerTestSupport
import TestSupport
import Testing

/// RFC 6455 from a client: frames that are accepted, and those refused with their code.
@Suite struct WebSocketReaderTests {
    enum Outcome: Equatable {
        case inputs([WebSocketReader.Input])
        case refused(UInt16)
    }

    /// Reads all at once, or in pieces of this size.
    static func read(_ bytes: [UInt8], pieces: Int = .max, messageBytes: Int = 64 << 10) -> Outcome {
        var reader = WebSocketReader(messageBytes: messageBytes)
        var inputs: [WebSocketReader.Input] = []
        var rest = bytes[...]
        do throws(WebSocketError) {
            while !rest.isEmpty {
                var piece = ByteBuffer(bytes: rest.prefix(pieces))
                rest = rest.dropFirst(pieces)
                reader.append(&piece)
                while let input = try reader.next() { inputs.append(input) }
            }
        } catch {
            return .refused(error.code)
        }
        return .inputs(inputs)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: [UInt8]
        let expected: Outcome
        var testDescription: String { self.name }
        init(_ name: String, _ bytes: [UInt8], _ expected: Outcome) {
            self.name = name
            self.bytes = bytes
            self.expected = expected
        }
    }

    static let cases: [Case] = [
        // RFC 6455 §5.7: a single-frame masked text message.
        Case("the standard's Hello", [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58], .inputs([.text("Hello")])),
        Case("an empty text", ClientFrame.bytes(1, []), .inputs([.text("")])),
        Case("binary", ClientFrame.bytes(2, [0, 255]), .inputs([.binary(ByteBuffer(bytes: [0, 255]))])),
        Case("ping and pong", ClientFrame.bytes(9, [1]) + ClientFrame.bytes(10, []), .inputs([.ping(ByteBuffer(bytes: [1])), .pong])),
        Case(
            "fragments with a ping between",
            ClientFrame.bytes(1, Array("Hel".utf8), final: false) + ClientFrame.bytes(9, []) + ClientFrame.bytes(0, Array("lo".utf8)),
            .inputs([.ping(ByteBuffer()), .text("Hello")])),
        Case(
            "a character in two fragments", ClientFrame.bytes(1, [0xC3], final: false) + ClientFrame.bytes(0, [0xA9]), .inputs([.text("é")])
        ),
        Case("126 bytes", ClientFrame.bytes(1, Array(repeating: 0x61, count: 126)), .inputs([.text(String(repeating: "a", count: 126))])),
        Case(
            "65,536 bytes", ClientFrame.bytes(1, Array(repeating: 0x61, count: 65_536)),
            .inputs([.text(String(repeating: "a", count: 65_536))])),
        Case("close without a code", ClientFrame.bytes(8, []), .inputs([.close(nil)])),
        Case("close with code and reason", ClientFrame.bytes(8, [0x03, 0xE8] + Array("bye".utf8)), .inputs([.close(1000)])),
        Case("an application's close code", ClientFrame.bytes(8, [0x0F, 0xA0]), .inputs([.close(4000)])),
        // Refused:
        Case("65,537 bytes", ClientFrame.bytes(1, Array(repeating: 0x61, count: 65_537)), .refused(1009)),
        Case("more by its header than there is memory", [0x82, 0xFF, 0x7F, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4], .refused(1009)),
        Case("a length with the top bit", [0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4], .refused(1002)),
        Case("a length in too many bytes", [0x82, 0xFE, 0, 125, 1, 2, 3, 4], .refused(1002)),
        Case("a length in far too many bytes", [0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 1, 2, 3, 4], .refused(1002)),
        Case(
            "too much in fragments",
            ClientFrame.bytes(2, Array(repeating: 0, count: 40_000), final: false)
                + ClientFrame.bytes(0, Array(repeating: 0, count: 40_000)),
            .refused(1009)),
        Case("not masked", ClientFrame.bytes(1, Array("Hello".utf8), masked: false), .refused(1002)),
        Case("a reserved bit", ClientFrame.bytes(1, [], reserved: 0x40), .refused(1002)),
        Case("another reserved bit", ClientFrame.bytes(9, [], reserved: 0x10), .refused(1002)),
        Case("an unknown opcode", ClientFrame.bytes(3, []), .refused(1002)),
        Case("an unknown control opcode", ClientFrame.bytes(11, []), .refused(1002)),
        Case("a control frame in fragments", ClientFrame.bytes(9, [], final: false), .refused(1002)),
        Case("a control frame of 126 bytes", ClientFrame.bytes(9, Array(repeating: 0, count: 126)), .refused(1002)),
        Case("a continuation of nothing", ClientFrame.bytes(0, []), .refused(1002)),
        Case("a message within a message", ClientFrame.bytes(1, [], final: false) + ClientFrame.bytes(1, []), .refused(1002)),
        Case("text that is not UTF-8", ClientFrame.bytes(1, [0xC3, 0x28]), .refused(1007)),
        Case("half a character at the end", ClientFrame.bytes(1, [0xC3]), .refused(1007)),
        Case("half a close code", ClientFrame.bytes(8, [3]), .refused(1002)),
        Case("a close code that is not for the wire", ClientFrame.bytes(8, [0x03, 0xED]), .refused(1002)),
        Case("an unassigned close code", ClientFrame.bytes(8, [0x03, 0xE7]), .refused(1002)),
        Case("a close reason that is not UTF-8", ClientFrame.bytes(8, [0x03, 0xE8, 0xFF]), .refused(1007)),
    ]

    @Test(arguments: cases) func whole(_ item: Case) { #expect(Self.read(item.bytes) == item.expected) }

    @Test(arguments: cases) func inPieces(_ item: Case) {
        for size in [1, 2, 3, 7, 1_000] where item.bytes.count < 2_000 || size > 100 {
            #expect(Self.read(item.bytes, pieces: size) == item.expected, "in pieces of \(size)")
        }
    }

    /// Headers suffice to refuse a frame before its payload arrives; waiting bytes are bounded.
    @Test func headersAreEnough() {
        #expect(Self.read([0x81, 0xFF, 0, 0, 0, 0, 0, 1, 0, 1]) == .refused(1009))
        #expect(Self.read([0x81, 0x05]) == .refused(1002))
        #expect(Self.read([0xC1]) == .refused(1002))
        #expect(Self.read([0x81, 0x85, 0, 0, 0, 0, 0x61]) == .inputs([]))
    }

    @Test func whatIsHeldIsBounded() throws {
        var reader = WebSocketReader(messageBytes: 1_000)
        // Endless fragments: each is small, the message never ends.
        for _ in 0..<10 {
            var bytes = ByteBuffer(bytes: ClientFrame.bytes(reader.frames == 0 ? 1 : 0, Array(repeating: 0x61, count: 100), final: false))
            reader.append(&bytes)
            #expect(try reader.next() == nil)
        }
        #expect(reader.heldBytes == 1_000)
        var more = ByteBuffer(bytes: ClientFrame.bytes(0, [0x61], final: false))
        reader.append(&more)
        #expect(throws: WebSocketError.tooLarge(1_000)) { try reader.next() }
    }

    /// Random bytes neither trap the reader nor make it keep more than it may.
    @Test func randomBytes() {
        var generator = SeededGenerator(seed: 6455)
        for _ in 0..<3_000 {
            var reader = WebSocketReader(messageBytes: 300)
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                let payload = (0..<Int.random(in: 0...130, using: &generator)).map { _ in UInt8.random(in: 0...127, using: &generator) }
                bytes += ClientFrame.bytes(
                    [0, 1, 2, 8, 9, 10].randomElement(using: &generator) ?? 1, payload, final: Bool.random(using: &generator))
            }
            if Bool.random(using: &generator), let at = bytes.indices.randomElement(using: &generator) {
                bytes[at] ^= UInt8.random(in: 0...255, using: &generator)
            }
            do throws(WebSocketError) {
                var rest = bytes[...]
                while !rest.isEmpty {
                    let size = Int.random(in: 1...40, using: &generator)
                    var piece = ByteBuffer(bytes: rest.prefix(size))
                    rest = rest.dropFirst(size)
                    reader.append(&piece)
                    while try reader.next() != nil {}
                    #expect(reader.heldBytes <= 2 * 300 + 14)
                }
            } catch {
                #expect([1002, 1007, 1009].contains(error.code))
            }
        }
    }
}

/// A server's frames, byte by byte as in RFC 6455 §5.2.
@Suite struct WebSocketWriterTests {
    @Test func lengths() {
        #expect(Array(WebSocketWriter.text("Hello").readableBytesView) == [0x81, 0x05] + Array("Hello".utf8))
        #expect(Array(WebSocketWriter.ping().readableBytesView) == [0x89, 0x00])
        #expect(Array(WebSocketWriter.pong(ByteBuffer(bytes: [7])).readableBytesView) == [0x8A, 0x01, 7])
        #expect(Array(WebSocketWriter.text(String(repeating: "a", count: 126)).readableBytesView.prefix(4)) == [0x81, 126, 0, 126])
        #expect(
            Array(WebSocketWriter.text(String(repeating: "a", count: 65_536)).readableBytesView.prefix(10))
                == [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0])
    }

    @Test func closing() {
        #expect(Array(WebSocketWriter.close(1001, "gone").readableBytesView) == [0x88, 0x06, 0x03, 0xE9] + Array("gone".utf8))
        let long = WebSocketWriter.close(1008, String(repeating: "é", count: 100))
        #expect(long.readableBytes <= 127)
        #expect(long.getInteger(at: 1, as: UInt8.self).map(Int.init) == long.readableBytes - 2)
    }
}
