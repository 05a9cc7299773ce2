/// Rules that compare the arrival of media with its timestamps.
extension StreamJudge {
    func timingReasons() -> [HealthReason] {
        [self.behindClock(), self.stalls(), self.jitter(), self.skew(), self.startGap(), self.jumps.reason].compactMap(\.self)
    }

    // MARK: Behind the clock

    /// Lag in seconds per second that is reported after six seconds, and after twelve.
    private static let behindSoon = 0.08
    private static let behindLate = 0.03
    private static let leastBehindMs: Int64 = 300
    private static let badRatio = 0.9

    private func behindClock() -> HealthReason? {
        for (count, share) in [(6, Self.behindSoon), (Self.window, Self.behindLate)] {
            guard let lag = self.lag(over: count), lag.steadyMs >= Self.leastBehindMs, lag.share >= share else { continue }
            let ratio = max(0, 1 - lag.share)
            return HealthReason(
                .mediaBehindClock, ratio < Self.badRatio ? .bad : .degraded, (ratio * 100).rounded() / 100, expected: 1)
        }
        return nil
    }

    private struct Lag {
        /// How far media fell behind, without the worst second: one stall is no trend.
        let steadyMs: Int64
        /// ``steadyMs`` as a share of the elapsed time.
        let share: Double
    }

    /// The smaller lag of audio and video, since a slow uplink delays both.
    private func lag(over count: Int) -> Lag? {
        let seconds = self.last(count)
        guard seconds.count == count else { return nil }
        let lags = [self.lag(seconds, .video), self.lag(seconds, .audio)].compactMap(\.self)
        return lags.min { $0.share < $1.share }
    }

    private func lag(_ seconds: ArraySlice<ArrivalSecond>, _ kind: ArrivalSecond.Kind) -> Lag? {
        var growth: Int64 = 0
        var worst: (growthMs: Int64, lengthMs: Int64) = (0, 0)
        var elapsed: Int64 = 0
        var pending: Int64 = 0
        var last: Int64?
        var points = 0
        for second in seconds {
            pending += second.lengthMs
            guard let transit = second[kind].transitMs else { continue }
            points += 1
            if let last {
                // The server's own lateness is not the uplink's.
                let step = transit - last > 0 ? max(0, transit - last - second.lateMs) : transit - last
                growth += step
                elapsed += pending
                if step > worst.growthMs { worst = (step, pending) }
            }
            last = transit
            pending = 0
        }
        let steadyElapsed = elapsed - worst.lengthMs
        // A picture every few seconds is too little to judge.
        guard points > seconds.count / 2, steadyElapsed > 0 else { return nil }
        let steady = growth - worst.growthMs
        return Lag(steadyMs: steady, share: Double(steady) / Double(steadyElapsed))
    }

    // MARK: Stalls

    private static let stallWindow = 10
    static let stallWindowMs: Int64 = 10_000
    private static let stalledDegradedMs: Int64 = 1_000
    private static let stalledBadMs: Int64 = 4_000
    private static let fewestStalls = 3
    private static let fewestBusySeconds = 4
    /// Silence that counts as a stall while it still lasts, if it is also several times as long as the pauses between pictures.
    private static let silenceMs: Int64 = 2_000
    private static let timesPlanned: Int64 = 3

    private func stalls() -> HealthReason? {
        // A publisher that has sent only briefly has no rhythm to judge by.
        guard self.age > Self.beginning, self.totals.busySeconds >= Self.fewestBusySeconds, let newest = self.seconds.last else {
            return nil
        }
        let seconds = self.last(min(Self.stallWindow, self.age - Self.beginning))
        let late = seconds.reduce(0) { $0 + $1.lateMs }
        let planned = self.seconds.reduce(0) { max($0, $1.plannedGapMs) }
        let isSilent = newest.silentMs - late > max(Self.silenceMs, Self.timesPlanned * planned)
        let ended = seconds.reduce(0) { $0 + $1.stalledMs }
        // An ongoing silence is reported at its full length. Past stalls cannot be longer than the window.
        let silent = isSilent ? newest.silentMs : 0
        let stalled = (silent > Self.stallWindowMs ? silent : min(ended + silent, Self.stallWindowMs)) - late
        let count = seconds.reduce(0) { $0 + $1.stalls }
        guard stalled >= Self.stalledDegradedMs || count >= Self.fewestStalls && late == 0 else { return nil }
        return HealthReason(
            .uplinkStalls, stalled >= Self.stalledBadMs ? .bad : .degraded, Double(max(0, stalled)), expected: 0)
    }

    // MARK: Jitter

    private static let jitterWindow = 8
    private static let jitterMs = 100.0
    /// Fewest frames in the window for a judgement.
    private static let jitterFrames = 40

    private func jitter() -> HealthReason? {
        guard self.age >= Self.beginning + Self.jitterWindow else { return nil }
        let seconds = self.last(Self.jitterWindow)
        guard seconds.allSatisfy({ $0.lateMs < 50 }) else { return nil }
        let frames = seconds.reduce(0) { $0 + $1.video.frames + $1.audio.frames }
        let sum = seconds.reduce(0) { $0 + $1.video.jitterMs + $1.audio.jitterMs }
        guard frames >= Self.jitterFrames else { return nil }
        let mean = Double(sum) / Double(frames)
        guard mean > Self.jitterMs else { return nil }
        return HealthReason(.uplinkJitter, .degraded, mean.rounded(), expected: Self.jitterMs)
    }

    // MARK: Skew

    private static let skewWindow = 5
    private static let skewPoints = 4
    private static let skewDegradedMs: Int64 = 1_000
    private static let skewBadMs: Int64 = 2_500

    /// How far the newest audio's timestamp is ahead of the newest video's, by their arrival.
    private func skew() -> HealthReason? {
        // Streams with rare pictures need a longer window.
        let skews = self.last(Self.window).compactMap { second -> Int64? in
            guard let video = second.video.rawTransitMs, let audio = second.audio.rawTransitMs else { return nil }
            return video - audio
        }.suffix(Self.skewWindow)
        guard skews.count >= Self.skewPoints, let newest = skews.last else { return nil }
        guard skews.allSatisfy({ $0 > Self.skewDegradedMs }) || skews.allSatisfy({ $0 < -Self.skewDegradedMs }) else { return nil }
        let least = skews.map { abs($0) }.min() ?? 0
        return HealthReason(
            .avSkew, least > Self.skewBadMs ? .bad : .degraded, Double(newest), expected: Double(Self.skewDegradedMs))
    }

    /// A kind that begins later than this was probably switched on later.
    private static let startGapRange: ClosedRange<Int64> = 1_000...10_000

    /// A note: sound and pictures arrive together, but one kind began later. A phone's start looks like this, and so does a stream whose sound was
    /// shifted on purpose or by mistake.
    private func startGap() -> HealthReason? {
        guard let gap = self.seconds.last?.startGapMs, Self.startGapRange.contains(abs(gap)) else { return nil }
        return HealthReason(.avStartGap, .good, Double(gap), expected: 0)
    }
}

/// The timestamps' jumps of the last minute. A value.
struct JumpRecord: Sendable {
    /// Ages of the newest jumps in seconds, at most ``limit``.
    private var ages: [Int] = []
    private var newestMs: Int64 = 0

    private static let limit = 3
    private static let shownSeconds = 30
    private static let countedSeconds = 60

    mutating func note(_ second: ArrivalSecond, isBeginning: Bool) {
        self.ages = self.ages.compactMap { $0 < Self.countedSeconds ? $0 + 1 : nil }
        var jumps = max(second.video.jumps, second.audio.jumps)
        guard jumps > 0, !isBeginning else { return }
        self.newestMs = second.video.jumps > 0 ? second.video.jumpMs : second.audio.jumpMs
        // Audio may follow video's jump in the next second; the two count as one.
        if self.ages.contains(1) { jumps -= 1 }
        for _ in 0..<min(jumps, Self.limit) { self.ages.append(0) }
        self.ages = self.ages.suffix(Self.limit)
    }

    var reason: HealthReason? {
        guard let newest = self.ages.last, newest < Self.shownSeconds else { return nil }
        return HealthReason(
            .timestampJump, self.ages.count >= Self.limit ? .bad : .degraded, Double(self.newestMs), expected: 0)
    }
}
