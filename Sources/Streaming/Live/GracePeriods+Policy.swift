package import Relay
package import Rooms

extension GracePeriods {
    /// How long after a room's deadline the relay acts by itself, in milliseconds. It then ends a silent publisher, or the viewers of a publisher
    /// that is gone, but only if the registry of rooms has not acted.
    ///
    /// Registry and relay have timers of their own for the same deadline, and the room's end has to be stored first. Without this allowance the relay
    /// would often be quicker: viewers would lose a room that is renewed at the last moment, and clients would get the relay's reason in place of the
    /// room's.
    static let fallbackMs: Int64 = 2_000

    /// How much longer the relay keeps the viewers of a stream that waits for its publisher until `untilMs`. If the room itself goes on, only the
    /// relay ends them.
    static func waitMs(untilMs: Int64, endsRoom: Bool, nowMs: Int64) -> Int64 {
        let last = endsRoom ? untilMs.later(by: Self.fallbackMs) : untilMs
        return last > nowMs ? last - nowMs : 0
    }

    package init(_ policy: RoomPolicy) {
        self.init()
        self.brokenPipeMs = policy.waitMs(for: .publisherLost)
        self.cleanStopMs = policy.waitMs(for: .stopped)
        self.quietMs = policy.mediaIdleMs
        self.flushMs = 1_000
        // The registry ends a silent publisher at the room's own deadline; the relay does so only if the registry has not.
        self.mediaIdleMs = policy.mediaIdleMs + policy.waitMs(for: .mediaIdle) + Self.fallbackMs
        self.pausedMs = policy.mediaIdleMs + policy.waitMs(for: .paused) + Self.fallbackMs
    }
}
