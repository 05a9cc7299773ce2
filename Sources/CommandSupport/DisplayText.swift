import Support

/// Measures and escapes text for a terminal, whatever a peer put into it.
package enum DisplayText {
    /// As ``ShownText/isUnsafe(_:)``.
    package static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool { ShownText.isUnsafe(scalar) }

    /// As ``ShownText/escaped(_:)``.
    package static func escaped(_ text: String) -> String { ShownText.escaped(text) }

    /// Appends a JSON string in which every unsafe scalar is escaped.
    package static func quote(_ value: String, to out: inout String) {
        out += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\r": out += "\\r"
            case "\t": out += "\\t"
            case _ where self.isUnsafe(scalar):
                for unit in String(scalar).utf16 { out += "\\u" + String(hex: unit, digits: 4) }
            default: out.unicodeScalars.append(scalar)
            }
        }
        out += "\""
    }

    /// The columns that the text occupies.
    package static func width(_ text: String) -> Int { text.reduce(0) { $0 + self.width(of: $1) } }

    /// The longest prefix that fits, with "…" in place of the rest.
    package static func truncated(_ text: String, to columns: Int) -> String {
        guard columns > 0 else { return "" }
        guard self.width(text) > columns else { return text }
        var out = ""
        var used = 0
        for character in text {
            let width = self.width(of: character)
            if used + width > columns - 1 { break }
            out.append(character)
            used += width
        }
        return out + "…"
    }

    /// A cluster is as wide as its widest part. Emoji joined to one picture occupy two columns.
    private static func width(of character: Character) -> Int {
        var widest = 0
        for scalar in character.unicodeScalars {
            // VARIATION SELECTOR-16 selects the colour picture of an otherwise narrow sign.
            widest = max(widest, scalar.value == 0xFE0F ? 2 : self.width(of: scalar))
        }
        return widest
    }

    private static func width(of scalar: Unicode.Scalar) -> Int {
        if scalar.value < 0x300 { return 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: break
        }
        // Hangul vowels and finals join the preceding syllable.
        if (0x1160...0x11FF).contains(scalar.value) { return 0 }
        return self.wide.contains { $0.contains(scalar.value) } || scalar.properties.isEmojiPresentation ? 2 : 1
    }

    /// Unicode UAX #11, East Asian Width W and F, in whole blocks.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF, 0xA960...0xA97F,
        0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18DFF, 0x1AFF0...0x1B2FF,
        0x1F200...0x1F2FF, 0x20000...0x3FFFD,
    ]
}
