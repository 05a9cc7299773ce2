package import ServerConfiguration
import Support

/// A URL's query in parts: `a=1&b=2`, with names and values percent-decoded. A plain value; accepts any text.
///
/// A `+` stays a `+`: these are URLs, not forms. Text that does not decode to UTF-8 stays as sent, so that it matches no credential by accident.
package struct QueryParameters {
    package struct Pair: Equatable {
        /// As sent.
        let raw: Substring
        let rawName: Substring
        /// Decoded.
        package let name: String
        /// Decoded; nil without "=".
        package let value: String?
    }

    package let pairs: [Pair]

    package init(_ query: String) {
        // Bytes: a player of HLS asks ten times a second, and characters cost as much as its whole answer.
        self.pairs = query.utf8.split(separator: UInt8(ascii: "&")).map { bytes in
            let part = Substring(bytes)
            let mark = part.utf8.firstIndex(of: UInt8(ascii: "="))
            let name = part[..<(mark ?? part.endIndex)]
            let value = mark.map { part[part.utf8.index(after: $0)...] }
            return Pair(raw: part, rawName: name, name: Self.decode(name), value: value.map(Self.decode))
        }
    }

    /// All values of this name; empty text for a name without "=".
    package func all(_ name: String) -> [String] {
        self.pairs.filter { $0.name == name }.map { $0.value ?? "" }
    }

    /// The query as sent, with `***` for each value that `isSecret` selects.
    func redacted(where isSecret: (Pair) -> Bool) -> String {
        self.pairs.map { pair in
            guard isSecret(pair) else { return String(pair.raw) }
            return pair.value == nil ? "***" : "\(pair.rawName)=***"
        }.joined(separator: "&")
    }

    /// Decodes RFC 3986 §2.1; leaves malformed encoding as it is.
    package static func decode(_ text: Substring) -> String { PercentCoding.decodeLeniently(text) }
}

/// The query parameters that are this server's credentials, and those that are secret. A plain value.
package struct CredentialParameters: Sendable {
    /// Where tokens are read, in the settings' order; new URLs have the first.
    let tokens: [String]
    private let names: Set<String>
    /// Parameters that this server checks, in lower case.
    let checked: Set<String>

    package init(_ credentials: ServerConfig.Credentials) {
        self.tokens = credentials.tokenParameters
        self.names = Set(self.tokens).union(["txSecret", "txTime"])
        self.checked = Set(self.tokens.map { $0.lowercased() }).union(["txsecret"])
    }

    /// Likely names of secrets of other servers, in lower case.
    private static let others: Set<String> = [
        "txtime", "token", "jwt", "password", "passwd", "pass", "pwd", "key", "streamkey", "stream_key", "apikey", "api_key", "secret",
        "ticket", "auth", "authorization", "access_token", "accesstoken", "bearer", "sign", "signature", "sig", "credential", "credentials",
    ]

    /// Removes every whole occurrence of the credential in `other` from the query. Returns the rest and whether a credential remains.
    package func own(of query: String, beside other: String) -> (query: String, hasCredential: Bool) {
        var rest = QueryParameters(query).pairs
        let taken = QueryParameters(other).pairs.filter { self.names.contains($0.name) }
        while !taken.isEmpty, let without = Self.remove(taken, from: rest) { rest = without }
        return (rest.map { String($0.raw) }.joined(separator: "&"), rest.contains { self.names.contains($0.name) })
    }

    /// Removes the pairs `taken`; nil unless all are there.
    private static func remove(_ taken: [QueryParameters.Pair], from pairs: [QueryParameters.Pair]) -> [QueryParameters.Pair]? {
        var rest = pairs
        for pair in taken {
            guard let index = rest.firstIndex(of: pair) else { return nil }
            rest.remove(at: index)
        }
        return rest
    }

    /// The query for logs, events and lists. Hides values with secret names or the look of a token, and all text without a name.
    func redact(_ query: String) -> String {
        QueryParameters(query).redacted { pair in
            guard let value = pair.value else { return true }
            let name = pair.name.lowercased()
            return self.checked.contains(name) || Self.others.contains(name) || Self.looksLikeToken(value)
        }
    }

    /// The query for a back end, in hooks and callbacks. Hides this server's secrets only, since the back end may have its own to check.
    package func redactOwn(_ query: String) -> String {
        QueryParameters(query).redacted { $0.value != nil && self.checked.contains($0.name.lowercased()) }
    }

    /// A JWT begins with `{"` in base64.
    private static func looksLikeToken(_ value: String) -> Bool {
        value.hasPrefix("eyJ") && value.contains(".")
    }
}
