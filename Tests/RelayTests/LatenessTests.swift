import Testing

@testable import Relay

/// How late a loop gets to due work.
@Suite struct LatenessTests {
    @Test func aLoopIsNotLateBeforeItsFirstSweep() {
        #expect(Lateness().ms(0) == 0 && Lateness().punctualMs(0) == 0)
    }

    @Test func lateness() {
        var late = Lateness()
        // No sweep is planned.
        #expect(late.swept(nowMs: 90_000) == 0 && late.ms(95_000) == 0 && late.punctualMs(95_000) == 95_000)
        late.planned(dueMs: 100_000)
        #expect(late.ms(100_000) == 0 && late.punctualMs(99_000) == 99_000)
        // A sweep that is overdue counts, too.
        #expect(late.ms(103_000) == 3_000 && late.punctualMs(103_000) == 100_000)
        #expect(late.swept(nowMs: 103_000) == 3_000)
        #expect(late.ms(103_000) == 3_000 && late.ms(104_000) == 2_000 && late.ms(107_000) == 0)
        #expect(late.punctualMs(107_000) == 104_000)
        late.planned(dueMs: 103_100)
        #expect(late.swept(nowMs: 103_100) == 0 && late.ms(103_100) == 2_900)
    }
}
