/// Makes text from peers safe to show: in logs, terminals, spreadsheets, metrics and service managers. The one rule for all that leaves the server as text
/// for people. Pure; any thread.
package enum ShownText {
    /// Whether a scalar must be escaped. These are control characters, line separators, and marks that reorder text (Unicode UAX #9).
    package static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x20..<0x7F: false
        case 0x00...0x1F, 0x7F...0x9F, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x206F, 0xFEFF: true
        default: false
        }
    }

    /// Escapes every unsafe scalar, as `\n` or `\u{1b}`.
    package static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: self.isUnsafe) else { return text }
        var out = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n": out += "\\n"
            case "\r": out += "\\r"
            case "\t": out += "\\t"
            case _ where self.isUnsafe(scalar): out += "\\u{\(String(scalar.value, radix: 16))}"
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }
}
