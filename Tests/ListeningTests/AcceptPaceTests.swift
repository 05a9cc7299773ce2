import NIOCore
import Relay
import ServerTestSupport
import Support
import Testing

@testable import Listening

/// Accepting connections while the event loops are late.
@Suite struct AcceptPaceTests {
    private final class Thing {}

    @Test func room() {
        let (calm, busy, full) = (LoopPressure.late(byMs: 0), LoopPressure.late(byMs: 300), LoopPressure.late(byMs: 900))
        #expect(AcceptPace([]).room(nowMs: 0) == nil)
        #expect(AcceptPace([calm, full]).room(nowMs: 0) == nil, "the loop that is not late takes them")
        let pace = AcceptPace([busy, full])
        let window = busy.window + full.window
        #expect(pace.room(nowMs: 0) == window && full.window == 4)
        let things = (0..<window + 3).map { _ in Thing() }
        for thing in things { pace.opened(ObjectIdentifier(thing), nowMs: 100) }
        #expect(pace.room(nowMs: 200) == 0)
        for thing in things.prefix(10) { pace.settled(ObjectIdentifier(thing)) }
        #expect(pace.room(nowMs: 200) == 7)
        #expect(pace.room(nowMs: 600) == window, "who does nothing keeps nobody out")
    }

    @Test func ageOfABacklog() {
        var backlog = BacklogAge()
        backlog.sample(waiting: 5, nowMs: 1_000)
        #expect(backlog.nextWaitMs(nowMs: 1_000) == 0)
        backlog.sample(waiting: 8, nowMs: 1_100)
        backlog.accepted(2)
        backlog.sample(waiting: 10, nowMs: 1_200)
        #expect(backlog.nextWaitMs(nowMs: 1_200) == 200)
        #expect(backlog.waiting(for: 2_000, nowMs: 2_999) == 0)
        // Two of the first five have been accepted, and none of the next three.
        #expect(backlog.waiting(for: 2_000, nowMs: 3_000) == 3)
        #expect(backlog.waiting(for: 2_000, nowMs: 3_100) == 6)
        backlog.accepted(6)
        #expect(backlog.waiting(for: 2_000, nowMs: 3_100) == 0)
        backlog.sample(waiting: 4, nowMs: 3_150)
        #expect(backlog.nextWaitMs(nowMs: 3_150) == 1_950)
        #expect(backlog.waiting(for: 2_000, nowMs: 3_200) == 4)
        backlog.accepted(4)
        backlog.sample(waiting: 0, nowMs: 3_300)
        #expect(backlog.nextWaitMs(nowMs: 9_000) == 0 && backlog.waiting(for: 2_000, nowMs: 9_000) == 0)
    }
}
