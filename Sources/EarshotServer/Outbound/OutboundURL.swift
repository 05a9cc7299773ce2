import Upstream

/// Where a request of the server's own goes: an `http` or `https` URL in its plainest form, so that whoever reads it next (checks, resolver,
/// HTTP client) cannot take another host out of it. A plain value.
struct OutboundURL: Sendable, Equatable {
    let isSecure: Bool
    let host: URLAuthority.Host
    let port: Int
    /// Path and query, beginning with "/". May hold secrets.
    let target: String

    /// Host as a URL has it.
    var hostText: String { self.host.text }

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
        do throws(URLAuthority.Problem) {
            let read = try URLAuthority(parsing: authority, expected: Self.expected)
            self.host = read.host
            self.port = read.port ?? (self.isSecure ? 443 : 80)
        } catch {
            throw .badURL(error.words)
        }
        // The fragment stays with the client, RFC 3986 §3.5.
        let target = rest.dropFirst(authority.count).prefix { $0 != "#" }
        self.target = target.hasPrefix("/") ? String(target) : "/\(target)"
    }

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
