/// How long connections have waited in a listener's backlog, from how many there are at each look: the kernel gives them out oldest first, and
/// does not say when they came. A plain value; milliseconds come in.
struct BacklogAge: Sendable, Equatable {
    private struct Sample: Equatable {
        let ms: Int64
        /// All that had come by then, since the first look.
        let arrived: Int
    }

    private var samples: [Sample] = []
    private var taken = 0

    /// Between two looks that count.
    private static let leastMs: Int64 = 50

    /// So many were taken out.
    mutating func took(_ count: Int) { self.taken += count }

    /// So many wait now.
    mutating func look(waiting: Int, nowMs: Int64) {
        if let last = self.samples.last, nowMs - last.ms < Self.leastMs { return }
        self.samples.append(Sample(ms: nowMs, arrived: self.taken + waiting))
        // Those before the last one that all have left say nothing any more.
        let left = self.samples.lastIndex { $0.arrived <= self.taken } ?? 0
        self.samples.removeFirst(left)
    }

    /// How many have waited for so long at least.
    func waiting(for ms: Int64, nowMs: Int64) -> Int {
        guard let sample = self.samples.last(where: { $0.ms <= nowMs - ms }) else { return 0 }
        return max(0, sample.arrived - self.taken)
    }

    /// How long the next one has waited at least.
    func nextWaitMs(nowMs: Int64) -> Int64 {
        self.samples.first { $0.arrived > self.taken }.map { nowMs - $0.ms } ?? 0
    }
}
