import Testing

@testable import Support

/// How many newcomers a loop admits, by its lag.
@Suite struct LoopLoadTests {
    private static func load(_ lags: [Int64], of load: LoopLoad = LoopLoad(overloadMs: 500)) -> LoopLoad {
        var load = load
        for lag in lags { load.sample(lagMs: lag, elapsedMs: 100) }
        return load
    }

    @Test func levels() {
        var load = Self.load(Array(repeating: 90, count: 50))
        #expect(load.level == .calm && load.window == nil)
        load = Self.load(Array(repeating: 110, count: 50), of: load)
        #expect(load.level == .busy)
        // Hysteresis: otherwise the level would flap.
        load = Self.load(Array(repeating: 70, count: 50), of: load)
        #expect(load.level == .busy)
        load = Self.load(Array(repeating: 50, count: 50), of: load)
        #expect(load.level == .calm)
        load = Self.load(Array(repeating: 501, count: 50), of: load)
        #expect(load.level == .overloaded && load.window == 4)
        load = Self.load(Array(repeating: 460, count: 50), of: load)
        #expect(load.level == .overloaded)
        load = Self.load(Array(repeating: 440, count: 50), of: load)
        #expect(load.level == .busy)
    }

    /// The later the loop, the fewer newcomers it admits at a time.
    @Test func windowsShrink() {
        let windows = stride(from: Int64(100), through: 480, by: 20).compactMap { Self.load(Array(repeating: $0 + 1, count: 80)).window }
        #expect(windows.first ?? 0 > 120 && windows.last == 5 || windows.last == 6, "\(windows)")
        #expect(zip(windows, windows.dropFirst()).allSatisfy { $0 > $1 }, "\(windows)")
    }

    /// A pause of any length is forgotten within about a second. A short one changes nothing.
    @Test func pauses() {
        #expect(Self.load([400, 0, 0]).level == .calm)
        var load = LoopLoad(overloadMs: 500)
        load.sample(lagMs: 60_000, elapsedMs: 60_100)
        #expect(load.level == .overloaded)
        load = Self.load(Array(repeating: 0, count: 10), of: load)
        #expect(load.level < .overloaded)
        #expect(Self.load(Array(repeating: 0, count: 10), of: load).level == .calm)
    }

    /// Sheds only when refusing newcomers has not helped for five seconds. Then one viewer in a hundred a second.
    @Test func sheds() {
        var load = LoopLoad(overloadMs: 500)
        var shed: [Int: Int] = [:]
        for sweep in 0..<100 {
            load.sample(lagMs: 1_500, elapsedMs: 100)
            let count = load.shed(of: 1_250)
            if count > 0 { shed[sweep] = count }
        }
        let times = shed.keys.sorted()
        #expect(times.first ?? 0 >= 49 && shed.values.allSatisfy { $0 == 12 }, "\(shed)")
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= 10 }, "\(shed)")
        #expect(load.shed(of: 99) == 0)
        load = Self.load(Array(repeating: 700, count: 100), of: load)
        #expect(load.level == .overloaded && load.shed(of: 1_250) == 0)
    }

    /// Between its two hysteresis limits a busy loop is hardly late: its window is full, not larger.
    @Test func theWindowHasAnUpperBound() {
        let busy = Self.load(Array(repeating: 110, count: 50))
        #expect(Self.load(Array(repeating: 70, count: 50), of: busy).window == 128)
    }

    /// A limit of 0 or less would make every loop overloaded; it counts as one millisecond.
    @Test(arguments: [-5, 0, 1] as [Int64]) func theSmallestLimitIsAMillisecond(overloadMs: Int64) {
        let load = LoopLoad(overloadMs: overloadMs)
        #expect(load.level == .calm)
        #expect(Self.load([0], of: load).level == .calm)
        // 2 × (1 − 0.8^5) = 1.3 ms
        #expect(Self.load([2, 2, 2, 2, 2], of: load).level == .overloaded)
    }

    /// A longer sweep counts as several samples, at most 20. Each counts for at most four times the limit.
    @Test(arguments: [(0, 1), (99, 1), (100, 1), (199, 1), (200, 2), (990, 9), (1_010, 10), (2_000, 20), (9_900, 20)] as [(Int64, Int)])
    func aLongSweepCountsAsSeveral(elapsedMs: Int64, samples: Int) {
        var load = LoopLoad(overloadMs: 500)
        load.sample(lagMs: 60_000, elapsedMs: elapsedMs)
        var expected = 0.0
        for _ in 0..<samples { expected += (2_000 - expected) * 0.2 }
        #expect(load.lagMs == expected)
    }

    /// The exact moments of shedding, and shares rounded down.
    @Test func shedsByTheMillisecond() {
        var load = LoopLoad(overloadMs: 500)
        for _ in 0..<4 { load.sample(lagMs: 2_000, elapsedMs: 1) }
        // Over the threshold since the third sample: 976 ms of lag are more than 750.
        for _ in 0..<4_997 { load.sample(lagMs: 2_000, elapsedMs: 1) }
        #expect(load.shed(of: 10_000) == 0)
        load.sample(lagMs: 2_000, elapsedMs: 1)
        #expect(load.shed(of: 10_000) == 100)
        for _ in 0..<999 { load.sample(lagMs: 2_000, elapsedMs: 1) }
        #expect(load.shed(of: 10_000) == 0)
        load.sample(lagMs: 2_000, elapsedMs: 1)
        #expect(load.shed(of: 99) == 0, "nobody, and this second is over")
        #expect(load.shed(of: 10_000) == 0)
    }

    @Test func pressureIsWhatTheLoopPublished() {
        let pressure = LoopPressure()
        #expect(pressure.level == .calm && pressure.lagMs == 0 && pressure.window == 0)
        pressure.publish(Self.load(Array(repeating: 700, count: 100)))
        #expect(pressure.level == .overloaded && pressure.lagMs == 699 && pressure.window == 4)
        pressure.publish(LoopLoad(overloadMs: 500))
        #expect(pressure.level == .calm && pressure.lagMs == 0 && pressure.window == 0)
    }
}
