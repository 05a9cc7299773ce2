import Media

@testable import Health

/// A publisher simulated second by second: what the relay would measure of it. A value.
struct Simulated {
    var fps = 25.0
    var interBytes = 2_500
    var keyBytes = 20_000
    /// Milliseconds between keyframes; nil: only the first.
    var gopMs: Int64? = 2_000
    var hasVideo = true
    var audioPerSecond = 43
    var audioBytes = 300
    /// Milliseconds of media that arrive in a second.
    var mediaMs: Int64 = 1_000
    /// By how much audio's timestamps are ahead of video's.
    var skewMs: Int64 = 0
    var jitterMs: Int64 = 3
    var stalledMs: Int64 = 0
    var reorderMs: Int64 = 0
    var lateMs: Int64 = 0
    /// Jumps of both tracks in each second, and by how much.
    var jumps = 0
    var jumpMs: Int64 = 0
    var silentMs: Int64 = 20
    var startGapMs: Int64?
    var announced = AnnouncedFigures()
    var videoCodec: VideoCodec? = .avc
    var audioCodec: AudioCodec? = .aac
    /// Of each second.
    var videoFlaws = FrameFlaws()
    var audioFlaws = FrameFlaws()
    var videoRefusal: TrackRefusal?
    var audioRefusal: TrackRefusal?

    private(set) var judge = StreamJudge()
    private(set) var changes = 0
    private var behindMs: Int64 = 0
    private var jumpedMs: Int64 = 0
    private var mediaTimeMs: Int64 = 0
    private var keyframeMs: Int64?
    private var keyframeIntervalMs: Int64?
    private var owedFrames = 0.0

    var health: StreamHealth { self.judge.health }
    var codes: [HealthReason.Code] { self.health.reasons.map(\.code) }

    /// The first second, within `limit`, at whose end this code is among the reasons.
    mutating func seconds(until code: HealthReason.Code, limit: Int = 60) -> Int? {
        for second in 1...limit {
            self.run(1)
            if self.codes.contains(code) { return second }
        }
        return nil
    }

    mutating func run(_ seconds: Int) {
        for _ in 0..<seconds {
            let before = self.health.verdict
            self.judge.judge(self.next(), announced: self.announced, videoCodec: self.videoCodec, audioCodec: self.audioCodec)
            if self.health.verdict != before { self.changes += 1 }
        }
    }

    private mutating func next() -> ArrivalSecond {
        var second = ArrivalSecond(lengthMs: 1_000)
        self.behindMs += 1_000 - self.mediaMs
        self.jumpedMs += Int64(self.jumps) * self.jumpMs
        self.mediaTimeMs += self.mediaMs
        second.lateMs = self.lateMs
        second.stalledMs = self.stalledMs
        second.stalls = self.stalledMs > 0 ? 1 : 0
        second.silentMs = self.silentMs
        second.startGapMs = self.startGapMs
        second.plannedGapMs = self.audioPerSecond > 0 ? 23 : self.fps > 0 ? Int64(1_000 / self.fps) : 0
        second.silentBytes = self.audioCodec == .aac ? 16 : 0
        if self.hasVideo, self.mediaMs > 0 {
            self.owedFrames += self.fps * Double(self.mediaMs) / 1_000
            let frames = Int(self.owedFrames)
            self.owedFrames -= Double(frames)
            if frames > 0 { self.pictures(frames, &second) }
        }
        if self.audioPerSecond > 0, self.mediaMs > 0 {
            let frames = max(1, self.audioPerSecond * Int(self.mediaMs) / 1_000)
            second.audio = self.track(frames, frames * self.audioBytes, largest: self.audioBytes, transit: self.behindMs - self.skewMs)
        }
        (second.video.flaws, second.audio.flaws) = (self.videoFlaws, self.audioFlaws)
        (second.video.refusal, second.audio.refusal) = (self.videoRefusal, self.audioRefusal)
        second.keyframeIntervalMs = self.keyframeIntervalMs
        second.keyframeAgeMs = self.keyframeMs.map { self.mediaTimeMs - $0 }
        return second
    }

    private mutating func pictures(_ frames: Int, _ second: inout ArrivalSecond) {
        let isKey = self.keyframeMs.map { last in self.gopMs.map { self.mediaTimeMs - last >= $0 } ?? false } ?? (self.keyBytes > 0)
        if isKey {
            if let last = self.keyframeMs { self.keyframeIntervalMs = self.mediaTimeMs - last }
            self.keyframeMs = self.mediaTimeMs
        }
        let keys = isKey ? 1 : 0
        let bytes = keys * self.keyBytes + (frames - keys) * self.interBytes
        second.video = self.track(frames, bytes, largest: isKey ? self.keyBytes : self.interBytes, transit: self.behindMs)
        second.video.keyframes = keys
        second.video.keyframeBytes = keys * self.keyBytes
        second.reorderMs = self.reorderMs
    }

    private func track(_ frames: Int, _ bytes: Int, largest: Int, transit: Int64) -> TrackSecond {
        var track = TrackSecond()
        track.frames = frames
        track.bytes = bytes
        track.largestBytes = largest
        track.transitMs = transit
        track.mediaMs = self.mediaMs
        track.jumpedMs = self.jumpedMs
        track.jitterMs = Int64(frames) * self.jitterMs
        track.jumps = self.jumps
        track.jumpMs = self.jumpMs
        return track
    }
}
