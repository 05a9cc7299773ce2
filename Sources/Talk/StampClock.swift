/// Lays a talker's runs out on a line of time by their samples, and finds out from the timestamps where some are missing.
///
/// Owned by a ``JitterBuffer``; a plain value. Samples are counted, because timestamps are rounded to milliseconds and some senders take
/// them from a clock that jitters or drifts against their samples. How far the stamps are from the count is followed slowly; a sudden
/// difference of more than 15 ms, or four times what is usual with this sender, is a hole when it points forward. One that points
/// back is the sender's clock: the count goes on.
struct StampClock: Sendable {
    /// Samples: 15 ms.
    private static let leastHole: Int64 = 720
    /// Samples: 200 ms. Whatever the sender's jitter, this is a hole.
    private static let mostNoise: Int64 = 9_600

    /// Where the next run is if nothing is missing.
    private(set) var next: Int64 = 0
    /// Sixteenths of a sample that the stamps are ahead of the count; nil before the first.
    private var offset: Int64?
    /// Sixteenths of a sample: the usual difference of a stamp.
    private var noise: Int64 = 0

    /// Where a run starts, the samples that are missing before it, and whether its timestamp jumped.
    ///
    /// `credible` says how much of a hole can be believed in: a clock that was set looks like one.
    mutating func place(
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
