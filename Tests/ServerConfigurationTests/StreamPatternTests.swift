import Support
import Testing

@testable import ServerConfiguration

@Suite struct StreamPatternTests {
    @Test(arguments: [
        ("live/stage", "live/stage", true), ("live/stage", "live/stage2", false), ("live/stage", "live/stag", false),
        ("live/*", "live/", true), ("live/*", "live/a/b", true), ("live/*", "talk/a", false), ("*", "live/x", true),
        ("*/stage", "live/stage", true), ("*/stage", "stage", false), ("live/a*b*c", "live/a1b2c", true), ("live/a*b*c", "live/abc", true),
        ("live/a*b*c", "live/acb", false), ("live/a*a", "live/a", false), ("live/a*a", "live/aa", true), ("live/**x", "live/x", true),
        ("live/*ab*ab", "live/ab", false), ("live/*ab*ab", "live/abab", true), ("live/ü*", "live/ünder", true),
    ])
    func matches(pattern: String, path: String, expected: Bool) throws {
        #expect(try StreamPattern(pattern).matches(path) == expected)
    }

    @Test(arguments: ["", "stage", "live/a b", "live/\n", String(repeating: "a", count: 600) + "/b"]) func refuses(text: String) {
        #expect(throws: ValueProblem.self) { try StreamPattern(text) }
    }

    /// Patterns are settings, paths are what devices choose: neither may make matching slow.
    @Test(.timeLimit(.minutes(1))) func manyStarsStayCheap() throws {
        let pattern = try StreamPattern("live/" + String(repeating: "a*", count: 200) + "b")
        let path = "live/" + String(repeating: "a", count: 500)
        for _ in 0..<200 { #expect(!pattern.matches(path)) }
    }
}
