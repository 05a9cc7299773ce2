/// How far behind live a viewer was let begin: the cached pictures that it was sent at once, when it joined or went on after a pause. A plain
/// value of milliseconds.
///
/// It may read them at its own pace. A player that reads no faster than it plays stays that far behind for good, and is not slow: it is
/// judged by what it loses from there on. Once it has been seen at the live edge it is judged by that.
struct HeadStart: Sendable, Equatable {
    private(set) var ms: Int64 = 0
    /// It has caught up with live.
    private(set) var isOver = false
    /// The stream's time where it began; nil until there is one.
    private var firstTimestamp: Int64?
    private var beganMs: Int64 = 0
    /// It was moved on: what it was first let begin with is gone.
    private var isMoved = false

    mutating func begin(ms: Int64, at timestamp: Int64?, nowMs: Int64) {
        self = HeadStart()
        self.ms = ms
        self.firstTimestamp = timestamp
        self.beganMs = nowMs
    }

    /// It goes on at what came so many milliseconds ago.
    mutating func moveOn(to ageMs: Int64) {
        self.ms = min(self.ms, ageMs)
        self.isMoved = true
    }

    /// `first` is the stream's time of the first message ever, `newest` that of the newest one, `limitMs` the most that is ever cached.
    mutating func judge(hasCaughtUp: Bool, first: Int64?, newest: Int64?, limitMs: Int64, nowMs: Int64) {
        if self.firstTimestamp == nil { self.firstTimestamp = first }
        guard let firstTimestamp = self.firstTimestamp, let newest else { return }
        if hasCaughtUp {
            self.ms = 0
            self.isOver = true
            return
        }
        guard !self.isMoved else { return }
        // More of the stream's time came than time passed: its first pictures are only made now, of a cache, as pieces of MP4 are.
        let burstMs = newest - firstTimestamp - (nowMs - self.beganMs)
        self.ms = max(self.ms, min(burstMs, limitMs))
    }
}
