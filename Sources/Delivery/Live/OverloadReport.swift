/// Decides when the log says that an event loop is overloaded, and when that it no longer is. A plain value without a clock.
///
/// A loop at its limit passes it many times a minute, as refused viewers make room for others. So the end is told only after it has lasted.
struct OverloadReport {
    enum Change { case began, ended }

    private var isOpen = false
    /// When the loop was overloaded last.
    private var lastMs: Int64 = 0

    /// How long a loop must be below its limit.
    static let lingerMs: Int64 = 10_000

    /// Returns what to log now. Call with each sweep.
    mutating func note(isOverloaded: Bool, nowMs: Int64) -> Change? {
        if isOverloaded {
            self.lastMs = nowMs
            guard !self.isOpen else { return nil }
            self.isOpen = true
            return .began
        }
        guard self.isOpen, nowMs - self.lastMs >= Self.lingerMs else { return nil }
        self.isOpen = false
        return .ended
    }
}
