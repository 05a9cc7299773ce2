import LibC

/// Converts IP addresses between text and bytes in network order. Pure; any thread.
package enum IPText {
    /// Accepts four numbers with three dots, nothing else.
    package static func v4(_ text: String) -> [UInt8]? { Self.parse(text, AF_INET, count: 4) }

    /// RFC 4291 §2.2, without a zone.
    package static func v6(_ text: String) -> [UInt8]? { Self.parse(text, AF_INET6, count: 16) }

    private static func parse(_ text: String, _ family: Int32, count: Int) -> [UInt8]? {
        // inet_pton would stop at the zero byte.
        guard !text.utf8.contains(0) else { return nil }
        var bytes = [UInt8](repeating: 0, count: count)
        return inet_pton(family, text, &bytes) == 1 ? bytes : nil
    }

    /// Formats 4 or 16 bytes; the latter as in RFC 5952.
    package static func text(_ bytes: [UInt8]) -> String {
        guard bytes.count == 4 || bytes.count == 16 else { return "?" }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count)) != nil else { return "?" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
