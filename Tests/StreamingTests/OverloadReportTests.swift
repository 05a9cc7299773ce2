import Testing

@testable import Streaming

@Suite struct OverloadReportTests {
    /// One line when it begins and one when it has ended for good, however often the loop passes its limit meanwhile.
    @Test func saysItOnce() {
        var report = OverloadReport()
        var lines: [String] = []
        func note(_ seconds: ClosedRange<Int64>, _ isOverloaded: (Int64) -> Bool) {
            for second in seconds {
                guard let change = report.note(isOverloaded: isOverloaded(second), nowMs: second * 1_000) else { continue }
                lines.append("\(change) \(second)")
            }
        }
        note(0...9) { _ in false }
        note(10...39) { $0 % 8 < 3 }
        note(40...60) { _ in false }
        note(61...61) { _ in true }
        #expect(lines == ["began 10", "ended 44", "began 61"])
    }
}
