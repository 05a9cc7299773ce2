import Synchronization

@testable import Rooms

/// A machine's clocks, set by tests.
final class TestClocks: Sendable {
    private let steady: Atomic<Int64>
    private let wall: Atomic<Int64>
    private let boot: String?

    init(wall: Int64 = TestRegistry.start, steady: Int64 = 50_000, boot: String? = "boot-1") {
        self.steady = Atomic(steady)
        self.wall = Atomic(wall)
        self.boot = boot
    }

    /// Advances both clocks.
    func pass(_ ms: Int64) {
        self.steady.add(ms, ordering: .relaxed)
        self.wall.add(ms, ordering: .relaxed)
    }

    /// Sets the wall clock.
    func leap(_ ms: Int64) { self.wall.add(ms, ordering: .relaxed) }

    var wallMs: Int64 { self.wall.load(ordering: .relaxed) }
    var steadyMs: Int64 { self.steady.load(ordering: .relaxed) }

    func clock(holdMs: Int64 = 600_000) -> RoomClock {
        RoomClock(
            .init(
                steadyMs: { self.steady.load(ordering: .relaxed) }, wallMs: { self.wall.load(ordering: .relaxed) }, bootID: self.boot),
            holdMs: holdMs)
    }
}
