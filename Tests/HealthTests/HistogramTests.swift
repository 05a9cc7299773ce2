import Testing

@testable import Health

@Suite struct HistogramTests {
    /// A bound belongs to the range that it ends, as `le` says.
    @Test func valuesFallIntoTheirRanges() {
        var histogram = Histogram(boundsMicros: [10, 100])
        for micros in [0, 10, 11, 100, 101, .max] as [Int64] { histogram.observe(micros: micros) }
        histogram.observe(micros: -5)
        #expect(histogram.counts == [3, 2, 2] && histogram.total == 7)
        histogram.observe(micros: 50, times: 4)
        #expect(histogram.counts == [3, 6, 2])
    }

    @Test func sumsAndMilliseconds() {
        var histogram = Histogram(boundsMicros: [1_000])
        histogram.observe(ms: 1)
        histogram.observe(micros: 2_500, times: 2)
        #expect(histogram.sumMicros == 6_000 && histogram.counts == [1, 2])
        // Wraps instead of a trap.
        histogram.observe(ms: .max)
        histogram.observe(ms: .max)
        #expect(histogram.total == 5)
    }

    @Test func onlyEqualRangesAreAdded() {
        var one = Histogram(boundsMicros: [10])
        one.observe(micros: 5)
        var sum = one
        sum.add(one)
        #expect(sum.counts == [2, 0] && sum.sumMicros == 10)
        sum.add(Histogram(boundsMicros: [20]))
        #expect(sum.counts == [2, 0])
    }
}
