/// Rules about pictures, and about bit rates.
extension StreamJudge {
    func pictureReasons() -> [HealthReason] {
        [self.fps(), self.keyframes(), self.videoBitrate(), self.audioBitrate(), self.bFrames()].compactMap(\.self)
    }

    // MARK: Frames per second

    static let fpsWindow = 5
    /// Below these shares of the usual. A phone halves its rate in the dark; that is no fault.
    private static let fpsDegraded = 0.45
    private static let fpsBad = 0.25
    /// A screen that stands has few frames, of few bytes. Frames that are missing leave the others as large as before.
    private static let fpsFrameShare = 0.5
    private static let frameSizeWindow = 2

    private func fps() -> HealthReason? {
        guard let now = self.pictures(over: Self.fpsWindow) else { return nil }
        let expected: Double
        if let usual = self.usual.framesPerSecond, now.fps < Self.fpsDegraded * usual {
            // The newest ones: a moment ago the screen may not have stood yet.
            let newest = self.pictures(over: Self.frameSizeWindow)?.interBytes ?? 0
            guard newest > 0, newest >= Self.fpsFrameShare * self.usual.interBytes else { return nil }
            expected = usual
        } else if let announced = self.announced.framesPerSecond, announced >= UsualPictures.leastFps,
            now.fps < Self.fpsDegraded * announced, let bits = self.announced.videoBitsPerSecond, bits > 0,
            now.bitsPerSecond >= Self.fpsFrameShare * bits
        {
            // Low from the start, with as many bits as announced.
            expected = announced
        } else {
            return nil
        }
        return HealthReason(
            .fpsLow, now.fps < Self.fpsBad * expected ? .bad : .degraded, (now.fps * 10).rounded() / 10,
            expected: (expected * 10).rounded() / 10)
    }

    /// Pictures per second of media: what the encoder makes, whatever the uplink does with it. A value.
    struct Pictures {
        let fps: Double
        /// Mean bytes of a picture that is no keyframe; 0 without any.
        let interBytes: Double
        let keyBytes: Double
        let bitsPerSecond: Double
    }

    /// Nil without enough of them to tell.
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

    /// Media time that passed, by the timestamps: what waited for a while and then came at once has the time that it shows. Nil for less
    /// than half of the time: a stall.
    private static func mediaMs(_ seconds: ArraySlice<ArrivalSecond>, _ kind: ArrivalSecond.Kind) -> Double? {
        let length = seconds.reduce(0) { $0 + $1.lengthMs }
        let media = seconds.reduce(0) { $0 + $1[kind].mediaMs }
        return media > 0 && media * 2 >= length ? Double(media) : nil
    }

    // MARK: Keyframes

    /// Beyond this, viewers wait long for a picture after a loss. OBS's default of 250 frames at 30 per second is below it.
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
    /// Bits per second above the announced rate that are never far from it.
    private static let bitrateSlack = 64_000.0
    /// Pictures smaller than this share of a keyframe show that next to nothing moves, and need few bits.
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

    /// Only too high: sound that needs few bits, as of a room where nobody speaks, is no fault.
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

    /// A note: a few tenths of a second more delay everywhere, and low-latency players that take no B-frames.
    private func bFrames() -> HealthReason? {
        let seconds = self.last(Self.fpsWindow)
        guard seconds.filter({ $0.reorderMs > 0 }).count >= Self.reorderSeconds else { return nil }
        return HealthReason(.bFrames, .good, Double(seconds.reduce(0) { max($0, $1.reorderMs) }), expected: 0)
    }
}

/// The usual rate and size of this publisher's pictures. A value.
struct UsualPictures: Sendable {
    /// The highest rate of late; nil until there is one that can fall.
    private(set) var framesPerSecond: Double?
    /// Mean bytes of a picture that is no keyframe.
    private(set) var interBytes = 0.0
    private(set) var keyBytes = 0.0

    /// A stream of fewer frames per second varies too much to have a usual rate.
    static let leastFps = 10.0
    /// The highest rate fades: by half in about twelve minutes.
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
        // Pictures of a rate that has fallen are not the usual ones.
        guard now.fps >= 0.8 * fps, now.interBytes > 0 else { return }
        self.interBytes = self.interBytes == 0 ? now.interBytes : self.interBytes + (now.interBytes - self.interBytes) * Self.weight
    }
}
