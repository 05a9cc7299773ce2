/// Decides when to report a change of verdict: when it has lasted for two seconds, at most once in ten, and never the same verdict twice in a row. A
/// value; the time is passed in, in milliseconds of any steady clock.
package struct VerdictReports: Sendable {
    package private(set) var reported = StreamVerdict.good
    private var reportedMs: Int64?
    private var newest = StreamVerdict.good
    private var newestMs: Int64 = 0

    package static let leastIntervalMs: Int64 = 10_000
    /// A stream that turns bad may be degraded for a moment first.
    package static let settlesMs: Int64 = 2_000

    package init() {}

    /// The previously reported verdict, if `verdict` is to be reported now. A delayed change is reported by a later call, if the verdict still
    /// differs then.
    package mutating func due(_ verdict: StreamVerdict, nowMs: Int64) -> StreamVerdict? {
        if verdict != self.newest {
            self.newest = verdict
            self.newestMs = nowMs
        }
        guard verdict != self.reported, nowMs - self.newestMs >= Self.settlesMs else { return nil }
        if let reportedMs, nowMs - reportedMs < Self.leastIntervalMs { return nil }
        let former = self.reported
        self.reported = verdict
        self.reportedMs = nowMs
        return former
    }
}
