/// How far behind live a viewer was allowed to start: the age of the cached pictures that it got at once when it joined, or when it resumed after a
/// pause. A plain value of milliseconds.
///
/// The viewer may read these pictures at its own pace. A player that reads no faster than it plays stays that far behind for good and is not slow:
/// only its losses from there on count. A viewer that has been at the live edge has no head start any more.
struct HeadStart: Sendable, Equatable {
    private(set) var ms: Int64 = 0
    /// The viewer has caught up with live.
    private(set) var isOver = false
    /// Stream time at which the viewer started; nil until there is one.
    private var firstTimestamp: Int64?
    private var beganMs: Int64 = 0
    /// The viewer was moved on, past the pictures that it started with.
    private var isMoved = false

    mutating func begin(ms: Int64, at timestamp: Int64?, nowMs: Int64) {
        self = HeadStart()
        self.ms = ms
        self.firstTimestamp = timestamp
        self.beganMs = nowMs
    }

    /// Limits the head start to `ageMs`. The viewer resumes at a message that arrived that long ago.
    mutating func moveOn(to ageMs: Int64) {
        self.ms = min(self.ms, ageMs)
        self.isMoved = true
    }

    /// Updates the head start. `first` and `newest` are the stream's first and newest timestamps, `limitMs` the most that is ever cached.
    mutating func judge(hasCaughtUp: Bool, first: Int64?, newest: Int64?, limitMs: Int64, nowMs: Int64) {
        if self.firstTimestamp == nil { self.firstTimestamp = first }
        guard let firstTimestamp = self.firstTimestamp, let newest else { return }
        if hasCaughtUp {
            self.ms = 0
            self.isOver = true
            return
        }
        guard !self.isMoved else { return }
        // More stream time has arrived than time has passed: the first pictures are only now made from a cache, as MP4 pieces are.
        let burstMs = newest - firstTimestamp - (nowMs - self.beganMs)
        self.ms = max(self.ms, min(burstMs, limitMs))
    }
}
