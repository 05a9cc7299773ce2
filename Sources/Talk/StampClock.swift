/// Lays out a talker's runs by sample count, and finds holes from their timestamps.
///
/// Owned by a ``JitterBuffer``; a plain value. Samples are counted, because timestamps are rounded to milliseconds and some senders take them from a
/// clock that jitters or drifts against their samples. The offset between stamps and count is followed slowly. A sudden difference of more than 15
/// ms, or four times this sender's usual difference, is a hole if it points forward. If it points back, it is a fault of the sender's clock, and the
/// count continues.
struct StampClock: Sendable {
    /// Samples: 15 ms.
    private static let leastHole: Int64 = 720
    /// Samples: 200 ms. A larger difference is a hole, whatever the sender's jitter.
    private static let mostNoise: Int64 = 9_600

    /// Where the next run starts if nothing is missing.
    private(set) var next: Int64 = 0
    /// How far the stamps are ahead of the count, in sixteenths of a sample. Nil before the first.
    private var offset: Int64?
    /// The usual difference of a stamp, in sixteenths of a sample.
    private var noise: Int64 = 0

    /// Returns a run's start, the samples missing before it, and whether its timestamp jumped.
    ///
    /// `credible` returns how much of a hole is plausible: a clock that was set looks like one.
    mutating func position(
        timestampMs: Int64, count: Int, credible: (_ hole: Int64) -> Int64
    ) -> (start: Int64, hole: Int64, isJump: Bool) {
        let stamp = TalkFormat.bounded(timestampMs) * 48 * 16
        var (hole, isJump) = (Int64(0), false)
        let offset = self.offset ?? stamp - self.next * 16
        let difference = stamp - self.next * 16 - offset
        let size = abs(difference / 16)
        if size <= min(Self.mostNoise, max(Self.leastHole, self.noise / 4)) {
            self.offset = offset + difference / 16
        } else {
            if difference > 0 { hole = min(credible(size), size) }
            isJump = hole < size
            self.offset = offset + difference - hole * 16
        }
        if size <= Self.mostNoise { self.noise += size - self.noise / 16 }
        let start = self.next + hole
        self.next = start + Int64(count)
        return (start, hole, isJump)
    }
}
