import Foundation

/// Random text of characters that have several spellings, for tests of names.
package struct Spellings {
    private var random: TestRandom

    package init(_ part: Int = 0, test: String = #function) { self.random = TestRandom(part, test: test) }

    /// Latin and its marks, Hangul and its letters, singletons, Indic and Greek letters, kana and its marks; and others, which have one spelling.
    private static let ranges: [ClosedRange<UInt32>] = [
        0x61...0x7A, 0xC0...0x17F, 0x300...0x338, 0x300...0x338, 0x1E00...0x1EF9, 0x1100...0x1112, 0x1161...0x1175, 0x11A8...0x11C2,
        0xAC00...0xAC20, 0x2126...0x212B, 0x340...0x345, 0x37E...0x37E, 0x915...0x95F, 0x9C7...0x9DF, 0x3B1...0x3CE, 0x1F00...0x1F15,
        0xFB00...0xFB06, 0xFB1D...0xFB2A, 0x2F800...0x2F820, 0x304B...0x3060, 0x3099...0x309A, 0x1F300...0x1F310,
    ]

    /// 1 to 8 characters; now and then one of them is a run of twenty.
    package mutating func text() -> String {
        var scalars = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 1...8, using: &self.random) {
            guard let range = Self.ranges.randomElement(using: &self.random),
                let scalar = Unicode.Scalar(UInt32.random(in: range, using: &self.random))
            else { continue }
            let copies = Int.random(in: 0..<16, using: &self.random) == 0 ? 20 : 1
            scalars.append(contentsOf: repeatElement(scalar, count: copies))
        }
        return String(scalars)
    }

    /// Normalization Form C as Foundation makes it, of what is decomposed: it leaves a Hangul syllable without a final consonant and that consonant
    /// uncomposed.
    package static func composed(_ text: String) -> String {
        text.decomposedStringWithCanonicalMapping.precomposedStringWithCanonicalMapping
    }

    /// The text and other spellings of it: composed, decomposed, composed in part, with its marks in another order. All are canonically equal.
    package mutating func spellings(of text: String) -> [String] {
        let (composed, decomposed) = (Self.composed(text), text.decomposedStringWithCanonicalMapping)
        var mixed = ""
        for character in decomposed {
            mixed += Bool.random(using: &self.random) ? String(character) : String(character).precomposedStringWithCanonicalMapping
        }
        var turned = ""
        for character in decomposed {
            let marks = character.unicodeScalars.dropFirst().shuffled(using: &self.random)
            turned.unicodeScalars.append(contentsOf: character.unicodeScalars.prefix(1) + marks)
        }
        // Marks of one class keep their order; other orders are other text.
        return [text, composed, decomposed, mixed, turned].filter { $0 == text }
    }
}
