/// Whether one kind of a stream's media is there: tells a pause that is usual for it from an end. A plain value; times are milliseconds of
/// the stream's timeline.
struct TrackPresence {
    private(set) var newestMs: Int64?
    /// The longest pause of late. It is forgotten slowly, so that a camera that comes and goes, or shows a picture every ten seconds, does
    /// not change the tracks each time.
    private var longestPauseMs: Int64 = 0

    /// Longer pauses are not got used to.
    private static let pauseLimitMs: Int64 = 10_000
    /// How many times longer than the longest pause something has to be away.
    private static let patience: Int64 = 3
    /// One part in so many of the longest pause is forgotten with each sample.
    private static let memory: Int64 = 256
    /// What is further ahead than this is of another time.
    private static let aheadMs: Int64 = 10_000

    /// A sample came, when the other kind's newest was at `otherMs`: what comes late was not away.
    mutating func note(_ ms: Int64, beside otherMs: Int64?) {
        if let newestMs = self.newestMs {
            let pauseMs = max(ms, otherMs ?? ms) - newestMs
            let remembered = self.longestPauseMs - self.longestPauseMs / Self.memory
            self.longestPauseMs = min(max(pauseMs, remembered), Self.pauseLimitMs)
        }
        self.newestMs = ms
    }

    /// Nothing came at all for so long, of no kind: that is nobody's absence.
    mutating func skip(_ ms: Int64) { self.newestMs = self.newestMs.map { $0 + ms } }

    /// Times start again.
    mutating func forgetTime() { self.newestMs = nil }

    /// `awayMs` is how long it is away at least before it counts as gone.
    func isThere(at ms: Int64, awayMs: Int64) -> Bool {
        guard let newestMs = self.newestMs else { return false }
        return ms - newestMs < max(awayMs, Self.patience * self.longestPauseMs) && newestMs - ms <= Self.aheadMs
    }
}
