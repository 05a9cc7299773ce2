import Mutation
import Testing

/// The places that are mutated, and those that are not.
@Suite struct SiteTests {
    private func changes(_ source: String) -> Set<String> { Set(Mutation.mutants(of: source, file: "A.swift").map(\.after)) }

    @Test(arguments: [
        ("let a = 10", ["let a = 11", "let a = 9"]),
        ("let a = 0", ["let a = 1"]),
        ("let a = 0xFF_FF", ["let a = 0x10000", "let a = 0xFFFE"]),
        ("let a = 0b11", ["let a = 0b100", "let a = 0b10"]),
        ("let a = b < c", ["let a = b <= c"]),
        ("let a = b <= c", ["let a = b < c"]),
        ("let a = b > c", ["let a = b >= c"]),
        ("let a = b >= c", ["let a = b > c"]),
        ("let a = b == c", ["let a = b != c"]),
        ("let a = b != c", ["let a = b == c"]),
        ("let a = b + c - d", ["let a = b - c - d", "let a = b + c + d"]),
        ("let a = b &+ c", ["let a = b &- c"]),
        ("a += b", ["a -= b"]),
        ("let a = b && c", ["let a = b || c"]),
        ("let a = b ? c : d", ["let a = !(b) ? c : d"]),
        ("func f() { while a { b() } }", ["func f() { while false { b() } }"]),
        ("func f() { guard a, let b else { return } }", ["func f() { guard true, let b else { return } }"]),
        ("func f() { if a { b() } }", ["func f() { if true { b() } }", "func f() { if false { b() } }"]),
        ("func f() { if a { b() } else { c() } }", ["func f() { if !(a) { b() } else { c() } }"]),
        ("func f() { if let a { return } }", ["func f() { if let a { {} } }"]),
        ("func f() throws { if let a { throw b } }", ["func f() throws { if let a { {} } }"]),
        ("func f() { for b in c { if let a { continue } } }", ["func f() { for b in c { if let a { {} } } }"]),
    ])
    func everyKindOfPlaceIsFound(source: String, expected: [String]) {
        #expect(self.changes(source) == Set(expected))
    }

    @Test(arguments: [
        "let a = \"b\" + c",
        "let a = [b] + c",
        "enum A: Int { case b = 4 }",
        "@available(*, deprecated, message: \"5\") func f() {}",
        "func f() { switch a { case 1: b(); default: c() } }",
        "func f() { if case 1...3 = a { b() } }",
        "#if DEBUG\nlet a = 5\n#endif",
        "func f() { assert(a < 5) }",
        "func f() { list.reserveCapacity(5) }",
        "let a = Deque<Int>(minimumCapacity: 5)",
        "func hash(into hasher: inout Hasher) { hasher.combine(1) }",
        "let a: InlineArray<4, Int> = b",
        "func f() { guard let a else { return } }",
        "let a = 99999999999999999999",
    ])
    func whatNothingCouldTellOrCompileIsLeftAlone(source: String) {
        #expect(self.changes(source).isEmpty)
    }

    @Test func aMutantSaysWhereItIs() throws {
        let mutant = try #require(Mutation.mutants(of: "// é\nstruct A {\n    var b   =  c\n        < d\n}", file: "X/A.swift").first)
        #expect(mutant.file == "X/A.swift")
        #expect(mutant.line == 4)
        #expect(mutant.kind == .comparison)
        #expect(mutant.before == "< d")
        #expect(mutant.after == "<= d")
    }

    @Test func longExpressionsAreLeftAlone() {
        let long = String(repeating: "a", count: 500)
        #expect(self.changes("let b = \(long) < c").isEmpty)
    }
}
