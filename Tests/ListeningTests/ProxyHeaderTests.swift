import NIOCore
import ServerTestSupport
import TestSupport
import Testing

@testable import Listening
@testable import Support

/// The PROXY protocol's headers, written by hand from its specification.
@Suite struct ProxyHeaderTests {
    static let v4Addresses: [UInt8] = [203, 0, 113, 9, 198, 51, 100, 1, 0x9C, 0x40, 0x07, 0x8F]
    static let v6Addresses: [UInt8] =
        [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7] + [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11)
        + [1, 0x9C, 0x40, 0x07, 0x8F]
    /// A PP2_TYPE_NOOP TLV of five bytes.
    static let tlv: [UInt8] = [4, 0, 5, 1, 2, 3, 4, 5]

    struct Vector: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: [UInt8]
        /// "address:port", or the case's name.
        let header: String
        var testDescription: String { self.name }

        init(_ name: String, _ bytes: [UInt8], _ header: String) {
            self.name = name
            self.bytes = bytes
            self.header = header
        }

        init(_ line: String, _ header: String) { self.init(line, Array("\(line)\r\n".utf8), header) }
    }

    static let good: [Vector] = [
        Vector("PROXY TCP4 203.0.113.9 198.51.100.1 40000 1935", "203.0.113.9:40000"),
        Vector("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535", "255.255.255.255:65535"),
        Vector("PROXY TCP4 0.0.0.0 0.0.0.0 0 0", "0.0.0.0:0"),
        Vector("PROXY TCP6 2001:db8::7 2001:db8::1 40000 1935", "[2001:db8::7]:40000"),
        Vector(
            "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535",
            "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"),
        Vector("PROXY UNKNOWN", "unknown"),
        Vector(
            "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535", "unknown"),
        Vector("v2 over IPv4", ProxyBytes.v2(0x21, 0x11, v4Addresses), "203.0.113.9:40000"),
        Vector("v2 over IPv4 with TLVs", ProxyBytes.v2(0x21, 0x11, v4Addresses + tlv), "203.0.113.9:40000"),
        Vector("v2 over IPv6", ProxyBytes.v2(0x21, 0x21, v6Addresses), "[2001:db8::7]:40000"),
        Vector(
            "v2 over IPv6, as long as may be", ProxyBytes.v2(0x21, 0x21, v6Addresses + [UInt8](repeating: 0, count: 500)),
            "[2001:db8::7]:40000"),
        Vector("v2 LOCAL", ProxyBytes.v2(0x20, 0x00, []), "itself"),
        Vector("v2 LOCAL with addresses", ProxyBytes.v2(0x20, 0x11, v4Addresses), "itself"),
        Vector("v2 LOCAL, whatever it is of", ProxyBytes.v2(0x20, 0xFF, tlv), "itself"),
        Vector("v2 without addresses", ProxyBytes.v2(0x21, 0x00, []), "unknown"),
        Vector("v2 without addresses, TLVs", ProxyBytes.v2(0x21, 0x00, tlv), "unknown"),
        Vector("v2 over a Unix socket", ProxyBytes.v2(0x21, 0x31, [UInt8](repeating: 0x61, count: 216)), "unknown"),
    ]

    private static func text(_ header: ProxyHeader?) -> String {
        switch header {
        case .client(let address): address.hostAndPort
        case .unknownClient: "unknown"
        case .proxyItself: "itself"
        case nil: "more"
        }
    }

    /// Reads each header whole, with bytes behind it, and cut at each byte. An incomplete header consumes nothing.
    @Test(arguments: good) func headersHoweverTheyAreCut(_ vector: Vector) throws {
        var whole = ByteBuffer(bytes: vector.bytes + [1, 2, 3])
        #expect(Self.text(try ProxyHeader(&whole)) == vector.header)
        #expect(Array(whole.readableBytesView) == [1, 2, 3], "what follows is the client's")
        for cut in 0..<vector.bytes.count {
            var part = ByteBuffer(bytes: vector.bytes[..<cut])
            #expect(try ProxyHeader(&part) == nil, "cut at \(cut)")
            #expect(part.readableBytes == cut)
            part.writeBytes(vector.bytes[cut...])
            #expect(Self.text(try ProxyHeader(&part)) == vector.header && part.readableBytes == 0, "cut at \(cut)")
        }
    }

    static let bad: [Vector] =
        [
            " ", "PROXY", "PROXY TCP4", "PROXY TCP4 203.0.113.9 198.51.100.1 40000", "PROXY TCP4 203.0.113.9 198.51.100.1 40000 1935 1",
            "PROXY TCP4 203.0.113.9 198.51.100.1 40000 1935 ", "PROXY  TCP4 203.0.113.9 198.51.100.1 40000 1935",
            "proxy TCP4 203.0.113.9 198.51.100.1 40000 1935", "PROXY tcp4 203.0.113.9 198.51.100.1 40000 1935",
            "PROXY TCP4 203.0.113 198.51.100.1 40000 1935", "PROXY TCP4 2001:db8::7 2001:db8::1 40000 1935",
            "PROXY TCP6 203.0.113.9 198.51.100.1 40000 1935", "PROXY TCP4 203.0.113.9 x 40000 1935",
            "PROXY TCP4 203.0.113.9 198.51.100.1 65536 1935", "PROXY TCP4 203.0.113.9 198.51.100.1 040 1935",
            "PROXY TCP4 203.0.113.9 198.51.100.1 -1 1935", "PROXY TCP4 203.0.113.9 198.51.100.1 40000 +1",
            "PROXY TCP4 203.0.113.9%00 198.51.100.1 40000 1935", "PROXY UDP4 203.0.113.9 198.51.100.1 40000 1935",
            "PROXY UNKNOWN" + String(repeating: "x", count: 120), "GET / HTTP/1.1", "\u{3}RTMP",
        ].map { Vector($0, "") } + [
            Vector("a v1 line that ends with LF alone", Array("PROXY TCP4 203.0.113.9 198.51.100.1 40000 1935\n".utf8), ""),
            Vector("version 1 in a v2 header", ProxyBytes.v2(0x11, 0x11, v4Addresses), ""),
            Vector("version 3", ProxyBytes.v2(0x31, 0x11, v4Addresses), ""),
            Vector("an unknown command", ProxyBytes.v2(0x22, 0x11, v4Addresses), ""),
            Vector("UDP", ProxyBytes.v2(0x21, 0x12, v4Addresses), ""),
            Vector("an unknown family", ProxyBytes.v2(0x21, 0x41, v4Addresses), ""),
            Vector("too few addresses", ProxyBytes.v2(0x21, 0x21, v4Addresses), ""),
            Vector("no addresses", ProxyBytes.v2(0x21, 0x11, []), ""),
            Vector("a length that is a lie", ProxyBytes.v2(0x21, 0x11, v4Addresses, length: 65_535), ""),
            Vector("one byte too long", ProxyBytes.v2(0x21, 0x11, v4Addresses, length: 537), ""),
            Vector("a TLS hello", [0x16, 0x03, 0x01, 0x02, 0x00], ""),
            Vector("an RTMP handshake", [3] + [UInt8](repeating: 0, count: 64), ""),
            Vector("a signature with a slip", Array(ProxyBytes.signature[..<11]) + [0x0B], ""),
        ]

    @Test(arguments: bad) func whatIsNoHeader(_ vector: Vector) {
        let error = #expect(throws: ProxyHeaderError.self) {
            var bytes = ByteBuffer(bytes: vector.bytes)
            _ = try ProxyHeader(&bytes)
        }
        #expect(error.map { !$0.description.isEmpty } == true)
        // Fed byte by byte it throws too, within the longest header's length.
        var bytes = ByteBuffer()
        #expect(throws: ProxyHeaderError.self) {
            for byte in vector.bytes {
                bytes.writeInteger(byte)
                _ = try ProxyHeader(&bytes)
            }
        }
        #expect(bytes.readableBytes <= ProxyHeader.longestV1)
    }

    /// Any bytes give a header, an error, or a bounded wait for more.
    @Test(.seeded) func anyBytes() {
        var random = TestRandom()
        for _ in 0..<20_000 {
            let seed = Self.good.randomElement(using: &random)?.bytes ?? []
            var bytes = seed
            for _ in 0..<Int.random(in: 0...4, using: &random) where !bytes.isEmpty {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random)))
            var buffer = ByteBuffer(bytes: bytes)
            do throws(ProxyHeaderError) {
                let found = try ProxyHeader(&buffer)
                if found == nil { #expect(buffer.readableBytes < 16 + ProxyHeader.longestV2) }
            } catch {
                #expect(buffer.readableBytes == bytes.count)
            }
        }
    }
}
