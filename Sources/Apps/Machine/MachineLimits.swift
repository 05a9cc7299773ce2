/// The times and bounds of a machine. A value.
package struct MachineLimits: Sendable, Equatable {
    /// How long a player has for the answer to an invitation.
    package var offeredMs: Int64 = 10_000
    package var playingMs: Int64 = 30_000
    /// How long the device has for the result.
    package var settlingMs: Int64 = 20_000
    /// Added to the deadlines of offered and playing, and of settling in ``Machine/Mode/device``, so that clients that count the same seconds act
    /// first.
    package var slackMs: Int64 = 2_000
    /// From the end of a game to the next invitation.
    package var idleMs: Int64 = 1_500
    /// Bytes of a command's JSON.
    package var commandBytes = 1 << 10
    /// Commands per member and second.
    package var commandRate = 30
    package var gathering: GatheringLimits

    package init(members: Int = 1_000, offlineMs: Int64 = 10_000) {
        self.gathering = GatheringLimits(members: members, offlineMs: offlineMs)
    }
}

/// The times of a member's commands in the last second. Accepts no more than the rate within any second. A value.
struct CommandRate: Sendable, Equatable {
    /// Oldest first; at most as many as the rate.
    private var timesMs: [Int64] = []

    /// False when the second's commands are used up.
    mutating func acquire(perSecond rate: Int, nowMs: Int64) -> Bool {
        // Also drops times in the future, left by a clock that has gone back a second or more.
        self.timesMs.removeAll { abs(nowMs - $0) >= 1_000 }
        guard self.timesMs.count < rate else { return false }
        self.timesMs.append(nowMs)
        return true
    }
}
