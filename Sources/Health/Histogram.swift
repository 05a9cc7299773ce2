/// Counts durations by range, as Prometheus does. A value, owned by one loop or kept behind a lock.
package struct Histogram: Sendable, Equatable {
    /// Upper ends of the ranges in microseconds, ascending; one more range has no end.
    package let boundsMicros: [Int64]
    /// Values in each range.
    package private(set) var counts: [UInt64]
    package private(set) var sumMicros: UInt64 = 0

    package init(boundsMicros: [Int64]) {
        self.boundsMicros = boundsMicros
        self.counts = Array(repeating: 0, count: boundsMicros.count + 1)
    }

    /// All values so far.
    package var total: UInt64 { self.counts.reduce(0, &+) }

    /// Counts a value, or `times` equal ones. A negative value counts as 0.
    package mutating func observe(micros: Int64, times: UInt64 = 1) {
        var range = 0
        while range < self.boundsMicros.count, micros > self.boundsMicros[range] { range += 1 }
        self.counts[range] &+= times
        self.sumMicros &+= UInt64(max(0, micros)) &* times
    }

    package mutating func observe(ms: Int64) {
        let (micros, overflow) = ms.multipliedReportingOverflow(by: 1_000)
        self.observe(micros: overflow ? .max : micros)
    }

    /// Adds the values of a histogram with the same ranges.
    package mutating func add(_ other: Histogram) {
        guard other.boundsMicros == self.boundsMicros else { return }
        for range in self.counts.indices { self.counts[range] &+= other.counts[range] }
        self.sumMicros &+= other.sumMicros
    }
}
