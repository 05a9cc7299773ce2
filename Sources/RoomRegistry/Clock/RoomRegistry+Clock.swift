import Rooms
import Support

/// Handles leaps of the wall clock.
extension RoomRegistry {
    /// Compares room time with the wall clock. Call every second or two. A leap is reported once. When it has held, all room times follow it in one
    /// transaction, between any two other changes. That adoption has no event of its own; the leap's event names its instant.
    package nonisolated func watchClock() {
        // The database's clock is everybody's; nobody may follow a leap of it alone.
        guard !self.isShared else { return }
        switch self.clock.finding() {
        case nil: break
        case .leapt(let byMs, let adoptsAt):
            let holdMs = self.clock.holdMs
            self.submit { try $0.clockLeapt(byMs: byMs, holdMs: holdMs, adoptsAt: adoptsAt) }
        case .held: self.followClock()
        }
    }

    private nonisolated func followClock() {
        let clock = self.clock
        self.submitFact { _ in
            // Runs under the queue's lock: operations before it have the former time, those after it the new one.
            let byMs = clock.adopt()
            return Operation(
                kind: .fact, now: clock.now(),
                run: { [weak self] work in
                    guard let byMs else { return {} }
                    try work.clockAdopted(byMs: byMs, clock.mark())
                    let kicks = try work.store.kicks(now: work.now)
                    return { [weak self] in self?.assumeIsolated { $0.clockMoved(by: byMs, kicks) } }
                },
                fail: { _ in })
        }
    }
}

extension RoomTransaction {
    func clockLeapt(byMs: Int64, holdMs: Int64, adoptsAt: Int64) throws {
        var data: [JSONValue.Member] = []
        data.add("byMs", byMs)
        data.add("wallClock", Instant.text(self.now + byMs))
        data.add("holdMs", holdMs)
        data.add("adoptsAt", Instant.text(adoptsAt))
        try self.event(.clockLeapt, data)
    }

    func clockAdopted(byMs: Int64, _ mark: ClockMark) throws {
        let rooms = try self.store.moveTimes(by: byMs)
        try self.store.save(mark)
        self.notify(.clockAdopted(byMs: byMs, rooms: rooms))
    }
}
