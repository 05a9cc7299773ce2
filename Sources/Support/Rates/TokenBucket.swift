/// A token bucket with a rate and a burst. A value without a clock: `nowNs` is monotonic, nanoseconds.
package struct TokenBucket: Sendable {
    /// Per second.
    private let rate: Double
    private let burst: Double
    private var level: Double
    private var filledNs: UInt64

    package init(rate: Double, burst: Double, nowNs: UInt64) {
        self.rate = rate
        self.burst = burst
        self.level = burst
        self.filledNs = nowNs
    }

    /// The bucket's state after ``acquire(nowNs:)`` or ``peek(nowNs:)``.
    package struct Outcome: Sendable, Equatable {
        package let isAllowed: Bool
        /// Whole tokens left.
        package let remaining: Int
        /// Until the next token; 0 when there is one.
        package let waitSeconds: Double
        /// Until the bucket is full.
        package let fullSeconds: Double
    }

    /// Takes a token, if there is one.
    package mutating func acquire(nowNs: UInt64) -> Outcome {
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

    /// Returns the state without taking a token.
    package mutating func peek(nowNs: UInt64) -> Outcome {
        self.fill(nowNs)
        return self.outcome(isAllowed: self.level >= 1)
    }

    /// Whether the bucket is full, and thus like a new one.
    package mutating func isFull(nowNs: UInt64) -> Bool {
        self.fill(nowNs)
        return self.level >= self.burst
    }

    private mutating func fill(_ nowNs: UInt64) {
        guard nowNs > self.filledNs else { return }
        self.level = min(self.burst, self.level + Double(nowNs - self.filledNs) / 1e9 * self.rate)
        self.filledNs = nowNs
    }
}
