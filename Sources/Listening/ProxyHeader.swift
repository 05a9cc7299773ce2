package import NIOCore
import Support

/// The header that a TCP proxy sends first: it names the client. A plain value; pure.
///
/// ```
/// v1  "PROXY TCP4 203.0.113.9 198.51.100.1 40000 1935\r\n", 107 bytes at most
/// v2  0D 0A 0D 0A 00 0D 0A 51 55 49 54 0A │ version, command │ family, transport │ length (16 bits) │ addresses, TLVs
/// ```
/// Source: haproxy.org/download/3.0/doc/proxy-protocol.txt.
package enum ProxyHeader: Equatable {
    /// The proxy connects for this client.
    case client(SocketAddress)
    /// The proxy connects for a client whose address it cannot name. That is v1 UNKNOWN, v2 AF_UNSPEC and Unix sockets.
    case unknownClient
    /// The proxy connects for itself: a health check (v2 LOCAL).
    case proxyItself

    /// Bytes of the longest v1 header, including CR and LF (§2.1).
    static let longestV1 = 107
    /// Most bytes accepted after the fixed part of a v2 header. More than any addresses (216) and the TLVs in use need.
    static let longestV2 = 536

    private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    private static let word = Array("PROXY ".utf8)
    /// Bytes of the signature, command, family and length.
    private static let fixedV2 = 16

    /// Consumes the header. Returns nil, consuming nothing, if more bytes are needed. Throws as soon as the bytes cannot become a header.
    init?(_ bytes: inout ByteBuffer) throws(ProxyHeaderError) {
        let view = bytes.readableBytesView
        guard let first = view.first else { return nil }
        let start = first == Self.signature[0] ? Self.signature : Self.word
        guard view.elementsEqual(start.prefix(view.count)) || view.starts(with: start) else { throw .missing }
        guard view.count >= start.count else { return nil }
        let found = start.count == Self.word.count ? try Self.v1(view) : try Self.v2(view)
        guard let (header, length) = found else { return nil }
        bytes.moveReaderIndex(forwardBy: length)
        self = header
    }

    // MARK: Version 1

    private static func v1(_ view: ByteBufferView) throws(ProxyHeaderError) -> (ProxyHeader, Int)? {
        let line = view.prefix(self.longestV1)
        guard let end = line.firstIndex(of: 0x0A) else {
            if line.count == self.longestV1 { throw .malformed("a v1 line of more than \(self.longestV1) bytes") }
            return nil
        }
        let length = end - line.startIndex + 1
        guard length >= 2, line[end - 1] == 0x0D else { throw .malformed("a v1 line that does not end with CR and LF") }
        // Anything but ASCII matches no expected field.
        let fields = String(decoding: line[..<(end - 1)], as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
        // §2.1: ignore the fields after UNKNOWN.
        if fields.count >= 2, fields[1] == "UNKNOWN" { return (.unknownClient, length) }
        guard fields.count == 6 else { throw .malformed("a v1 line of \(fields.count) fields; expected 6") }
        let parse: (String) -> [UInt8]?
        switch fields[1] {
        case "TCP4": parse = IPText.v4
        case "TCP6": parse = IPText.v6
        default: throw .malformed("a v1 line that names neither TCP4, TCP6 nor UNKNOWN")
        }
        guard let source = parse(String(fields[2])), parse(String(fields[3])) != nil, let port = self.port(fields[4]),
            self.port(fields[5]) != nil
        else { throw .malformed("a v1 line with an invalid address or port") }
        return (.client(try self.address(source, port)), length)
    }

    private static func port(_ text: Substring) -> Int? {
        guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), text == "0" || text.first != "0",
            let port = Int(text), port <= 65_535
        else { return nil }
        return port
    }

    // MARK: Version 2

    private static func v2(_ view: ByteBufferView) throws(ProxyHeaderError) -> (ProxyHeader, Int)? {
        // Check byte by byte, to reject a bad header before the rest arrives.
        let start = view.startIndex
        guard view.count > 12 else { return nil }
        let command = view[start + 12]
        guard command >> 4 == 2 else { throw .malformed("version \(command >> 4); expected 2") }
        guard command & 15 <= 1 else { throw .malformed("v2 command \(command & 15); expected LOCAL or PROXY") }
        guard view.count >= self.fixedV2 else { return nil }
        let family = view[start + 13]
        let length = Int(view[start + 14]) << 8 | Int(view[start + 15])
        guard length <= self.longestV2 else {
            throw .malformed("a v2 header with \(length) bytes of addresses; expected \(self.longestV2) at most")
        }
        let whole = self.fixedV2 + length
        // §2.2: ignore the addresses of LOCAL.
        let addressBytes: Int
        switch (command & 15, family) {
        case (0, _), (_, 0x00), (_, 0x31), (_, 0x32): addressBytes = 0
        case (_, 0x11): addressBytes = 4
        case (_, 0x21): addressBytes = 16
        default: throw .malformed("v2 family and transport 0x\(SecretText.hex([family])); expected TCP over IPv4 or IPv6")
        }
        guard addressBytes == 0 || length >= addressBytes * 2 + 4 else {
            throw .malformed("a v2 header with \(length) bytes of addresses; expected \(addressBytes * 2 + 4) at least")
        }
        guard view.count >= whole else { return nil }
        guard command & 15 == 1 else { return (.proxyItself, whole) }
        guard addressBytes > 0 else { return (.unknownClient, whole) }
        let source = Array(view[(start + self.fixedV2)...].prefix(addressBytes))
        let port = start + self.fixedV2 + addressBytes * 2
        return (.client(try self.address(source, Int(view[port]) << 8 | Int(view[port + 1]))), whole)
    }

    private static func address(_ bytes: [UInt8], _ port: Int) throws(ProxyHeaderError) -> SocketAddress {
        do {
            return try SocketAddress(packedIPAddress: ByteBuffer(bytes: bytes), port: port)
        } catch {
            throw .malformed("an invalid address")
        }
    }
}

/// The reason why bytes are not a PROXY protocol header.
enum ProxyHeaderError: Error, Equatable, CustomStringConvertible {
    case missing
    case malformed(String)

    var description: String {
        switch self {
        case .missing: "no PROXY protocol header; expected one of version 1 or 2 (setting access.proxyProtocolFrom)"
        case .malformed(let what): "an invalid PROXY protocol header: \(what)"
        }
    }
}
