/// Lets a rate through, and a burst at once. A value without a clock: `nowNs` is monotonic, nanoseconds.
struct TokenBucket: Sendable {
    /// Per second.
    private let rate: Double
    private let burst: Double
    private var level: Double
    private var filledNs: UInt64

    init(rate: Double, burst: Double, nowNs: UInt64) {
        self.rate = rate
        self.burst = burst
        self.level = burst
        self.filledNs = nowNs
    }

    /// What a take found.
    struct Outcome: Sendable, Equatable {
        let isAllowed: Bool
        /// Whole takes that are left.
        let remaining: Int
        /// Until the next one is possible; 0 when it is now.
        let waitSeconds: Double
        /// Until as many are possible as ever.
        let fullSeconds: Double
    }

    /// Takes one, if there is one.
    mutating func take(nowNs: UInt64) -> Outcome {
        self.fill(nowNs)
        guard self.level >= 1 else { return self.outcome(isAllowed: false) }
        self.level -= 1
        return self.outcome(isAllowed: true)
    }

    private func outcome(isAllowed: Bool) -> Outcome {
        Outcome(
            isAllowed: isAllowed, remaining: Int(self.level), waitSeconds: max(0, (1 - self.level) / self.rate),
            fullSeconds: (self.burst - self.level) / self.rate)
    }

    /// What a take would find.
    mutating func look(nowNs: UInt64) -> Outcome {
        self.fill(nowNs)
        return self.outcome(isAllowed: self.level >= 1)
    }

    /// Nothing was taken for so long that it might as well be new.
    mutating func isFull(nowNs: UInt64) -> Bool {
        self.fill(nowNs)
        return self.level >= self.burst
    }

    private mutating func fill(_ nowNs: UInt64) {
        guard nowNs > self.filledNs else { return }
        self.level = min(self.burst, self.level + Double(nowNs - self.filledNs) / 1e9 * self.rate)
        self.filledNs = nowNs
    }
}
