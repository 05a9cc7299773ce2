/// Where a request of the server's own goes: an `http` or `https` URL in its plainest form, so that whoever reads it next (checks, resolver,
/// HTTP client) cannot take another host out of it. A plain value.
struct OutboundURL: Sendable, Equatable {
    enum Host: Sendable, Equatable {
        /// Lower case.
        case name(String)
        /// 4 or 16 bytes, network order.
        case address([UInt8])
    }

    let isSecure: Bool
    let host: Host
    let port: Int
    /// Path and query, beginning with "/". May hold secrets.
    let target: String

    /// Host as a URL has it.
    var hostText: String {
        switch self.host {
        case .name(let name): name
        case .address(let bytes): bytes.count == 16 ? "[\(IPAddressBytes.text(bytes))]" : IPAddressBytes.text(bytes)
        }
    }

    /// "https://example.com:8443": what logs and errors may show.
    var origin: String {
        let isUsual = self.port == (self.isSecure ? 443 : 80)
        return "\(self.isSecure ? "https" : "http")://\(self.hostText)\(isUsual ? "" : ":\(self.port)")"
    }

    /// The whole of it.
    var text: String { self.origin + self.target }

    static let expected = "http:// or https://, a host name or address, a port if it is another than usual, and a path"

    /// Throws ``OutboundError/badURL(_:)``, whose words do not hold the URL.
    init(parsing text: String) throws(OutboundError) {
        guard text.utf8.count <= 2_048 else { throw .badURL("has \(text.utf8.count) bytes; expected 2,048 at most") }
        guard text.utf8.allSatisfy({ Self.isPlain($0) }) else { throw .badURL("holds characters that must be percent-encoded") }
        let lowered = text.lowercased()
        let rest: Substring
        if lowered.hasPrefix("https://") {
            self.isSecure = true
            rest = text.dropFirst(8)
        } else if lowered.hasPrefix("http://") {
            self.isSecure = false
            rest = text.dropFirst(7)
        } else {
            throw .badURL("is not http or https; expected \(Self.expected)")
        }
        // RFC 3986 §3.2: the authority ends at the first of these.
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        guard !authority.contains("@") else { throw .badURL("has a user name in it; expected \(Self.expected)") }
        let (host, port) = try Self.split(authority)
        self.host = host
        self.port = port ?? (self.isSecure ? 443 : 80)
        // The fragment stays with the client, RFC 3986 §3.5.
        let target = rest.dropFirst(authority.count).prefix { $0 != "#" }
        self.target = target.hasPrefix("/") ? String(target) : "/\(target)"
    }

    private static func split(_ authority: Substring) throws(OutboundError) -> (Host, Int?) {
        let hostText: Substring
        let host: Host
        if authority.hasPrefix("[") {
            guard let close = authority.firstIndex(of: "]"),
                let bytes = IPAddressBytes.v6(String(authority[authority.index(after: authority.startIndex)..<close]))
            else { throw .badURL("has no IPv6 address in its brackets") }
            hostText = authority[...close]
            host = .address(bytes)
        } else {
            hostText = authority.prefix { $0 != ":" }
            guard let found = Self.nameOrV4(hostText.lowercased()) else { throw .badURL("has no valid host; expected \(Self.expected)") }
            host = found
        }
        let portText = authority.dropFirst(hostText.count)
        if portText.isEmpty { return (host, nil) }
        guard portText.hasPrefix(":"), (2...6).contains(portText.utf8.count), let port = Int(portText.dropFirst()),
            portText.dropFirst().utf8.allSatisfy({ (0x30...0x39).contains($0) }), (1...65_535).contains(port)
        else { throw .badURL("has no valid port; expected 1 to 65535") }
        return (host, port)
    }

    /// RFC 1123 §2.1. A last label that is a number makes it an address, which must then be a whole one: resolvers read `127.1`, `0x7f.1`
    /// and `2130706433` as they like.
    private static func nameOrV4(_ text: String) -> Host? {
        guard (1...253).contains(text.utf8.count) else { return nil }
        if let bytes = IPAddressBytes.v4(text) { return .address(bytes) }
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        let isName = labels.allSatisfy { label in
            (1...63).contains(label.utf8.count) && !label.hasPrefix("-") && !label.hasSuffix("-")
                && label.utf8.allSatisfy { Self.isLetter($0) || Self.isDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }
        }
        guard isName, let last = labels.last, let first = last.utf8.first, !Self.isDigit(first) else { return nil }
        return .name(text)
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// RFC 3986 §2: what may stand in a URL at all. The backslash, which some parsers take for a slash, is not among it.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"), UInt8(ascii: "`"),
            UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
            false
        default: byte > 0x20 && byte < 0x7F
        }
    }
}
