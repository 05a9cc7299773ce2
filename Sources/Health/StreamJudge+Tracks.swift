import Media

/// Rules about which tracks exist, and whether outputs can carry them.
extension StreamJudge {
    func trackReasons() -> [HealthReason] {
        [
            self.missing(.audio), self.missing(.video), self.stopped(.audio), self.stopped(.video), self.silent(), self.videoCodecReason(),
            self.audioCodecReason(),
        ].compactMap(\.self)
    }

    /// Seconds by which an announced track may be late: phones begin with one kind.
    private static let missingAfter = 6
    private static let audioStoppedAfter = 4
    private static let videoStoppedAfter = 8
    /// Fewest frames of a real track; fewer may be stray messages.
    private static let fewestFrames = 20
    private static let silentAfter = 8

    /// The kind was announced but never came.
    private func missing(_ kind: ArrivalSecond.Kind) -> HealthReason? {
        guard self.age >= Self.missingAfter else { return nil }
        switch kind {
        case .audio:
            guard self.announced.hasAudio, self.totals.audioFrames == 0, self.totals.videoFrames > 0 else { return nil }
            return HealthReason(.audioMissing, .degraded)
        case .video:
            guard self.announced.hasVideo, self.totals.videoFrames == 0, self.totals.audioFrames > 0 else { return nil }
            return HealthReason(.videoMissing, .degraded)
        }
    }

    /// The kind was present and has stopped, while the other kind continues.
    private func stopped(_ kind: ArrivalSecond.Kind) -> HealthReason? {
        let count = kind == .audio ? Self.audioStoppedAfter : Self.videoStoppedAfter
        let other: ArrivalSecond.Kind = kind == .audio ? .video : .audio
        let total = kind == .audio ? self.totals.audioFrames : self.totals.videoFrames
        let seconds = self.last(count)
        guard total >= Self.fewestFrames, seconds.count == count, seconds.allSatisfy({ $0[kind].frames == 0 }) else { return nil }
        guard seconds.filter({ $0[other].frames > 0 }).count >= count / 2 else { return nil }
        // A picture every few seconds does not mean that video has stopped.
        if kind == .video, self.totals.videoFrames < self.age { return nil }
        let since = self.seconds.reversed().prefix { $0[kind].frames == 0 }.count
        return HealthReason(kind == .audio ? .audioStopped : .videoStopped, .bad, Double(since), expected: 0)
    }

    /// Encoders with a variable bit rate code digital silence in a few bytes. Noise, a muted room, and silence at a constant bit rate look like
    /// sound.
    private func silent() -> HealthReason? {
        let seconds = self.last(Self.silentAfter)
        guard seconds.count == Self.silentAfter else { return nil }
        guard seconds.allSatisfy({ $0.audio.frames > 0 && $0.audio.largestBytes <= $0.silentBytes }) else { return nil }
        let since = self.seconds.reversed().prefix { $0.audio.largestBytes <= $0.silentBytes }.count
        return HealthReason(.audioSilent, .degraded, Double(since), expected: 0)
    }

    // MARK: Codecs

    /// HLS, MP4 and recordings carry H.264, HEVC and AV1 only.
    func videoCodecReason() -> HealthReason? {
        switch self.videoCodec {
        case nil, .avc, .hevc, .av1: nil
        case let codec?: HealthReason(.videoCodecNotCarried, .degraded, detail: codec.name)
        }
    }

    /// The other audio codecs are carried, or transcoded to AAC.
    func audioCodecReason() -> HealthReason? {
        switch self.audioCodec {
        case .deviceSpecific?, .unknown?, .other?: HealthReason(.audioCodecNotCarried, .degraded, detail: self.audioCodec?.name)
        default: nil
        }
    }
}
