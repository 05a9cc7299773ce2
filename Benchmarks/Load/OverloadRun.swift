/// One run of ``Overload``: a publisher, its viewers, and more of them than there should be. Runs on the calling thread.
struct OverloadRun {
    let target: Target
    let shape: StreamShape
    let limitMs: Double
    let rampIntervalUs: Int
    let joinIntervalUs: Int
    let most: Int
    let settleSeconds: Double
    let seconds: Double

    private static let second: UInt64 = 1_000_000_000
    private static let comesAgainNs: UInt64 = 1_000_000_000
    /// Seconds within which all must be normal again.
    private static let recoveryLimit = 15
    /// Time to the first keyframe within which a newcomer counts as served at once. Nanoseconds.
    private static let joinLimitNs: UInt64 = 1_000_000_000
    /// Viewers whose latency is sampled each second.
    private static let sampled = 500

    func run(into result: inout OverloadResult) throws(LoadError) {
        let name = "overload-\(Clock.now() / 1_000_000)"
        let publisher = try Publisher(target: self.target, names: [name], shape: self.shape)
        defer { publisher.close() }
        try publisher.start()
        Clock.sleep(untilNs: Clock.now() + 3 * Self.second)
        let loop = try ViewerLoop(target: self.target)
        try self.findCapacity(loop, name, into: &result)
        for factor in [1, 1.5, 2] { try self.offer(factor, loop, name, into: &result) }
        try self.recover(loop, name, into: &result)
        try publisher.stop()
    }

    // MARK: Capacity

    private func findCapacity(_ loop: ViewerLoop, _ name: String, into result: inout OverloadResult) throws(LoadError) {
        self.plan(loop, name, count: self.most, intervalUs: self.rampIntervalUs)
        var served = 0
        var late = 0
        // A single late second may be another program's fault.
        while late < 2, loop.viewers.count < self.most {
            let p99 = try self.measureSecond(loop)
            if let ending = loop.endings.first {
                result.limitedBy = ending.key
                break
            }
            late = p99 ?? 0 > self.limitMs ? late + 1 : 0
            guard late == 0 else {
                result.limitedBy = "p99 of a second: \(RunResult.optional(p99)) ms"
                continue
            }
            result.limitedBy = nil
            // Without a cached keyframe, a server shows the first one late.
            served = loop.viewers.count { $0.phase == .playing && $0.check.messages > 0 }
        }
        // Measured without the cost of joins. Where there are still too many viewers, their number is lowered by 5 %.
        while true {
            loop.keep(served)
            try loop.run(untilNs: Clock.now() + 3 * Self.second)
            let (p99, _, count) = try self.measure(loop, seconds: self.seconds / 2)
            result.capacity = count
            result.capacityP99Ms = p99
            guard (p99 ?? 0) > self.limitMs, served > 20 else { break }
            served = served * 19 / 20
        }
    }

    // MARK: Offers

    private func offer(_ factor: Double, _ loop: ViewerLoop, _ name: String, into result: inout OverloadResult) throws(LoadError) {
        loop.keep(0)
        try loop.run(untilNs: Clock.now() + 5 * Self.second)
        let count = min(self.most, Int(Double(result.capacity) * factor))
        loop.comesAgainNs = Self.comesAgainNs
        let lastJoin = self.plan(loop, name, count: count, intervalUs: self.joinIntervalUs)
        try loop.run(untilNs: lastJoin + UInt64(self.settleSeconds * 1e9))
        let before = (loop.endings, loop.cuts)
        let (p99, p50, served) = try self.measure(loop, seconds: self.seconds)
        var offer = OverloadResult.Offer(factor: factor, viewers: count, served: served, p50Ms: p50, p99Ms: p99)
        for (why, times) in loop.endings {
            let perSecond = Int((Double(times - before.0[why, default: 0]) / self.seconds).rounded())
            if why.contains("refused") { offer.refused += perSecond } else { offer.turnedAway += perSecond }
        }
        offer.cut = loop.cuts - before.1
        offer.cutInAll = loop.cuts
        result.offers.append(offer)
    }

    // MARK: After the load

    private func recover(_ loop: ViewerLoop, _ name: String, into result: inout OverloadResult) throws(LoadError) {
        loop.keep(result.capacity / 2)
        let fell = Clock.now()
        // One newcomer each 50 ms.
        self.plan(loop, name, count: Self.recoveryLimit * 20, intervalUs: 50_000)
        for _ in 0..<Self.recoveryLimit {
            let first = loop.viewers.count
            let start = Clock.now()
            let p99 = try self.measureSecond(loop)
            // Those that have had the time to be served.
            let newcomers = loop.viewers.dropFirst(first).filter { $0.startedNs + Self.joinLimitNs / 2 < Clock.now() }
            let areServed = newcomers.allSatisfy { viewer in
                viewer.check.firstKeyframeNs.map { $0 - viewer.startedNs < Self.joinLimitNs } ?? false
            }
            guard let p99, p99 <= result.capacityP99Ms ?? 0, areServed, loop.cuts == 0 else { continue }
            result.recoverySeconds = Double(start - fell) / 1e9
            return
        }
    }

    // MARK: Parts

    @discardableResult
    private func plan(_ loop: ViewerLoop, _ name: String, count: Int, intervalUs: Int) -> UInt64 {
        let start = Clock.now()
        loop.plan(
            (0..<count).map {
                ViewerLoop.Plan(
                    dueNs: start + UInt64($0) * UInt64(intervalUs) * 1_000, name: name, room: 0, hasVideo: self.shape.videoKbps > 0)
            })
        return start + UInt64(count) * UInt64(intervalUs) * 1_000
    }

    /// The p99 latency of a second's frames.
    private func measureSecond(_ loop: ViewerLoop) throws(LoadError) -> Double? {
        let sample = loop.viewers.enumerated().filter { $0.offset % max(1, loop.viewers.count / Self.sampled) == 0 }.map(\.element)
        let now = Clock.now()
        for viewer in sample { viewer.check.restart(now) }
        try loop.run(untilNs: now + Self.second)
        return self.latency(of: sample).milliseconds(at: 0.99)
    }

    private func latency(of viewers: some Sequence<Viewer>) -> Histogram {
        var all = Histogram()
        for viewer in viewers { all.add(viewer.check.latency) }
        return all
    }

    /// The latency of the viewers that are served, and their number.
    private func measure(_ loop: ViewerLoop, seconds: Double) throws(LoadError) -> (p99: Double?, p50: Double?, served: Int) {
        let start = Clock.now()
        let end = start + UInt64(seconds * 1e9)
        for viewer in loop.viewers { viewer.check.restart(start) }
        loop.beginWindow(start)
        try loop.run(untilNs: end)
        loop.endWindow(end)
        let audioFrames = self.shape.audioKbps > 0 ? Double(StreamShape.audioSampleRate) / Double(StreamShape.audioSamplesPerFrame) : 0
        let wanted = Int((Double(self.shape.framesPerSecond) + audioFrames) * seconds * 0.9)
        let served = loop.viewers.filter { $0.phase == .playing && $0.check.windowMessages >= wanted }
        // Frames sent in the window count even if they arrive a little later.
        try loop.run(untilNs: end + Self.second)
        let latency = self.latency(of: served)
        return (latency.milliseconds(at: 0.99), latency.milliseconds(at: 0.5), served.count)
    }
}
