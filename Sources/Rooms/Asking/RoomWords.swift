/// Splits text into words for the room search, the same way for storing and searching. A word is a run of letters and digits or a single
/// ideograph (ideographs have no spaces between them).
package enum RoomWords {
    /// Maximum space-separated parts of a search; the rest is ignored.
    static let mostWords = 16

    package static func indexed(_ room: Room) -> String {
        [room.title, room.id.rawValue, room.owner ?? "", room.deviceUid ?? ""].flatMap(self.words).joined(separator: " ")
    }

    /// An FTS5 query without the user's syntax: each run of non-spaces is a phrase, the last one a prefix. Nil if there is no word.
    package static func query(_ text: String) -> String? {
        let phrases = self.phrases(text)
        guard !phrases.isEmpty else { return nil }
        return phrases.map { "\"\($0.joined(separator: " "))\"" }.joined(separator: " ") + "*"
    }

    /// The words of each run of non-spaces that has any, of the first ``mostWords`` runs.
    package static func phrases(_ text: String) -> [[String]] {
        text.split(whereSeparator: \.isWhitespace).prefix(self.mostWords).map { self.words(String($0)) }.filter { !$0.isEmpty }
    }

    package static func words(_ text: String) -> [String] {
        var words: [String] = []
        var word = ""
        for scalar in text.unicodeScalars {
            switch kind(scalar) {
            case .part: word.unicodeScalars.append(scalar)
            case .whole:
                if !word.isEmpty { words.append(word) }
                words.append(String(scalar))
                word = ""
            case .mark: if !word.isEmpty { word.unicodeScalars.append(scalar) }
            case .none:
                if !word.isEmpty { words.append(word) }
                word = ""
            }
        }
        if !word.isEmpty { words.append(word) }
        return words
    }

    private enum Kind { case part, whole, mark, none }

    private static func kind(_ scalar: Unicode.Scalar) -> Kind {
        if scalar.isASCII {
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9": return .part
            default: return .none
            }
        }
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .decimalNumber, .letterNumber, .otherNumber:
            return .part
        case .nonspacingMark: return .mark
        case .otherLetter: return isIdeograph(scalar.value) ? .whole : .part
        default: return .none
        }
    }

    /// Han and kana. Hangul has spaces.
    private static func isIdeograph(_ value: UInt32) -> Bool {
        (0x3040...0x30FF).contains(value) || (0x3400...0x9FFF).contains(value) || (0xF900...0xFAFF).contains(value)
            || (0x20000...0x3FFFF).contains(value)
    }
}
