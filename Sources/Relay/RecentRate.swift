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

    mutating func count(_ bytes: Int) { self.bytesInWindow += bytes }

    mutating func tick(nowMs: Int64) {
        let elapsed = nowMs - self.windowStartMs
        guard elapsed >= 1_000 else { return }
        self.bytesPerSecond = Int(Int64(self.bytesInWindow) * 1_000 / elapsed)
        if self.seconds.count == Self.secondsKept { self.seconds.removeFirst() }
        self.seconds.append(self.bytesPerSecond)
        self.bytesInWindow = 0
        self.windowStartMs = nowMs
    }
}
