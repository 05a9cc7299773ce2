/// Continues a voice for a moment when its audio is missing. Owned by a ``JitterBuffer``; a plain value.
///
/// It repeats the last period of the voice and fades it out: over 60 ms for a tone or a vowel, over 20 ms for noise, which would buzz if
/// repeated longer. Silence follows.
struct Concealer: Sendable {
    /// Samples of the past that it analyses.
    static let past = 1_440
    /// Samples of a period: 2.5 to 15 ms, 400 to 67 Hz.
    private static let periods = 120...720
    private static let voiced: Float = 2_880
    private static let unvoiced: Float = 960
    /// Samples over which a step at the seam is spread.
    private static let seam: Float = 48

    private var cycle: [Float] = []
    private var position = 0
    private var gain: Float = 0
    private var slope: Float = 0
    private var step: Float = 0
    private var left: Float = 0

    /// Whether any made-up sound is left.
    var isAudible: Bool { self.gain > 0 }

    /// Begins after these samples, the last ``past`` samples that were played.
    mutating func begin(after line: UnsafeBufferPointer<Float>) {
        self.gain = 0
        guard line.count >= Self.past else { return }
        let past = UnsafeBufferPointer(rebasing: line.suffix(Self.past))
        guard past.suffix(480).contains(where: { abs($0) > 1e-4 }) else { return }
        let (period, isVoiced) = Self.period(of: past)
        let end = past.count
        self.cycle = Array(past[(end - period)...])
        // Blends the cycle's end into its start.
        let blend = period / 4
        for index in 0..<blend {
            let weight = Float(index + 1) / Float(blend + 1)
            let before = past[end - period - blend + index]
            self.cycle[period - blend + index] += weight * (before - self.cycle[period - blend + index])
        }
        self.position = 0
        self.gain = 1
        self.slope = -1 / (isVoiced ? Self.voiced : Self.unvoiced)
        self.step = past[end - 1] - past[end - period - 1]
        self.left = Self.seam
    }

    /// The next made-up sample; 0 once it has faded.
    mutating func next() -> Float {
        guard self.gain > 0 else { return 0 }
        var sample = self.cycle[self.position]
        self.position = self.position + 1 == self.cycle.count ? 0 : self.position + 1
        if self.left > 0 {
            self.left -= 1
            sample += self.step * self.left / Self.seam
        }
        sample *= self.gain
        self.gain = max(0, self.gain + self.slope)
        return sample
    }

    /// Finds the lag at which the last 15 ms most resemble the earlier audio. Tries every fourth lag, then all lags around the best.
    private static func period(of past: UnsafeBufferPointer<Float>) -> (period: Int, isVoiced: Bool) {
        var (best, bestValue) = (Self.periods.upperBound, Float(-1))
        for lag in stride(from: Self.periods.lowerBound, through: Self.periods.upperBound, by: 4) {
            let value = Self.likeness(past, lag, by: 4)
            if value > bestValue { (best, bestValue) = (lag, value) }
        }
        guard bestValue > 0.5 else { return (Self.periods.upperBound, false) }
        (best, bestValue) = (Self.periods.clamp(best - 4)...Self.periods.clamp(best + 4)).reduce((best, -1)) { found, lag in
            let value = Self.likeness(past, lag, by: 1)
            return value > found.1 ? (lag, value) : found
        }
        return (best, bestValue > 0.5)
    }

    /// Normalised cross-correlation of the last 15 ms with those `lag` samples before.
    private static func likeness(_ past: UnsafeBufferPointer<Float>, _ lag: Int, by step: Int) -> Float {
        let end = past.count
        var (product, one, two) = (Float(0), Float(1e-9), Float(1e-9))
        var index = end - Self.periods.upperBound
        while index < end {
            let (now, before) = (past[index], past[index - lag])
            product += now * before
            one += now * now
            two += before * before
            index += step
        }
        return product / (one * two).squareRoot()
    }
}

extension ClosedRange {
    fileprivate func clamp(_ value: Bound) -> Bound { Swift.min(Swift.max(value, self.lowerBound), self.upperBound) }
}
