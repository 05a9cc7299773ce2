/// A stream's bytes per second on one loop, second by second. A plain value; times are in milliseconds.
struct RecentRate {
    /// Rate of the last complete second.
    private(set) var bytesPerSecond = 0
    /// Rates of the last complete seconds, newest last.
    private var seconds: [Int] = []
    private var bytesInWindow = 0
    private var windowStartMs: Int64

    /// As long as a cached group of pictures usually is at most.
    private static let secondsKept = 10

    init(nowMs: Int64) {
        self.windowStartMs = nowMs
    }

    /// The highest rate of the last seconds, including the unfinished one. Bytes that wait in a kernel arrived in one of these seconds. By the last
    /// second's rate alone, a keyframe after a quiet time or the beginning of a stream would count as many seconds.
    var peak: Int { self.seconds.reduce(self.bytesInWindow, max) }

    /// Derives rates from a ring that was filled elsewhere. A fanout that starts with it has sent nothing yet, but knows the stream's rate.
    mutating func seed(_ ring: FanoutRing, nowMs: Int64) {
        var seconds = [Int](repeating: 0, count: Self.secondsKept)
        for sequence in ring.base..<ring.head {
            let message = ring[sequence]
            let age = Int((nowMs - message.arrivalMs) / 1_000)
            if seconds.indices.contains(age) { seconds[age] += message.length }
        }
        // The oldest second is incomplete.
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
