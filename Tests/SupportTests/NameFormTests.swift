import Foundation
import Support
import TestSupport
import Testing

/// Names have one spelling: Unicode Normalization Form C.
@Suite struct NameFormTests {
    /// A spelling that is refused, the one that is accepted, and words of the refusal.
    static let pairs: [(refused: String, accepted: String, words: String)] = [
        ("cafe\u{301}", "caf\u{E9}", "write \"é\" as U+00E9, not as U+0065 U+0301"),
        ("\u{1100}\u{1161}\u{11A8}", "\u{AC01}", "as U+AC01, not as U+1100 U+1161 U+11A8"),
        ("\u{AC00}\u{11A8}", "\u{AC01}", "as U+AC01, not as U+AC00 U+11A8"),
        // Singletons: one character for another, ASCII ones too.
        ("\u{212B}", "\u{C5}", "as U+00C5, not as U+212B"), ("\u{2126}", "\u{3A9}", "as U+03A9, not as U+2126"),
        ("\u{212A}amera", "Kamera", "write \"K\" as U+004B, not as U+212A"), ("a\u{37E}", "a;", "as U+003B, not as U+037E"),
        ("\u{2F800}", "\u{4E3D}", "as U+4E3D, not as U+2F800"),
        // Marks in another order, and a composed letter that is excluded from composition.
        ("a\u{301}\u{323}", "\u{1EA1}\u{301}", "write U+1EA1 U+0301, not as U+0061 U+0301 U+0323"),
        ("q\u{307}\u{323}", "q\u{323}\u{307}", "write U+0071 U+0323 U+0307"),
        ("\u{958}", "\u{915}\u{93C}", "write U+0915 U+093C, not as U+0958"),
        ("\u{1E9B}\u{323}\u{212B}", "\u{1E9B}\u{323}\u{C5}", "as U+00C5, not as U+212B"),
    ]

    @Test(arguments: pairs) func `of two spellings one is a name`(_ pair: (refused: String, accepted: String, words: String)) throws {
        #expect(pair.refused == pair.accepted, "canonically equal")
        #expect(NameForm.problem(pair.accepted) == nil)
        let problem = try #require(NameForm.problem(pair.refused))
        #expect(problem.description.hasPrefix("is not in Unicode Normalization Form C: write "))
        #expect(problem.description.contains(pair.words), "\(problem)")
        let error = #expect(throws: FieldError.self) { try NameForm.check(pair.refused, "app") }
        #expect(error?.field == "app" && error?.description.contains("Form C") == true)
    }

    /// Compatibility characters, marks without a letter, and what no letter composes with have one spelling.
    @Test(arguments: [
        "", "cam 1", "ﬁ", "①", "ｶﾒﾗ", "Ａ", "x\u{301}\u{323}\u{304}".precomposedStringWithCanonicalMapping, "\u{301}", "📷👩‍👩‍👧", "กล้อง", "한국",
    ])
    func `what has one spelling is a name`(_ text: String) { #expect(NameForm.problem(text) == nil) }

    /// A message has few words about a character with any number of marks.
    @Test func `a long run of marks makes a short message`() throws {
        let text = "a" + String(repeating: "\u{301}\u{323}", count: 2_000)
        let problem = try #require(NameForm.problem(text))
        #expect(problem.description.hasSuffix("…") && problem.description.utf8.count < 200, "\(problem)")
    }

    /// The same as another implementation says, for random text.
    @Test(.seeded) func `Foundation agrees`() {
        var random = Spellings()
        for _ in 0..<20_000 {
            let text = random.text()
            let isNormal = text.utf8.elementsEqual(Spellings.composed(text).utf8)
            #expect(NameForm.isNormal(text) == isNormal, "\(text.unicodeScalars.map { String($0.value, radix: 16) })")
            let spellings = random.spellings(of: text)
            #expect(Set(spellings.map(\.exact)).count { NameForm.isNormal($0.wrappedValue) } <= 1, "\(spellings)")
        }
    }
}

/// Text whose identity is its bytes.
@Suite struct ExactTextTests {
    private struct Key: Hashable {
        @ExactText var app: String
        @ExactText var name: String
    }

    @Test func `names are compared by their bytes`() {
        let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
        #expect(composed == decomposed, "which is why")
        #expect(composed.exact != decomposed.exact && composed.exact == "caf\u{E9}".exact)
        #expect("K".exact != "\u{212A}".exact && "".exact == "".exact && "a".exact != "ab".exact)
        #expect(Set([composed.exact, decomposed.exact, "caf\u{E9}".exact]).count == 2)
        let keys: Set = [
            Key(app: composed, name: "x"), Key(app: decomposed, name: "x"), Key(app: "caf", name: "\u{E9}x"),
            Key(app: composed, name: "x"),
        ]
        #expect(keys.count == 3)
        #expect(Optional(composed).map(\.exact) != Optional(decomposed).map(\.exact))
    }

    @Test func `a table has a row for each`() {
        var table: NameTable<Int> = ["caf\u{E9}": 1, "cafe\u{301}": 2]
        #expect(table.count == 2 && table["caf\u{E9}"] == 1 && table["cafe\u{301}"] == 2 && table["cafe"] == nil)
        table["cafe\u{301}"] = nil
        table["other", default: 5] += 1
        #expect(table.count == 2 && table["other"] == 6 && table["cafe\u{301}"] == nil && !table.isEmpty)
        #expect(table.filter { $0.value > 1 } == ["other": 6])
        #expect(table.map { "\($0.key) \($0.value)" }.sorted() == ["café 1", "other 6"] && table.keys.contains("other"))
        #expect(table.removeValue(forKey: "cafe\u{301}") == nil && table.removeValue(forKey: "caf\u{E9}") == 1)
        #expect(Array(table.values) == [6])
    }
}
