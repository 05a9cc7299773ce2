/// Decides how long deadlines wait after the store was away. A value of the registry's queue.
///
/// While the store is away nobody can send heartbeats, or push again: rooms must not end for that at the first moment of its return.
///
/// ```
/// failure ── away for at most shortMs ── success    nothing changes
/// failure ── away for longer ─────────── success ── waitMs ── deadlines are applied
///            deadlines wait
/// ```
/// Times are those of the steady clock, in milliseconds.
struct StoreAbsence {
    /// Shorter absences change nothing.
    static let shortMs: Int64 = 5_000
    /// How long deadlines wait after a longer one.
    static let waitMs: Int64 = 20_000

    /// When the first attempt began that failed.
    private var since: Int64?
    /// A full disk can be read.
    private var isUnwritable = false
    /// Reads fail, as where connections run out, while the store takes writes: it is not away.
    private var isUnreadable = false
    private var waitsUntil: Int64?

    /// A commit failed for the store's sake. `began`: when it was attempted.
    mutating func commitFailed(began: Int64) {
        self.since = self.since ?? began
        self.isUnwritable = true
        self.isUnreadable = false
    }

    /// A read failed. `began`: when it was attempted.
    mutating func readFailed(began: Int64) { if !self.isUnreadable { self.since = self.since ?? began } }

    mutating func committed(at now: Int64) {
        if self.since != nil, !self.isUnwritable { self.isUnreadable = true }
        self.end(at: now)
    }

    private mutating func end(at now: Int64) {
        if let since, now - since > Self.shortMs { self.wait(from: now) }
        self.since = nil
        self.isUnwritable = false
    }

    /// A read succeeded, which says nothing about writes.
    mutating func wasRead(at now: Int64) {
        self.isUnreadable = false
        if !self.isUnwritable { self.end(at: now) }
    }

    /// Makes deadlines wait as after an absence that others have seen.
    mutating func wait(from now: Int64) { self.waitsUntil = now + Self.waitMs }

    func holdsDeadlines(at now: Int64) -> Bool {
        if let since, now - since > Self.shortMs { return true }
        return self.waitMs(at: now) > 0
    }

    /// How much longer deadlines wait for an absence that is over.
    func waitMs(at now: Int64) -> Int64 { max(0, (self.waitsUntil ?? now) - now) }
}
