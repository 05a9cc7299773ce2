import ArgumentParser
import Support

/// The address of a server's HTTP side: `http://127.0.0.1:8080`. A path may precede the API's (behind a proxy). A plain value.
package struct ServerAddress: ExpressibleByArgument, Equatable, Sendable, CustomStringConvertible {
    package let isTLS: Bool
    package let host: String
    package let port: Int
    /// Without a trailing slash.
    package let path: String

    package static let standard = ServerAddress(isTLS: false, host: "127.0.0.1", port: 8080, path: "")
    package static let expected = "expected http:// or https://, a host and perhaps a port, such as http://127.0.0.1:8080"

    private init(isTLS: Bool, host: String, port: Int, path: String) {
        self.isTLS = isTLS
        self.host = host
        self.port = port
        self.path = path
    }

    package init?(argument: String) {
        let lower = argument.lowercased()
        let isTLS = lower.hasPrefix("https://")
        guard isTLS || lower.hasPrefix("http://") else { return nil }
        let rest = argument.dropFirst(isTLS ? 8 : 7)
        let authority = rest.prefix { $0 != "/" }
        var path = String(rest[authority.endIndex...])
        while path.hasSuffix("/") { path.removeLast() }
        // Reject user, query and fragment, and anything that could end the request line.
        guard argument.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), !argument.contains(where: { "@?#\\\"<>".contains($0) }) else {
            return nil
        }
        let host: Substring
        let port: Substring?
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            host = authority[authority.index(after: authority.startIndex)..<end]
            let after = authority[authority.index(after: end)...]
            guard after.isEmpty || after.hasPrefix(":"), host.contains(":") else { return nil }
            port = after.isEmpty ? nil : after.dropFirst()
        } else {
            let parts = authority.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            host = parts.first ?? ""
            port = parts.count > 1 ? parts[1] : nil
            guard !host.contains("["), !host.contains("]") else { return nil }
        }
        let number = port.map { Int($0) ?? 0 } ?? (isTLS ? 443 : 80)
        guard !host.isEmpty, (1...65_535).contains(number) else { return nil }
        self.init(isTLS: isTLS, host: String(host), port: number, path: path)
    }

    /// The host as written in URLs and the `Host` header.
    package var authority: String {
        let host = self.host.contains(":") ? "[\(self.host)]" : self.host
        return self.port == (self.isTLS ? 443 : 80) ? host : "\(host):\(self.port)"
    }

    /// Whether the server is on this machine and may receive its data directory's secrets.
    package var isLoopback: Bool {
        let bytes = self.host.split(separator: ".", omittingEmptySubsequences: false)
        return self.host.lowercased() == "localhost" || self.host == "::1"
            || bytes.count == 4 && bytes[0] == "127" && bytes.allSatisfy { UInt8($0) != nil }
    }

    package var description: String { "\(self.isTLS ? "https" : "http")://\(self.authority)\(self.path)" }

    /// Builds a path of the server with its query, percent-encoded. Pairs without a value are omitted.
    package func target(_ segments: [String], _ query: [(String, String?)] = []) -> String {
        var out = self.path
        for segment in segments { out += "/" + Self.encoded(segment) }
        var separator = "?"
        for (name, value) in query {
            guard let value else { continue }
            out += "\(separator)\(name)=\(Self.encoded(value))"
            separator = "&"
        }
        return out
    }

    /// Encodes all but unreserved characters, RFC 3986 §2.3. A segment of dots alone would be a step in the path (§5.2.4).
    package static func encoded(_ text: String) -> String {
        var out = ""
        let dots = text == "." || text == ".."
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "."): out += dots ? "%2E" : "."
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"):
                out.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                out += "%" + String(hex: byte, digits: 2, uppercase: true)
            }
        }
        return out
    }
}
