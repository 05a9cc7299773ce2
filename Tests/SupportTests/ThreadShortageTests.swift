import Testing

@testable import Support

/// When a process gives up for want of threads.
@Suite struct ThreadShortageTests {
    @Test func onlyIfTasksStandStillAndNoThreadCanBeMade() {
        let patience = ThreadShortage.patienceMs
        var asked = 0
        func isHopeless(afterMs: Int64, canStart: Bool) -> Bool {
            ThreadShortage.isHopeless(beatMs: 1_000, nowMs: 1_000 + afterMs) {
                asked += 1
                return canStart
            }
        }
        #expect(!isHopeless(afterMs: 0, canStart: false) && !isHopeless(afterMs: patience - 1, canStart: false))
        #expect(asked == 0, "no thread is tried while all is well")
        #expect(!isHopeless(afterMs: patience, canStart: true), "the machine is busy")
        #expect(isHopeless(afterMs: patience, canStart: false) && asked == 2)
    }
}
