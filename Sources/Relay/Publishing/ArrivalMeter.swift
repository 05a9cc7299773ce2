import Health
import Media
import NIOCore

/// Measures how a publisher's media arrives, for ``StreamJudge``. A value of some hundred bytes, owned by the stream's home loop; times are in
/// milliseconds. Per frame it only adds and compares.
struct ArrivalMeter: Sendable {
    /// The publisher's figures, from its metadata.
    private(set) var announced = AnnouncedFigures()

    private var video = TrackArrivals()
    private var audio = TrackArrivals()
    private var startMs: Int64?
    private var lateMs: Int64 = 0
    private var lastArrivalMs: Int64 = 0
    private var stalledMs: Int64 = 0
    private var stalls = 0
    private var plannedGapMs: Int64 = 0
    private var keyframeMs: Int64?
    private var keyframeIntervalMs: Int64?
    private var leastComposition = Int32.max
    private var mostComposition = Int32.min
    private var metadataMs: Int64?

    /// A frame is a stall if it arrives this much later than its timestamp says.
    static let stallMs: Int64 = 400
    /// Shortest interval between two metadata messages that are read, so that a flood of them costs nothing.
    private static let metadataIntervalMs: Int64 = 1_000
    private static let largestMetadata = 16 << 10

    mutating func count(_ frame: Frame, nowMs: Int64) {
        guard frame.tag.flags.contains(.coded) else { return self.readMetadata(frame, nowMs: nowMs) }
        // The further tracks of one message have the same time.
        guard frame.tag.trackID == 0 else { return }
        let lateBy: Int64
        switch frame.kind {
        case .video:
            lateBy = self.video.count(frame, nowMs: nowMs)
            self.leastComposition = min(self.leastComposition, frame.tag.compositionTimeMs)
            self.mostComposition = max(self.mostComposition, frame.tag.compositionTimeMs)
            if frame.tag.flags.contains(.keyframe) { self.keyframeCame(frame) }
        case .audio:
            lateBy = self.audio.count(frame, nowMs: nowMs)
        case .data: return
        }
        let gapMs = nowMs &- self.lastArrivalMs
        if lateBy >= Self.stallMs {
            // Media that comes late while the other kind goes on is not a stall.
            let stalledMs = min(lateBy, gapMs)
            if stalledMs >= Self.stallMs {
                self.stalledMs &+= stalledMs
                self.stalls &+= 1
            }
        } else if gapMs > self.plannedGapMs, self.lastArrivalMs > 0 {
            self.plannedGapMs = gapMs
        }
        self.lastArrivalMs = nowMs
    }

    private mutating func keyframeCame(_ frame: Frame) {
        let timestamp = self.video.steadyTimestamp
        if let last = self.keyframeMs, timestamp > last { self.keyframeIntervalMs = timestamp - last }
        self.keyframeMs = timestamp
        self.video.second.keyframes &+= 1
        self.video.second.keyframeBytes &+= frame.payload.readableBytes
    }

    private mutating func readMetadata(_ frame: Frame, nowMs: Int64) {
        guard frame.kind == .data, frame.tag.flags.contains(.metadata) else { return }
        if let metadataMs, nowMs - metadataMs < Self.metadataIntervalMs { return }
        guard frame.payload.readableBytes <= Self.largestMetadata, let metadata = StreamMetadata(frame) else { return }
        self.metadataMs = nowMs
        self.announced = AnnouncedFigures(metadata)
    }

    /// Returns the second once it is over; call several times a second. `lateMs`: the loop's total lateness so far.
    mutating func close(audioCodec: AudioCodec?, lateMs: Int64, nowMs: Int64) -> ArrivalSecond? {
        guard let startMs = self.startMs else {
            self.startMs = nowMs
            self.lateMs = lateMs
            return nil
        }
        guard nowMs - startMs >= 1_000 else { return nil }
        var second = ArrivalSecond(lengthMs: nowMs - startMs)
        second.lateMs = lateMs - self.lateMs
        second.stalledMs = self.stalledMs
        second.stalls = self.stalls
        second.plannedGapMs = self.plannedGapMs
        second.silentMs = self.lastArrivalMs > 0 ? nowMs - self.lastArrivalMs : 0
        second.keyframeIntervalMs = self.keyframeIntervalMs
        second.keyframeAgeMs = self.keyframeMs.map { max(0, self.video.steadyTimestamp - $0) }
        second.reorderMs = self.mostComposition > self.leastComposition ? Int64(self.mostComposition) - Int64(self.leastComposition) : 0
        if let audio = self.audio.firstTimestamp, let video = self.video.firstTimestamp { second.startGapMs = audio - video }
        second.silentBytes = Self.silentBytes(audioCodec)
        second.video = self.video.close()
        second.audio = self.audio.close()
        self.startMs = nowMs
        self.lateMs = lateMs
        self.stalledMs = 0
        self.stalls = 0
        self.plannedGapMs = 0
        self.leastComposition = .max
        self.mostComposition = .min
        return second
    }

    /// The largest frame of digital silence. FFmpeg's AAC encoder makes 4 bytes for mono and 6 for stereo, with one of 23 every few seconds;
    /// libopus makes 3.
    private static func silentBytes(_ codec: AudioCodec?) -> Int {
        switch codec {
        case .aac?: 24
        case .opus?: 6
        default: 0
        }
    }
}

/// The timestamps and arrivals of one kind of media. A value of milliseconds.
struct TrackArrivals: Sendable {
    var second = TrackSecond()
    private var lastTimestamp: Int64 = 0
    private var lastArrivalMs: Int64 = 0
    /// The smallest transit so far: media cannot be further ahead of the clock without a jump.
    private var leastTransit = Int64.max
    private var jumpedMs: Int64 = 0
    private(set) var firstTimestamp: Int64?
    /// ``steadyTimestamp`` at the end of the last second.
    private var closedTimestamp: Int64?

    /// The newest timestamp minus all jumps.
    var steadyTimestamp: Int64 { self.lastTimestamp &- self.jumpedMs }

    /// A larger step back is a jump, not jitter of the device's clock.
    static let jumpBackMs: Int64 = 250
    /// A step is a jump if it exceeds the elapsed time by more than this, and puts media that much further ahead of the clock than ever before.
    static let jumpAheadMs: Int64 = 1_500

    /// Returns by how much the frame came later than its timestamp says, compared with its predecessor; 0 at a jump.
    mutating func count(_ frame: Frame, nowMs: Int64) -> Int64 {
        let bytes = frame.payload.readableBytes
        self.second.frames &+= 1
        self.second.bytes &+= bytes
        self.second.largestBytes = max(self.second.largestBytes, bytes &- Int(frame.tag.bodyOffset))
        let timestamp = frame.timestamp
        var transit = nowMs &- timestamp &+ self.jumpedMs
        var lateBy: Int64 = 0
        if self.firstTimestamp != nil {
            let step = timestamp &- self.lastTimestamp
            lateBy = nowMs &- self.lastArrivalMs &- step
            let isAhead = lateBy < -Self.jumpAheadMs && transit < self.leastTransit &- Self.jumpAheadMs
            if step < -Self.jumpBackMs || isAhead {
                self.second.jumps &+= 1
                self.second.jumpMs = 0 &- lateBy
                self.jumpedMs &-= lateBy
                transit &-= lateBy
                lateBy = 0
            } else {
                self.second.jitterMs &+= abs(lateBy)
            }
        }
        if self.firstTimestamp == nil { self.firstTimestamp = timestamp }
        self.lastTimestamp = timestamp
        self.lastArrivalMs = nowMs
        self.leastTransit = min(self.leastTransit, transit)
        self.second.transitMs = min(self.second.transitMs ?? .max, transit)
        return lateBy
    }

    mutating func close() -> TrackSecond {
        self.second.jumpedMs = self.jumpedMs
        if let first = self.firstTimestamp {
            self.second.mediaMs = max(0, self.steadyTimestamp &- (self.closedTimestamp ?? first))
            self.closedTimestamp = self.steadyTimestamp
        }
        // The device's clock may be a little fast.
        if self.leastTransit < .max { self.leastTransit += 1 }
        defer { self.second = TrackSecond() }
        return self.second
    }
}

extension AnnouncedFigures {
    /// The metadata's rates are in kilobits per second.
    init(_ metadata: StreamMetadata) {
        self.init()
        self.hasVideo = metadata.hasVideo
        self.hasAudio = metadata.hasAudio
        self.videoBitsPerSecond = metadata.figure("videodatarate").map { $0 * 1_000 }
        self.audioBitsPerSecond = metadata.figure("audiodatarate").map { $0 * 1_000 }
        self.framesPerSecond = metadata.figure("framerate")
    }
}
