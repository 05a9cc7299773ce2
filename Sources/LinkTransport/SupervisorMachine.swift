/// Decides a link's next step. A plain value without clock, randomness or threads.
///
///     idle ──start──▶ connecting ──running──▶ running
///                       ▲   │ended             │ended
///                       │   ▼                  │
///                     waiting ◀────────────────┘     (permanent error, or tries used up: failed; stop: stopped)
struct SupervisorMachine {
    enum Next: Equatable {
        /// Milliseconds from now.
        case wait(Int)
        case fail(permanent: Bool)
        case stop
    }

    private let policy: ReconnectPolicy
    /// Consecutive ends without a stable run between them.
    private(set) var failures = 0
    private var runningSinceMs: Int64?

    init(_ policy: ReconnectPolicy) { self.policy = policy }

    mutating func connecting() { self.runningSinceMs = nil }

    mutating func running(nowMs: Int64) { self.runningSinceMs = nowMs }

    /// `random` is in 0..<1.
    mutating func ended(_ error: LinkError, nowMs: Int64, random: Double) -> Next {
        if error == .cancelled { return .stop }
        if let since = self.runningSinceMs, nowMs - since >= Int64(self.policy.stableMs) { self.failures = 0 }
        self.runningSinceMs = nil
        if error.isPermanent { return .fail(permanent: true) }
        self.failures += 1
        if let most = self.policy.maxAttempts, self.failures >= most { return .fail(permanent: false) }
        return .wait(self.policy.delayMs(failures: self.failures, random: random))
    }
}
