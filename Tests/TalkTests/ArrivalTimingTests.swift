import Testing

@testable import Talk

@Suite struct ArrivalTimingTests {
    /// The base is the least transit of the last 4 s: the sixteenth quarter of a second after an early run forgets it.
    @Test func theBaseForgetsAfterFourSeconds() {
        var timing = ArrivalTiming(JitterLimits())
        _ = timing.arrived(at: 0, start: 0, isContiguous: true)
        for quarter in 1...16 as ClosedRange<Int64> {
            let now = quarter * 12_000
            _ = timing.arrived(at: now, start: now - 1_000, isContiguous: true)
            timing.tick(now: now)
            // A sixteenth of the way to 1,000.
            #expect(timing.base == (quarter < 16 ? 0 : 62), "after \(quarter) quarters of a second")
        }
    }
}

@Suite struct SlidingWindowTests {
    @Test func valuesAreNotLoweredBelowZero() {
        var window = SlidingWindow(buckets: 2, width: 10)
        window.add(5, at: 0)
        window.lower(by: 3)
        #expect(window.largest == 2)
        window.lower(by: 10)
        #expect(window.largest == 0)
        // The next bucket looks at all values again.
        window.add(-3, at: 10)
        #expect(window.largest == 0)
    }
}

@Suite struct StampClockTests {
    /// A stamp that is 15 ms ahead is followed; at 16 ms samples are missing.
    @Test(arguments: [(15, 0), (16, 768), (-15, 0)] as [(Int64, Int64)]) func fifteenMillisecondsAreNoHole(_ aheadMs: Int64, _ hole: Int64)
    {
        var clock = StampClock()
        _ = clock.position(timestampMs: 0, count: 960) { $0 }
        let position = clock.position(timestampMs: 20 + aheadMs, count: 960) { $0 }
        #expect(position == (960 + hole, hole, false))
    }

    /// A stamp that is more than 15 ms behind is the sender's clock: it jumps, and the count goes on.
    @Test func backwardsIsAJump() {
        var clock = StampClock()
        _ = clock.position(timestampMs: 100, count: 960) { $0 }
        #expect(clock.position(timestampMs: 120 - 16, count: 960) { $0 } == (960, 0, true))
    }
}
