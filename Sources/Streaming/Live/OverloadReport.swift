/// Decides when the log reports the beginning and the end of an event loop's overload. A plain value without a clock.
///
/// A loop at its limit crosses it many times a minute, as refused viewers make room for others. So the end is reported only after it has lasted for
/// ``lingerMs``.
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
