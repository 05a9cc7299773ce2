import LibC

/// An address to listen on or connect to, written `HOST:PORT` (IPv6 in brackets). A plain value.
package struct HostPort: Sendable, Hashable, CustomStringConvertible {
    /// A host name, or an IPv4 or IPv6 address without brackets.
    package var host: String
    /// 0…65535; 0 lets the system choose.
    package var port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    package static let expected = "HOST:PORT, e.g. 0.0.0.0:1935 or [::]:1935"

    package init(parsing text: String) throws(ValueProblem) {
        let host: Substring
        let portText: Substring
        if text.hasPrefix("[") {
            guard let close = text.firstIndex(of: "]"), text[text.index(after: close)...].hasPrefix(":") else {
                throw ValueProblem("\"\(text)\" is not an address; expected \(Self.expected)")
            }
            host = text[text.index(after: text.startIndex)..<close]
            portText = text[text.index(close, offsetBy: 2)...]
            // RFC 4007 §11: a link-local address may carry its zone.
            let address = host.prefix { $0 != "%" }
            guard address.endIndex == host.endIndex || host.suffix(from: address.endIndex).count > 1,
                IPText.v6(String(address)) != nil
            else {
                throw ValueProblem("\"\(host)\" is not an IPv6 address; expected \(Self.expected)")
            }
        } else {
            guard let colon = text.lastIndex(of: ":") else {
                let missing = Int(text) == nil ? "port" : "host"
                throw ValueProblem("\"\(text)\" has no \(missing); expected \(Self.expected)")
            }
            host = text[..<colon]
            portText = text[text.index(after: colon)...]
            if host.contains(":") {
                throw ValueProblem("\"\(text)\" has an IPv6 address without brackets; expected \(Self.expected)")
            }
            guard Self.isHostName(host) else {
                throw ValueProblem("\"\(text)\" has no valid host; expected \(Self.expected)")
            }
        }
        guard (1...5).contains(portText.utf8.count), portText.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = Int(portText),
            port <= 65535
        else {
            throw ValueProblem("\"\(portText)\" is not a port (0 to 65535); expected \(Self.expected)")
        }
        self.init(host: String(host), port: port)
    }

    /// Whether a listener with this host is on all addresses.
    package var isEverywhere: Bool { (IPText.v4(self.host) ?? IPText.v6(self.host) ?? [1]).allSatisfy { $0 == 0 } }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Whether one process cannot listen on both. Port 0 never clashes, since the system chooses a free one.
    package func clashes(with other: HostPort) -> Bool {
        guard port == other.port, port != 0 else { return false }
        let mine = Self.names(host)
        let theirs = Self.names(other.host)
        // A wildcard occupies the port on every address; on Linux, `::` occupies IPv4's too (bindv6only = 0).
        return mine.contains("*") || theirs.contains("*") || !mine.isDisjoint(with: theirs)
    }

    private static func names(_ host: String) -> Set<String> {
        if let bytes = IPText.v4(host) ?? IPText.v6(host) {
            return bytes.allSatisfy({ $0 == 0 }) ? ["*"] : ["\(bytes)"]
        }
        let name = host.lowercased()
        return name == "localhost" ? [name, "\(IPText.v4("127.0.0.1") ?? [])", "\(IPText.v6("::1") ?? [])"] : [name]
    }

    /// Checks for letters as in RFC 1123 §2.1. A name that looks like a number must be a whole IPv4 address, since resolvers read `127.1`
    /// differently.
    private static func isHostName(_ text: Substring) -> Bool {
        guard (1...253).contains(text.utf8.count) else { return false }
        if text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }) { return IPText.v4(String(text)) != nil }
        return text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
            (1...63).contains(label.utf8.count) && !label.hasPrefix("-") && !label.hasSuffix("-")
                && label.utf8.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), 0x30...0x39, UInt8(ascii: "-"),
                        UInt8(ascii: "_"):
                        true
                    default: false
                    }
                }
        }
    }
}
