import Support
import Testing

/// What text for people must not hold.
@Suite struct ShownTextTests {
    @Test(
        arguments: [
            "\u{0}", "\u{7}", "\u{1B}", "\u{7F}", "\u{85}", "\u{9B}", "\u{61C}", "\u{200E}", "\u{200F}", "\u{2028}", "\u{2029}", "\u{202A}",
            "\u{202E}", "\u{2066}", "\u{2069}", "\u{206F}", "\u{FEFF}",
        ] as [Unicode.Scalar])
    func isEscaped(_ scalar: Unicode.Scalar) {
        let code = "\\u{\(String(scalar.value, radix: 16))}"
        #expect(ShownText.isUnsafe(scalar) && ShownText.escaped("a\(scalar)b") == "a\(code)b")
    }

    @Test func lineEndsAndTabs() { #expect(ShownText.escaped("a\r\n\tb") == #"a\r\n\tb"#) }

    /// Letters of all scripts, joiners, emoji.
    @Test(arguments: ["", "plain", "前門 👨‍👩‍👧 é", "שלום", "می‌خواهم", "a\\u{1b}"])
    func stays(_ text: String) { #expect(ShownText.escaped(text) == text) }

    /// A reader of JSON gets the same text; a terminal gets nothing that it would obey.
    @Test func jsonIsAsciiWhereItMatters() throws {
        let text = "é\u{9B}1m\u{202E}\u{2028}\u{FEFF}前\"\\\n\u{1}"
        let json = JSONValue.string(text).text
        #expect(json == #""é\u009b1m\u202e\u2028\ufeff前\"\\\n\u0001""#)
        #expect(try JSONParser.parse(json.utf8) == .string(text))
    }
}
