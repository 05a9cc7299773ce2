import Support

/// Target of one of the server's own requests: an `http` or `https` URL in its plainest form. Checks, resolver and HTTP client thus cannot
/// read different hosts from it. A plain value.
struct OutboundURL: Sendable, Equatable {
    let isSecure: Bool
    let host: URLAuthority.Host
    let port: Int
    /// Path and query, beginning with "/". May hold secrets.
    let target: String

    /// The host as written in a URL.
    var hostText: String { self.host.text }

    /// The part that logs and errors may show, such as "https://example.com:8443".
    var origin: String {
        let isUsual = self.port == (self.isSecure ? 443 : 80)
        return "\(self.isSecure ? "https" : "http")://\(self.hostText)\(isUsual ? "" : ":\(self.port)")"
    }

    /// The whole URL.
    var text: String { self.origin + self.target }

    static let expected = "http:// or https://, a host name or address, a port if it is not the default one, and a path"

    /// Throws ``OutboundError/badURL(_:)``, whose text does not contain the URL.
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
        // RFC 3986 §3.2: the authority ends at the first of these characters.
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        guard !authority.contains("@") else { throw .badURL("contains a user name; expected \(Self.expected)") }
        do throws(URLAuthority.Problem) {
            let read = try URLAuthority(parsing: authority, expected: Self.expected)
            self.host = read.host
            self.port = read.port ?? (self.isSecure ? 443 : 80)
        } catch {
            throw .badURL(error.words)
        }
        // Drop the fragment, which clients do not send (RFC 3986 §3.5).
        let target = rest.dropFirst(authority.count).prefix { $0 != "#" }
        self.target = target.hasPrefix("/") ? String(target) : "/\(target)"
    }

    /// RFC 3986 §2: the characters allowed in a URL. Excludes the backslash, which some parsers treat as a slash.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"), UInt8(ascii: "`"),
            UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
            false
        default: byte > 0x20 && byte < 0x7F
        }
    }
}
