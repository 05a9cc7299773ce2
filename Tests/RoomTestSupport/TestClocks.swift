import Synchronization

package import Rooms

/// A machine's clocks, set by tests.
package final class TestClocks: Sendable {
    /// 2026-11-21T10:00:00Z. Milliseconds.
    package static let start: Int64 = 1_795_255_200_000

    private let steady: Atomic<Int64>
    private let wall: Atomic<Int64>
    private let boot: String?

    package init(wall: Int64 = TestClocks.start, steady: Int64 = 50_000, boot: String? = "boot-1") {
        self.steady = Atomic(steady)
        self.wall = Atomic(wall)
        self.boot = boot
    }

    /// Advances both clocks.
    package func pass(_ ms: Int64) {
        self.steady.add(ms, ordering: .relaxed)
        self.wall.add(ms, ordering: .relaxed)
    }

    /// Sets the wall clock.
    package func leap(_ ms: Int64) { self.wall.add(ms, ordering: .relaxed) }

    package var wallMs: Int64 { self.wall.load(ordering: .relaxed) }
    package var steadyMs: Int64 { self.steady.load(ordering: .relaxed) }

    package func clock(holdMs: Int64 = 600_000) -> RoomClock {
        RoomClock(
            .init(
                steadyMs: { self.steady.load(ordering: .relaxed) }, wallMs: { self.wall.load(ordering: .relaxed) }, bootID: self.boot),
            holdMs: holdMs)
    }
}
