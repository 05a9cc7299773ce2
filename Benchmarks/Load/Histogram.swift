/// Counts of microseconds in buckets of at most 3 % width: 32 linear steps per power of two, as HdrHistogram does. A plain value.
struct Histogram {
    private var counts = [UInt32](repeating: 0, count: Self.bucketCount)
    private(set) var total = 0
    private(set) var maximum: UInt64 = 0

    private static let stepBits = 5
    /// Values from 2^27 µs (134 s) on share the last bucket.
    private static let largestBits = 27
    private static let bucketCount = (Self.largestBits - Self.stepBits + 1) << Self.stepBits

    mutating func record(microseconds value: UInt64) {
        self.counts[Self.bucket(value)] &+= 1
        self.total += 1
        self.maximum = max(self.maximum, value)
    }

    mutating func add(_ other: Histogram) {
        for index in self.counts.indices { self.counts[index] &+= other.counts[index] }
        self.total += other.total
        self.maximum = max(self.maximum, other.maximum)
    }

    /// The value in milliseconds that this share (0…1) of values does not exceed. `nil` without values.
    func milliseconds(at share: Double) -> Double? {
        guard self.total > 0 else { return nil }
        let wanted = max(1, Int((share * Double(self.total)).rounded(.up)))
        var seen = 0
        for (index, count) in self.counts.enumerated() {
            seen += Int(count)
            if seen >= wanted { return Double(min(Self.upperBound(index), self.maximum)) / 1000 }
        }
        return Double(self.maximum) / 1000
    }

    private static func bucket(_ value: UInt64) -> Int {
        guard value >= 1 << self.stepBits else { return Int(value) }
        let shift = 63 - value.leadingZeroBitCount - self.stepBits
        let index = (shift << self.stepBits) + Int(truncatingIfNeeded: value >> UInt64(shift))
        return min(index, self.bucketCount - 1)
    }

    /// The largest value of a bucket.
    private static func upperBound(_ index: Int) -> UInt64 {
        guard index >= 2 << self.stepBits else { return UInt64(index) }
        let shift = (index >> self.stepBits) - 1
        return UInt64(index - (shift << self.stepBits) + 1) << UInt64(shift) - 1
    }
}
