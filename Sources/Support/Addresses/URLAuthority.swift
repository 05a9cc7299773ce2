/// Host and port of a URL, accepted only where every reader parses them alike. A plain value.
package struct URLAuthority: Sendable, Equatable {
    package enum Host: Sendable, Equatable {
        /// Lower case.
        case name(String)
        /// 4 or 16 bytes, network order.
        case address([UInt8])

        /// The host in URL form.
        package var text: String {
            switch self {
            case .name(let name): name
            case .address(let bytes): bytes.count == 16 ? "[\(IPText.text(bytes))]" : IPText.text(bytes)
            }
        }
    }

    package let host: Host
    package let port: Int?

    /// The fault, in a text that does not quote the authority: "has no valid host".
    package struct Problem: Error, Equatable {
        package let words: String
    }

    /// `expected` describes a whole valid URL, for the error's text.
    package init(parsing authority: Substring, expected: String) throws(Problem) {
        let hostText: Substring
        if authority.hasPrefix("[") {
            guard let close = authority.firstIndex(of: "]"),
                let bytes = IPText.v6(String(authority[authority.index(after: authority.startIndex)..<close]))
            else { throw Problem(words: "has no IPv6 address in its brackets") }
            hostText = authority[...close]
            self.host = .address(bytes)
        } else {
            hostText = authority.prefix { $0 != ":" }
            guard let found = Self.nameOrV4(hostText.lowercased()) else { throw Problem(words: "has no valid host; expected \(expected)") }
            self.host = found
        }
        let portText = authority.dropFirst(hostText.count)
        guard !portText.isEmpty else {
            self.port = nil
            return
        }
        guard portText.hasPrefix(":"), (2...6).contains(portText.utf8.count), let port = Int(portText.dropFirst()),
            portText.dropFirst().utf8.allSatisfy(Self.isDigit), (1...65_535).contains(port)
        else { throw Problem(words: "has no valid port; expected 1 to 65535") }
        self.port = port
    }

    /// Parses a name (RFC 1123 §2.1) or an IPv4 address. A last label that begins with a digit must be part of a full address:
    /// resolvers disagree on `127.1`, `0x7f.1` and `2130706433`.
    private static func nameOrV4(_ text: String) -> Host? {
        guard (1...253).contains(text.utf8.count) else { return nil }
        if let bytes = IPText.v4(text) { return .address(bytes) }
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        let isName = labels.allSatisfy { label in
            (1...63).contains(label.utf8.count) && !label.hasPrefix("-") && !label.hasSuffix("-")
                && label.utf8.allSatisfy { byte in
                    Self.isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || byte == UInt8(ascii: "-")
                        || byte == UInt8(ascii: "_")
                }
        }
        guard isName, let first = labels.last?.utf8.first, !Self.isDigit(first) else { return nil }
        return .name(text)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
