import Mutation
import Testing

@Suite struct ReportTests {
    private let mutants = Mutation.draw(
        10,
        from: Mutation.mutants(
            of: "let a = 1\nlet b = 2\nlet c = 3\nlet d = 4\nlet e = 5\nlet f = 6\nlet g = 7\nlet h = 8\nlet i = 9\nlet j = 10",
            file: "Sources/RTMP/A.swift"),
        seed: 1)

    private func report(_ verdicts: [MutantResult.Verdict], explained: [Explained] = []) -> Report {
        Report(
            results: zip(self.mutants, verdicts).map { MutantResult(mutant: $0, verdict: $1, by: "a test", seconds: 1) },
            explained: explained)
    }

    private func explanation(_ index: Int) -> Explained {
        let mutant = self.mutants[index]
        let text = "# remark\n\nfile: \(mutant.file)\nbefore:   \(mutant.before)\nafter: \(mutant.after)\nreason: alike\n"
        return (try? Explained.parse(text))?.first ?? Explained(file: "", before: "", after: "", reason: "")
    }

    @Test func nineInTenSuffice() {
        let nine = [MutantResult.Verdict](repeating: .killed, count: 8) + [.timedOut]
        #expect(self.report(nine + [.survived]).isGood)
        #expect(!self.report(Array(nine.dropLast()) + [.survived, .survived]).isGood)
        #expect(!self.report([]).isGood)
    }

    @Test func anExplainedSurvivorDoesNotCount() {
        let verdicts: [MutantResult.Verdict] = [.survived, .killed, .killed]
        #expect(!self.report(verdicts).isGood)
        let report = self.report(verdicts, explained: [self.explanation(0)])
        #expect(report.isGood)
        #expect(report.survivors.isEmpty)
        #expect(report.table.split(separator: "\n").last?.split(separator: " ").map(String.init) == ["all", "3", "2", "0", "0", "1"])
    }

    @Test func anExplanationThatATestRefutesFails() {
        let report = self.report([.killed, .killed], explained: [self.explanation(0)])
        #expect(!report.isGood)
        #expect(report.wronglyExplained.count == 1)
    }

    @Test(arguments: [
        "file: a\nbefore: b\nafter: c",
        "file: a\nfile: b\nbefore: b\nafter: c\nreason: d",
        "file: a\nwhat: b",
        "words",
    ])
    func aMalformedExplanationIsRefused(text: String) {
        #expect(throws: Explained.Malformed.self) { try Explained.parse(text) }
    }

    @Test func whatATestRunPrintsIsRead() {
        let failed =
            "✔ Test a() passed after 1 s.\n✘ Test \"b c\" recorded an issue at A.swift:1:2: Expectation failed\n✘ Test run with 2 tests failed"
        #expect(TestLog.firstFailure(in: failed) == "\"b c\"")
        #expect(TestLog.passed(in: failed) == nil)
        let passed = "✔ Test a() passed after 1 s.\n✔ Test run with 12 tests in 3 suites passed after 0.1 seconds.\n"
        #expect(TestLog.firstFailure(in: passed) == nil)
        #expect(TestLog.passed(in: passed) == 12)
    }

    @Test func onlyThePureFloorsAreChanged() {
        #expect(Floor.of(file: "Sources/RTMP/Chunk/ChunkDecoder.swift", source: "")?.name == "RTMP")
        #expect(Floor.of(file: "Sources/LinkTransport/RTMP/ChunkValidator.swift", source: "")?.name == "LinkTransport")
        #expect(Floor.of(file: "Sources/LinkTransport/RTMP/ClientConnection.swift", source: "") == nil)
        #expect(Floor.of(file: "Sources/Rooms/Rules/RoomClock.swift", source: "import Foundation")?.name == "Rooms")
        #expect(Floor.of(file: "Sources/Rooms/RoomStore.swift", source: "import GRDB") == nil)
        #expect(Floor.of(file: "Sources/Rooms/People/Kick.swift", source: "extension StoreAccess {") == nil)
        #expect(Floor.of(file: "Sources/EarshotServer/A.swift", source: "") == nil)
    }
}
