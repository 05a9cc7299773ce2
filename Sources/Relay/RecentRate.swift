/// Bytes per second of a stream on one loop, second by second. A plain value; milliseconds come in.
struct RecentRate {
    /// Of the last second that is over.
    private(set) var bytesPerSecond = 0
    /// The seconds before, newest last.
    private var seconds: [Int] = []
    private var bytesInWindow = 0
    private var windowStartMs: Int64

    /// As long as a cached group of pictures may usually be.
    private static let secondsKept = 10

    init(nowMs: Int64) {
        self.windowStartMs = nowMs
    }

    /// The highest of the last seconds and of this one so far: bytes that wait in a kernel came in one of them. A keyframe after a quiet
    /// time, or the beginning of a stream, would be many seconds long at the rate of the second before.
    var peak: Int { self.seconds.reduce(self.bytesInWindow, max) }

    /// What a ring brings that was filled elsewhere: a fanout that begins with it has sent nothing yet, but knows how fast the stream comes.
    mutating func seed(_ ring: FanoutRing, nowMs: Int64) {
        var seconds = [Int](repeating: 0, count: Self.secondsKept)
        for sequence in ring.base..<ring.head {
            let message = ring[sequence]
            let age = Int((nowMs - message.arrivalMs) / 1_000)
            if seconds.indices.contains(age) { seconds[age] += message.length }
        }
        // The oldest second is only a part of one.
        let filled = seconds.lastIndex { $0 > 0 } ?? 0
        self.bytesPerSecond = seconds[...filled].reduce(0, +) / (filled + 1)
        self.seconds = seconds.reversed()
    }

    mutating func count(_ bytes: Int) { self.bytesInWindow += bytes }

    mutating func tick(nowMs: Int64) {
        let elapsed = nowMs - self.windowStartMs
        guard elapsed >= 1_000 else { return }
        self.bytesPerSecond = Int(Int64(self.bytesInWindow) * 1_000 / elapsed)
        if self.seconds.count >= Self.secondsKept { self.seconds.removeFirst() }
        self.seconds.append(self.bytesPerSecond)
        self.bytesInWindow = 0
        self.windowStartMs = nowMs
    }
}
