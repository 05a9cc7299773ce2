import Media
import Testing

@testable import Relay

/// Bytes per second of a stream on one loop.
@Suite struct RecentRateTests {
    @Test func secondBySecond() {
        var rate = RecentRate(nowMs: 500)
        rate.count(1_000)
        rate.tick(nowMs: 1_499)
        #expect(rate.bytesPerSecond == 0 && rate.peak == 1_000)
        rate.tick(nowMs: 1_500)
        #expect(rate.bytesPerSecond == 1_000 && rate.peak == 1_000)
        rate.count(1_000)
        rate.tick(nowMs: 3_500)
        #expect(rate.bytesPerSecond == 500 && rate.peak == 1_000, "two seconds long")
        for second in 1...9 as ClosedRange<Int64> { rate.tick(nowMs: 3_500 + second * 1_000) }
        #expect(rate.bytesPerSecond == 0 && rate.peak == 500, "ten seconds are kept")
        rate.tick(nowMs: 13_500)
        #expect(rate.peak == 0)
    }

    /// Covers as many seconds as the ring has messages from, ten at most. The oldest counts as a whole second.
    @Test(arguments: [1, 2, 4, 10, 12]) func seeded(_ seconds: Int) throws {
        var ring = FanoutRing(bounds: FanoutRing.Bounds())
        var allocator = SlabAllocator()
        var bytes = 0
        for second in 0..<seconds {
            let frame = try Make.audio(second, at: Int64(second) * 1_000, bytes: 500)
            let message = EncodedMessage(frame, encoder: TestEncoder(), allocator: &allocator, arrivalMs: Int64(second) * 1_000 + 1)
            if seconds - second <= 10 { bytes += message.length }
            ring.append(message)
        }
        var rate = RecentRate(nowMs: Int64(seconds) * 1_000)
        rate.seed(ring, nowMs: Int64(seconds) * 1_000)
        #expect(rate.bytesPerSecond == bytes / min(seconds, 10) && rate.peak == bytes / min(seconds, 10))
    }
}
