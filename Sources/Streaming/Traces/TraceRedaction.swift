/// Renders addresses and other texts of peers for traces, without secrets.
///
/// Stricter than the log's redaction, since a trace contains arbitrary text from peers at any place. Of a query it shows only known names, and only
/// values that cannot be secret. A value without state; works on bytes, where no combining mark can hide a separator.
package enum TraceRedaction {
    /// Bytes of a peer's text that are examined.
    private static let longestInput = 1_024
    private static let mostPairs = 12
    /// Replaces hidden text.
    package static let hidden = "***"

    /// Names that are shown, in lower case. None of them is a secret; most have one as their value.
    private static let knownNames: Set<String> = [
        "txsecret", "txtime", "token", "jwt", "password", "passwd", "pass", "pwd", "key", "streamkey", "stream_key", "apikey", "api_key",
        "secret", "ticket", "auth", "authorization", "access_token", "accesstoken", "bearer", "sign", "signature", "sig", "credential",
        "credentials", "user", "username", "userid", "room", "vhost", "session", "s", "t", "_hls_msn", "_hls_part", "_hls_skip",
    ]
    private static let harmlessValues: Set<String> = ["_hls_msn", "_hls_part", "_hls_skip"]

    /// Renders a URL, an app, a stream's name or a path. Hides user information, queries and anything that looks like either.
    package static func address(_ text: String) -> String {
        var rest = Array(text.utf8.prefix(self.longestInput))[...]
        var shown = ""
        if let scheme = self.scheme(rest) {
            shown = String(decoding: rest[..<scheme], as: UTF8.self)
            rest = rest[scheme...]
        }
        let end = self.queryStart(rest)
        let path = rest[..<(end?.lowerBound ?? rest.endIndex)]
        let query = end.map { rest[$0.upperBound...] }
        if let at = path.lastIndex(of: UInt8(ascii: "@")) {
            shown += "\(self.hidden)@" + self.path(path[(at + 1)...])
        } else if query?.contains(UInt8(ascii: "@")) == true, !path.contains(UInt8(ascii: "/")) {
            // "rtmp://user:pass?word@host": the apparent host may be a password.
            return self.clean(shown) + self.hidden
        } else {
            shown += self.path(path)
        }
        return self.clean(shown) + (query.map { "?" + self.query($0) } ?? "")
    }

    /// A query without its "?".
    package static func query(_ text: String) -> String { self.query(Array(text.utf8.prefix(self.longestInput))[...]) }

    private static func query(_ bytes: ArraySlice<UInt8>) -> String {
        let parts = bytes.split { "&;?#".utf8.contains($0) }
        let shown = parts.prefix(self.mostPairs).map { part in
            guard let mark = part.firstIndex(of: UInt8(ascii: "=")) else { return self.hidden }
            let name = String(decoding: part[..<mark], as: UTF8.self)
            guard self.knownNames.contains(name.lowercased()) else { return self.hidden }
            let value = part[(mark + 1)...]
            let isHarmless = self.harmlessValues.contains(name.lowercased()) && value.count <= 12 && value.allSatisfy(self.isAlphanumeric)
            return "\(name)=\(isHarmless ? String(decoding: value, as: UTF8.self) : self.hidden)"
        }
        return shown.joined(separator: "&") + (parts.count > self.mostPairs ? "&…" : "")
    }

    /// Renders text that is no address, such as a client's name. Hides all of it if it could hold a credential.
    package static func plain(_ text: String) -> String {
        let bytes = text.utf8.prefix(self.longestInput)
        let mayHide = bytes.contains { "=?&@%".utf8.contains($0) }
        return mayHide || self.looksLikeToken(bytes) ? "string(\(text.utf8.count))" : String(self.clean(text).prefix(64))
    }

    /// Whether a name chosen by a peer may be shown: letters only, since secrets have digits.
    package static func isName(_ text: String) -> Bool {
        (1...32).contains(text.utf8.count) && text.utf8.allSatisfy { self.isLetter($0) || $0 == UInt8(ascii: "_") }
    }

    /// Removes control characters and other invisible ones, so that they cannot break a log line or a terminal.
    package static func clean(_ text: String) -> String {
        if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text }
        var shown = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: shown += "?"
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }

    // MARK: Parts

    /// The index behind "scheme://".
    private static func scheme(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon - bytes.startIndex <= 8,
            bytes[bytes.startIndex..<colon].allSatisfy(self.isLetter), bytes[colon...].starts(with: [0x3A, 0x2F, 0x2F])
        else { return nil }
        return colon + 3
    }

    /// The first separator after which a query may begin, as sent or percent-encoded.
    private static func queryStart(_ bytes: ArraySlice<UInt8>) -> Range<Int>? {
        for index in bytes.indices {
            if "?#&;".utf8.contains(bytes[index]) { return index..<index + 1 }
            guard bytes[index] == UInt8(ascii: "%") else { continue }
            let code = String(decoding: bytes[(index + 1)...].prefix(2), as: UTF8.self).lowercased()
            // The same four separators, percent-encoded.
            if ["3f", "23", "26", "3b"].contains(code) { return index..<index + 3 }
        }
        return nil
    }

    /// Hides components that contain an assignment, are encoded twice or look like a token.
    private static func path(_ bytes: ArraySlice<UInt8>) -> String {
        bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { part in
            let text = String(decoding: part, as: UTF8.self)
            let lower = text.lowercased()
            let mayHide = part.contains(UInt8(ascii: "=")) || lower.contains("%3d") || lower.contains("%25") || self.looksLikeToken(part)
            return mayHide ? self.hidden : text
        }.joined(separator: "/")
    }

    /// A JWT begins with `{"` in base64.
    private static func looksLikeToken(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.count > 16 && String(decoding: bytes, as: UTF8.self).contains("eyJ")
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) }
    private static func isAlphanumeric(_ byte: UInt8) -> Bool { self.isLetter(byte) || (0x30...0x39).contains(byte) }
}
