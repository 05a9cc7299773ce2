/// Distinguishes a usual pause of one kind of media from its end. A plain value; times are milliseconds of the stream's timeline.
struct TrackPresence {
    private(set) var newestMs: Int64?
    /// The longest recent pause. It decays slowly, so that a camera that comes and goes, or shows a picture every ten seconds, does not
    /// change the tracks each time.
    private var longestPauseMs: Int64 = 0

    /// Cap of ``longestPauseMs``: no longer pause becomes usual.
    private static let pauseLimitMs: Int64 = 10_000
    /// A track ends after this many times its longest pause.
    private static let patience: Int64 = 3
    /// Each sample reduces the longest pause by one part in this many.
    private static let memory: Int64 = 256
    /// A newest time further ahead than this belongs to another timeline.
    private static let aheadMs: Int64 = 10_000

    /// Records a sample. A late sample extends the pause to the other kind's newest time, `otherMs`: the track was not away.
    mutating func note(_ ms: Int64, beside otherMs: Int64?) {
        if let newestMs = self.newestMs {
            let pauseMs = max(ms, otherMs ?? ms) - newestMs
            let remembered = self.longestPauseMs - self.longestPauseMs / Self.memory
            self.longestPauseMs = min(max(pauseMs, remembered), Self.pauseLimitMs)
        }
        self.newestMs = ms
    }

    /// Skips a pause in which no kind had samples: it is not an absence.
    mutating func skip(_ ms: Int64) { self.newestMs = self.newestMs.map { $0 + ms } }

    /// Forgets the newest time where the timeline breaks.
    mutating func forgetTime() { self.newestMs = nil }

    /// `awayMs` is the shortest absence that counts as an end.
    func isThere(at ms: Int64, awayMs: Int64) -> Bool {
        guard let newestMs = self.newestMs else { return false }
        return ms - newestMs < max(awayMs, Self.patience * self.longestPauseMs) && newestMs - ms <= Self.aheadMs
    }
}
