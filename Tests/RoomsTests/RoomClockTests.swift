import Synchronization
import Testing

@testable import Rooms

@Suite struct RoomClockTests {
    /// A wall clock and a monotonic one that tests set.
    private final class Times: Sendable {
        let monotonic = Atomic<Int64>(0)
        let wall: Atomic<Int64>
        init(wall: Int64) { self.wall = Atomic(wall) }

        func pass(_ ms: Int64, wall: Int64) {
            self.monotonic.add(ms, ordering: .relaxed)
            self.wall.add(wall, ordering: .relaxed)
        }

        var clock: RoomClock {
            RoomClock(
                monotonicMs: { self.monotonic.load(ordering: .relaxed) }, wallMs: { self.wall.load(ordering: .relaxed) })
        }
    }

    @Test func aClockThatIsSetAfterTheStartIsFollowedForwards() {
        let times = Times(wall: 1_000)
        let clock = times.clock
        #expect(clock.now() == 1_000)
        times.pass(50, wall: 50 + RoomClock.stepMs - 1)
        #expect(clock.now() == 1_050, "a small difference is no step")
        times.pass(50, wall: 1_795_255_200_000)
        let set = clock.now()
        #expect(set == times.wall.load(ordering: .relaxed))
        // Set back: on from where it was.
        times.pass(10, wall: -5_000_000)
        #expect(clock.now() == set + 10)
    }

    @Test func theRealOneIsRight() {
        let clock = RoomClock()
        let first = clock.now()
        #expect(first > 1_700_000_000_000)
        #expect(clock.now() >= first)
    }
}
