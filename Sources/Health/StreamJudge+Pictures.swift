/// Rules about pictures, and about bit rates.
extension StreamJudge {
    func pictureReasons() -> [HealthReason] {
        [self.fps(), self.keyframes(), self.videoBitrate(), self.audioBitrate(), self.bFrames()].compactMap(\.self)
    }

    // MARK: Frames per second

    static let fpsWindow = 5
    /// A rate below these shares of the usual one is a fault. A phone that halves its rate in the dark stays above them.
    private static let fpsDegraded = 0.45
    private static let fpsBad = 0.25
    /// A screen that does not change has few, small frames. If frames are missing, the others are as large as before.
    private static let fpsFrameShare = 0.5
    private static let frameSizeWindow = 2

    private func fps() -> HealthReason? {
        guard let now = self.pictures(over: Self.fpsWindow) else { return nil }
        let expected: Double
        if let usual = self.usual.framesPerSecond, now.fps < Self.fpsDegraded * usual {
            // Only the newest frames: the screen may have been changing a moment ago.
            let newest = self.pictures(over: Self.frameSizeWindow)?.interBytes ?? 0
            guard newest > 0, newest >= Self.fpsFrameShare * self.usual.interBytes else { return nil }
            expected = usual
        } else if let announced = self.announced.framesPerSecond, announced >= UsualPictures.leastFps,
            now.fps < Self.fpsDegraded * announced, let bits = self.announced.videoBitsPerSecond, bits > 0,
            now.bitsPerSecond >= Self.fpsFrameShare * bits
        {
            // The rate was low from the start, though at least half of the announced bit rate arrives.
            expected = announced
        } else {
            return nil
        }
        return HealthReason(
            .fpsLow, now.fps < Self.fpsBad * expected ? .bad : .degraded, (now.fps * 10).rounded() / 10,
            expected: (expected * 10).rounded() / 10)
    }

    /// Pictures per second of media time: the encoder's output, whatever the uplink does to it. A value.
    struct Pictures {
        let fps: Double
        /// Mean bytes of pictures other than keyframes; 0 without any.
        let interBytes: Double
        let keyBytes: Double
        let bitsPerSecond: Double
    }

    /// Nil when there are too few pictures to judge.
    func pictures(over count: Int) -> Pictures? {
        let seconds = self.last(count)
        guard seconds.count == count, self.age >= count + Self.beginning else { return nil }
        guard let mediaMs = Self.mediaMs(seconds, .video) else { return nil }
        let frames = seconds.reduce(0) { $0 + $1.video.frames }
        let keys = seconds.reduce(0) { $0 + $1.video.keyframes }
        let bytes = seconds.reduce(0) { $0 + $1.video.bytes }
        let keyBytes = seconds.reduce(0) { $0 + $1.video.keyframeBytes }
        guard frames > 0 else { return nil }
        return Pictures(
            fps: Double(frames) * 1_000 / mediaMs,
            interBytes: frames > keys ? Double(bytes - keyBytes) / Double(frames - keys) : 0,
            keyBytes: keys > 0 ? Double(keyBytes) / Double(keys) : 0,
            bitsPerSecond: Double(bytes) * 8_000 / mediaMs)
    }

    /// Elapsed media time, by the timestamps, so that media which was delayed and then came at once counts in full. Nil during a stall, when it is
    /// less than half of the elapsed time.
    private static func mediaMs(_ seconds: ArraySlice<ArrivalSecond>, _ kind: ArrivalSecond.Kind) -> Double? {
        let length = seconds.reduce(0) { $0 + $1.lengthMs }
        let media = seconds.reduce(0) { $0 + $1[kind].mediaMs }
        return media > 0 && media * 2 >= length ? Double(media) : nil
    }

    // MARK: Keyframes

    /// With longer intervals, viewers wait long for a picture after a loss. OBS's default of 250 frames at 30 per second is below this.
    private static let keyframeLongMs: Int64 = 8_500
    private static let keyframeUnboundedMs: Int64 = 30_000
    private static let keyframeMissingAfter = 5
    private static let keyframeAdvisedMs = 2_000.0

    private func keyframes() -> HealthReason? {
        guard let newest = self.seconds.last, self.totals.videoFrames > 0 else { return nil }
        guard let age = newest.keyframeAgeMs else {
            guard self.totals.videoSeconds >= Self.keyframeMissingAfter else { return nil }
            return HealthReason(.keyframeMissing, .bad, Double(self.totals.videoSeconds) * 1_000, expected: Self.keyframeAdvisedMs)
        }
        let interval = max(age, newest.keyframeIntervalMs ?? 0)
        guard interval > Self.keyframeLongMs else { return nil }
        return HealthReason(
            age > Self.keyframeUnboundedMs ? .keyframeIntervalUnbounded : .keyframeIntervalLong, .degraded, Double(interval),
            expected: Self.keyframeAdvisedMs)
    }

    // MARK: Bit rates

    private static let bitrateWindow = 10
    private static let bitrateHigh = 1.75
    private static let bitrateLow = 0.4
    private static let audioBitrateHigh = 2.0
    /// A rate that exceeds the announced one by no more than these bits per second is always accepted.
    private static let bitrateSlack = 64_000.0
    /// Pictures smaller than this share of a keyframe show that almost nothing moves, so they need few bits.
    private static let movingShare = 0.05
    private static let movingFps = 8.0

    private func videoBitrate() -> HealthReason? {
        guard let announced = self.announced.videoBitsPerSecond, announced > 0, let now = self.pictures(over: Self.bitrateWindow) else {
            return nil
        }
        let isHigh = now.bitsPerSecond > Self.bitrateHigh * announced && now.bitsPerSecond > announced + Self.bitrateSlack
        let keyBytes = now.keyBytes > 0 ? now.keyBytes : self.usual.keyBytes
        let isMoving = now.fps >= Self.movingFps && keyBytes > 0 && now.interBytes >= Self.movingShare * keyBytes
        guard isHigh || isMoving && now.bitsPerSecond < Self.bitrateLow * announced else { return nil }
        return HealthReason(.videoBitrateMismatch, .degraded, now.bitsPerSecond.rounded(), expected: announced.rounded())
    }

    /// Judges only a rate that is too high: sound that needs few bits, as in a room where nobody speaks, is no fault.
    private func audioBitrate() -> HealthReason? {
        let seconds = self.last(Self.bitrateWindow)
        guard let announced = self.announced.audioBitsPerSecond, announced > 0, seconds.count == Self.bitrateWindow,
            self.age >= Self.bitrateWindow + Self.beginning, let mediaMs = Self.mediaMs(seconds, .audio)
        else { return nil }
        let bits = Double(seconds.reduce(0) { $0 + $1.audio.bytes }) * 8_000 / mediaMs
        guard bits > Self.audioBitrateHigh * announced, bits > announced + Self.bitrateSlack else { return nil }
        return HealthReason(.audioBitrateMismatch, .degraded, bits.rounded(), expected: announced.rounded())
    }

    // MARK: B-frames

    private static let reorderSeconds = 3

    /// A note: B-frames delay every output by a few tenths of a second, and low-latency players cannot show them.
    private func bFrames() -> HealthReason? {
        let seconds = self.last(Self.fpsWindow)
        guard seconds.filter({ $0.reorderMs > 0 }).count >= Self.reorderSeconds else { return nil }
        return HealthReason(.bFrames, .good, Double(seconds.reduce(0) { max($0, $1.reorderMs) }), expected: 0)
    }
}

/// The usual rate and size of this publisher's pictures. A value.
struct UsualPictures: Sendable {
    /// The recent highest rate; nil until there is a rate high enough to judge.
    private(set) var framesPerSecond: Double?
    /// Mean bytes of pictures other than keyframes.
    private(set) var interBytes = 0.0
    private(set) var keyBytes = 0.0

    /// A stream of fewer frames per second varies too much to have a usual rate.
    static let leastFps = 10.0
    /// Factor by which the highest rate decays per second: it halves in about twelve minutes.
    private static let fade = 0.999
    private static let weight = 0.1

    /// Call once a second, after the rules.
    mutating func note(_ judge: StreamJudge) {
        guard let now = judge.pictures(over: StreamJudge.fpsWindow) else { return }
        if now.keyBytes > 0 { self.keyBytes = now.keyBytes }
        let faded = (self.framesPerSecond ?? 0) * Self.fade
        let fps = max(faded, now.fps)
        guard fps >= Self.leastFps else {
            self.framesPerSecond = nil
            return
        }
        self.framesPerSecond = fps
        // Pictures at a reduced rate are not the usual ones.
        guard now.fps >= 0.8 * fps, now.interBytes > 0 else { return }
        self.interBytes = self.interBytes == 0 ? now.interBytes : self.interBytes + (now.interBytes - self.interBytes) * Self.weight
    }
}
