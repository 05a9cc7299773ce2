/// The times and bounds of a machine. A value.
package struct MachineLimits: Sendable, Equatable {
    /// How long a player has for the answer to an invitation.
    package var offeredMs: Int64 = 10_000
    package var playingMs: Int64 = 30_000
    /// How long the device has for the result.
    package var settlingMs: Int64 = 20_000
    /// Added to offered and playing: clients that count the same seconds come first.
    package var slackMs: Int64 = 2_000
    /// From the end of a game to the next invitation.
    package var idleMs: Int64 = 1_500
    /// Bytes of a command's JSON.
    package var commandBytes = 1 << 10
    /// Commands of one member a second.
    package var commandRate = 30
    package var gathering: GatheringLimits

    package init(members: Int = 1_000, offlineMs: Int64 = 10_000) {
        self.gathering = GatheringLimits(members: members, offlineMs: offlineMs)
    }
}

/// A member's commands of the last second, as a bucket of tokens. A value.
struct CommandRate: Sendable, Equatable {
    /// In thousandths.
    private var tokens: Int64
    private var atMs: Int64

    init(perSecond rate: Int, nowMs: Int64) {
        self.tokens = Int64(rate) * 1_000
        self.atMs = nowMs
    }

    /// False when the second's commands are used up.
    mutating func take(perSecond rate: Int, nowMs: Int64) -> Bool {
        let passedMs = max(0, min(1_000, nowMs - self.atMs))
        let tokens = min(Int64(rate) * 1_000, self.tokens + passedMs * Int64(rate))
        guard tokens >= 1_000 else { return false }
        self.tokens = tokens - 1_000
        self.atMs = nowMs
        return true
    }
}
