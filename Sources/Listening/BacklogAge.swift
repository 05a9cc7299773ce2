/// Estimates waiting times in a listener's backlog from its length at each look. The kernel hands connections out oldest first and does not
/// report their arrival. A plain value; times are milliseconds.
struct BacklogAge: Sendable, Equatable {
    private struct Sample: Equatable {
        let ms: Int64
        /// Connections that had arrived by then, since the first look.
        let arrived: Int
    }

    private var samples: [Sample] = []
    private var taken = 0

    /// Shortest time between two samples.
    private static let leastMs: Int64 = 50

    /// Counts connections removed from the backlog.
    mutating func accepted(_ count: Int) { self.taken += count }

    /// Records the backlog's present length.
    mutating func sample(waiting: Int, nowMs: Int64) {
        if let last = self.samples.last, nowMs - last.ms < Self.leastMs { return }
        self.samples.append(Sample(ms: nowMs, arrived: self.taken + waiting))
        // Older samples than the last whose connections have all left are useless.
        let left = self.samples.lastIndex { $0.arrived <= self.taken } ?? 0
        self.samples.removeFirst(left)
    }

    /// How many have waited for at least `ms`.
    func waiting(for ms: Int64, nowMs: Int64) -> Int {
        guard let sample = self.samples.last(where: { $0.ms <= nowMs - ms }) else { return 0 }
        return max(0, sample.arrived - self.taken)
    }

    /// How long the next one has waited at least.
    func nextWaitMs(nowMs: Int64) -> Int64 {
        self.samples.first { $0.arrived > self.taken }.map { nowMs - $0.ms } ?? 0
    }
}
