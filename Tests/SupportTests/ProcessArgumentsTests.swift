import Testing

@testable import Support

/// What a process was started with.
@Suite struct ProcessArgumentsTests {
    @Test func areThisProcess() { #expect(ProcessArguments.atStart == CommandLine.arguments && !ProcessArguments.atStart.isEmpty) }

    @Test(arguments: [
        ("", [] as [String]), ("a\0", ["a"]), ("a\0b c\0", ["a", "b c"]), ("a\0\0b\0", ["a", "", "b"]), ("a\0\0", ["a", ""]), ("a", ["a"]),
        ("--title\0café\0", ["--title", "café"]),
    ])
    func words(_ text: String, _ words: [String]) { #expect(ProcessArguments.words(text.utf8) == words) }

    @Test(
        arguments: [
            // Swift's are lost, or others.
            (["earshot", "serve"], [], ["earshot", "serve"]), (["earshot", "serve"], ["x"], ["earshot", "serve"]),
            (["earshot", "serve"], ["earshot", "serve"], ["earshot", "serve"]),
            // Run by a loader.
            (["ld.so", "earshot", "serve"], ["earshot", "serve"], ["earshot", "serve"]),
            // Without /proc.
            ([], ["earshot", "serve"], ["earshot", "serve"]), ([], [], []),
        ] as [([String], [String], [String])])
    func settled(_ kernel: [String], _ swift: [String], _ words: [String]) {
        #expect(ProcessArguments.settled(kernel: kernel, swift: swift) == words)
    }
}
