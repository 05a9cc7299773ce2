/// Host and port of a URL, taken only where every reader takes them the same way. A plain value.
package struct URLAuthority: Sendable, Equatable {
    package enum Host: Sendable, Equatable {
        /// Lower case.
        case name(String)
        /// 4 or 16 bytes, network order.
        case address([UInt8])

        /// As a URL has it.
        package var text: String {
            switch self {
            case .name(let name): name
            case .address(let bytes): bytes.count == 16 ? "[\(IPText.text(bytes))]" : IPText.text(bytes)
            }
        }
    }

    package let host: Host
    package let port: Int?

    /// What is wrong with it, in words that do not hold it: "has no valid host".
    package struct Problem: Error, Equatable {
        package let words: String
    }

    /// `expected` is what a whole URL should be, for the words.
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

    /// RFC 1123 §2.1. A last label that begins like a number makes it an address, which must then be a whole one: resolvers read `127.1`,
    /// `0x7f.1` and `2130706433` as they like.
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
