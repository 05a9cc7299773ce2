/// Measures BANDWIDTH and AVERAGE-BANDWIDTH from ended segments (RFC 8216bis §4.1, §4.4.6.2). A plain value, owned by its window.
struct RateMeter: Sendable, Equatable {
    /// Bits per second.
    struct Rates: Sendable, Equatable {
        var peak: Int
        var average: Int
    }

    private var totalBytes = 0
    private var totalMicros: Int64 = 0
    private var pendingBytes = 0
    private var pendingMicros: Int64 = 0
    private var peak = 0
    /// Rates of an earlier format, until there are some of this one.
    private var earlier: Rates?

    /// Starts over for another format; earlier rates no longer predict.
    mutating func restart() { self = RateMeter(earlier: self.rates) }

    init(earlier: Rates? = nil) { self.earlier = earlier }

    /// Adds an ended segment. The peak is measured over at least half a target duration, so that a last segment of two frames does not set
    /// it.
    mutating func add(bytes: Int, micros: Int64, targetDuration: Int) {
        self.totalBytes += bytes
        self.totalMicros += micros
        self.pendingBytes += bytes
        self.pendingMicros += micros
        guard self.pendingMicros >= Int64(targetDuration) * 500_000 else { return }
        self.peak = max(self.peak, Self.rate(self.pendingBytes, self.pendingMicros))
        self.pendingBytes = 0
        self.pendingMicros = 0
    }

    /// nil before the first segment of any format.
    var rates: Rates? {
        guard self.totalMicros > 0 else { return self.earlier }
        let average = Self.rate(self.totalBytes, self.totalMicros)
        return Rates(peak: max(self.peak, average), average: average)
    }

    private static func rate(_ bytes: Int, _ micros: Int64) -> Int {
        let rate = Double(bytes) * 8_000_000 / Double(max(micros, 1))
        return max(1, Int(min(rate.rounded(.up), 1e15)))
    }
}
