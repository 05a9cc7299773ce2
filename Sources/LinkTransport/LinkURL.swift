package import Support

/// The address of a link: an `rtmp` or `rtmps` URL in its plainest form. A plain value.
///
/// Accepts only what every reader parses alike. librtmp reads its own options after a space and writes names unchanged, so spaces,
/// control characters and user names are rejected.
package struct LinkURL: Sendable, Equatable {
    /// Whether the scheme is rtmps, that is TLS.
    package let isSecure: Bool
    package let host: URLAuthority.Host
    package let port: Int
    /// One or two path components, as ffmpeg and librtmp split them: two when at least one more follows.
    package let app: String
    /// The name to publish or play, query included. It holds credentials: never log it.
    package let stream: String

    package static let expected =
        "rtmp:// or rtmps://, a host name or address, a port if it is not the default one, an app and a stream name"
    /// Bytes.
    package static let maxBytes = 2_048
    /// Bytes.
    package static let maxAppBytes = 256

    /// The host in URL form.
    package var hostText: String { self.host.text }

    /// "rtmps://cdn.example", with the port when it is unusual; no path.
    package var origin: String {
        let isUsual = self.port == (self.isSecure ? 443 : 1935)
        return "\(self.isSecure ? "rtmps" : "rtmp")://\(self.hostText)\(isUsual ? "" : ":\(self.port)")"
    }

    /// For logs and the API: "rtmps://cdn.example/live/abcd***". Many services use the stream name as a key, so it shows a third of it,
    /// four letters at most, and no query.
    package var redacted: String {
        let name = self.stream.prefix { $0 != "?" }
        return "\(self.origin)/\(self.app)/\(name.prefix(min(4, name.count / 3)))***"
    }

    /// The app's URL, which `connect` sends.
    var tcUrl: String { "\(self.origin)/\(self.app)" }

    /// Throws ``LinkError/badURL(_:)``, whose text does not contain the URL.
    package init(parsing text: String) throws(LinkError) {
        guard text.utf8.count <= Self.maxBytes else {
            throw .badURL("has \(text.utf8.count) bytes; expected \(Self.maxBytes) at most")
        }
        guard !text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
            throw .badURL("holds spaces or control characters; expected none")
        }
        guard text.utf8.allSatisfy(Self.isPlain) else { throw .badURL("holds characters that must be percent-encoded") }
        let parts = try Self.splitScheme(text)
        self.isSecure = parts.isSecure
        let authority = parts.rest.prefix { $0 != "/" && $0 != "?" }
        guard !authority.contains("@") else {
            throw .badURL("contains a user name; services that need one expect it in the stream name's query")
        }
        do throws(URLAuthority.Problem) {
            let read = try URLAuthority(parsing: authority, expected: Self.expected)
            self.host = read.host
            self.port = read.port ?? (self.isSecure ? 443 : 1935)
        } catch {
            throw .badURL(error.words)
        }
        let path = parts.rest.dropFirst(authority.count)
        let query = path.drop { $0 != "?" }
        let components = path.dropLast(query.count).dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        guard components.count >= 2 else { throw .badURL("names no app and stream; expected \(Self.expected)") }
        guard components.allSatisfy({ !$0.isEmpty }) else { throw .badURL("has an empty part in its path; expected \(Self.expected)") }
        let appParts = components.count > 2 ? 2 : 1
        self.app = components.prefix(appParts).joined(separator: "/")
        self.stream = components.dropFirst(appParts).joined(separator: "/") + query
        guard self.app.utf8.count <= Self.maxAppBytes else {
            throw .badURL("has an app of \(self.app.utf8.count) bytes; expected \(Self.maxAppBytes) at most")
        }
    }

    private static func splitScheme(_ text: String) throws(LinkError) -> (isSecure: Bool, rest: Substring) {
        guard let colon = text.firstRange(of: "://") else { throw .badURL("has no scheme; expected \(Self.expected)") }
        switch text[..<colon.lowerBound].lowercased() {
        case "rtmp": return (false, text[colon.upperBound...])
        case "rtmps": return (true, text[colon.upperBound...])
        case "rtmpe", "rtmpt", "rtmpte", "rtmpts": throw .badURL("has a scheme that is not supported; use rtmps:// for encryption")
        default: throw .badURL("is not rtmp or rtmps; expected \(Self.expected)")
        }
    }

    /// RFC 3986 §2: the characters allowed in a URL. A fragment has no meaning here.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"), UInt8(ascii: "`"),
            UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"), UInt8(ascii: "#"):
            false
        default: byte > 0x20 && byte < 0x7F
        }
    }
}

extension LinkURL {
    /// Scheme, host and port of a URL, possibly without a path; nil when unreadable. For display.
    static func origin(of text: String) -> String? {
        let head = text.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3).joined(separator: "/")
        do throws(LinkError) {
            return try LinkURL(parsing: "\(head)/app/name").origin
        } catch {
            return nil
        }
    }

    /// Makes a server's text safe to show. Removes this URL's stream name and query values (servers repeat requested names) and control characters;
    /// keeps 200 characters at most.
    func scrub(_ text: String) -> String {
        var words = String(text.prefix(1_000).map { $0.unicodeScalars.contains(where: ShownText.isUnsafe) ? " " : $0 })
        for secret in self.secrets { words = words.replacing(secret, with: "***") }
        return words.count <= 200 ? words : "\(words.prefix(199))…"
    }

    /// Longest first, so that replacing one secret does not leave a part of a longer one.
    private var secrets: [String] {
        let name = self.stream.prefix { $0 != "?" }
        let query = self.stream.dropFirst(name.count).dropFirst()
        var secrets = [self.stream, String(name), String(query)]
        secrets += name.split(separator: "/").map(String.init)
        for pair in query.split(separator: "&") {
            secrets.append(String(pair.drop { $0 != "=" }.dropFirst()))
        }
        return secrets.filter { $0.utf8.count >= 4 }.sorted { $0.utf8.count > $1.utf8.count }
    }
}
