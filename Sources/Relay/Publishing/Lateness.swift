/// How late a loop gets to due work, measured by its sweep's timer. A plain value; times are in milliseconds.
struct Lateness: Sendable, Equatable {
    /// When the next sweep is due; far off when no timer runs.
    private(set) var dueMs = Int64.max
    /// Total lateness so far.
    private(set) var totalMs: Int64 = 0
    /// Lateness of recent sweeps; a late one counts for as long as it was late.
    private var recentMs: Int64 = 0
    private var sweptMs: Int64 = 0

    mutating func planned(dueMs: Int64) { self.dueMs = dueMs }

    /// Records a sweep and returns how late it is.
    mutating func swept(nowMs: Int64) -> Int64 {
        let lateMs = self.pendingMs(nowMs)
        self.recentMs = max(lateMs, self.recentMs - (nowMs - self.sweptMs))
        self.totalMs += lateMs
        self.sweptMs = nowMs
        self.dueMs = .max
        return lateMs
    }

    private func pendingMs(_ nowMs: Int64) -> Int64 { nowMs > self.dueMs ? nowMs - self.dueMs : 0 }

    /// How late the loop may be in handling current events; peers are not to blame for this.
    func ms(_ nowMs: Int64) -> Int64 { max(self.recentMs - (nowMs - self.sweptMs), self.pendingMs(nowMs), 0) }

    /// The time that has passed for peers, without the time in which the loop could not have answered.
    func punctualMs(_ nowMs: Int64) -> Int64 { nowMs - self.totalMs - self.pendingMs(nowMs) }
}
