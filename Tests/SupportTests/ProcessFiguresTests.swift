import Testing

@testable import Support

@Suite struct ProcessFiguresTests {
    /// Names may hold blanks and parentheses.
    @Test func runningTime() {
        let after = "S 1 " + (5...21).map { "\($0)" }.joined(separator: " ") + " 12345 0"
        #expect(ProcessFigures.runsFor(stat: "77 (a ) b) \(after)", uptime: "223.50 400.1", perSecond: 100) == 100.05)
        for stat in [nil, "", "77 (x", "77 (x) S 1 2"] { #expect(ProcessFigures.runsFor(stat: stat, uptime: "9 9", perSecond: 100) == nil) }
        #expect(ProcessFigures.runsFor(stat: "77 (x) \(after)", uptime: nil, perSecond: 100) == nil)
        #expect(ProcessFigures.runsFor(stat: "77 (x) \(after)", uptime: "1 1", perSecond: 100) == 0, "clocks of two files")
    }

    @Test func thisProcess() {
        let first = ProcessFigures()
        var sum = 0
        while ProcessFigures().cpuSeconds < first.cpuSeconds + 0.02 { sum &+= 1 }
        let second = ProcessFigures()
        #expect(second.cpuSeconds > first.cpuSeconds)
        #if os(Linux)
        #expect(first.runsForSeconds.map { $0 > 0 && $0 < 86_400 } == true)
        #expect((second.runsForSeconds ?? 0) >= (first.runsForSeconds ?? 0))
        #endif
    }
}
