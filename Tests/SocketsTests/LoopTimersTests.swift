import Synchronization
import Testing

@testable import Sockets

/// The timers of a loop by themselves.
@Suite struct LoopTimersTests {
    /// What ran, in order.
    private final class Ran {
        var numbers: [Int] = []
        func timer(_ number: Int, dueNs: UInt64) -> LoopTimer { LoopTimer(dueNs: dueNs) { _ in self.numbers.append(number) } }
    }

    private static func run(_ timers: inout LoopTimers, until nowNs: UInt64) {
        while let timer = timers.popDue(nowNs: nowNs) { timer.run() }
    }

    @Test func theyRunInOrderOfTimeAndThenOfAge() {
        var timers = LoopTimers()
        let ran = Ran()
        for (number, due) in [(1, 30), (2, 10), (3, 30), (4, 20), (5, 10)] { timers.add(ran.timer(number, dueNs: UInt64(due))) }
        #expect(timers.nextNs == 10)
        Self.run(&timers, until: 9)
        #expect(ran.numbers == [])
        Self.run(&timers, until: 20)
        #expect(ran.numbers == [2, 5, 4])
        Self.run(&timers, until: 1_000)
        #expect(ran.numbers == [2, 5, 4, 1, 3])
        #expect(timers.nextNs == nil)
    }

    @Test func cancelledOnesDoNotRunAndGiveTheirTasksBack() {
        final class Held {}
        var timers = LoopTimers()
        let ran = Ran()
        weak var held: Held?
        let timer: LoopTimer
        do {
            let object = Held()
            held = object
            timer = LoopTimer(dueNs: 5) { _ in _ = object }
        }
        timers.add(timer)
        timers.add(ran.timer(1, dueNs: 6))
        #expect(held != nil)
        timer.cancel()
        timer.drop()
        timers.wasCancelled()
        #expect(held == nil)
        Self.run(&timers, until: 10)
        #expect(ran.numbers == [1])
        // One that was cancelled before it came is not kept either.
        let late = ran.timer(2, dueNs: 7)
        late.cancel()
        timers.add(late)
        #expect(timers.count == 0)
    }

    /// Deadlines that are set and cancelled for each request must not pile up until their time.
    @Test func cancelledOnesDoNotPileUp() {
        var timers = LoopTimers()
        let ran = Ran()
        for number in 0..<100 { timers.add(ran.timer(number, dueNs: 1_000)) }
        for number in 0..<10_000 {
            let timer = ran.timer(number, dueNs: 1 << 60)
            timers.add(timer)
            timer.cancel()
            timer.drop()
            timers.wasCancelled()
            #expect(timers.count <= 250)
        }
        Self.run(&timers, until: 1_000)
        #expect(ran.numbers == Array(0..<100))
    }
}
