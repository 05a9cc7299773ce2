internal import Media
internal import NIOCore

/// Places one track's samples on its clock, in strictly rising order, and finds their durations.
///
/// A plain value, owned by a `FragmentMuxer`. It holds the newest sample back until the next one, or a flush, determines its duration.
struct TrackTimeline {
    /// A sample on the track's clock.
    struct TimedSample {
        var payload: ByteBuffer
        /// Ticks of the track's timescale since the origin.
        var dts: Int64
        var pts: Int64
        /// The duration according to the codec; nil for video.
        var nominal: Int64?
        /// Milliseconds on the stream's timeline, as received.
        var ms: Int64
        var isKeyframe: Bool
    }

    /// Milliseconds. A larger step back is more than encoders' disorder; no encoder has a larger composition time.
    static let maxStepBackMs: Int64 = 10_000
    static let maxCompositionMs: Int64 = 10_000
    /// Milliseconds. No encoder shows a picture longer before its decode time.
    static let maxLeadMs: Int64 = 2_000
    /// Milliseconds. A larger step forward inside one fragment is no mere pause.
    static let maxStepForwardMs: Int64 = 60_000

    let track: Track
    /// Ticks a second.
    let timescale: Int64
    private let originMs: Int64
    private var clock: AudioClock
    /// The newest sample, which is not written yet.
    private(set) var held: TimedSample?
    private var lastTicks: Int64?
    private var lastMs: Int64?
    /// The duration of the last picture, in ticks.
    private var lastDuration: Int64
    /// The step between the last two pictures, and the shorter of the last two steps. Ticks.
    private var lastStep: Int64?
    private var shortestStep: Int64?
    /// Samples of the last audio run with a readable header.
    private var lastSamples: Int
    /// The current fragment's first sample and sample count.
    private(set) var first: TimedSample?
    private(set) var count = 0
    /// The end of the last written sample. Ticks since the origin.
    private(set) var end: Int64 = 0
    /// Times that had to be moved.
    private(set) var adjusted = 0
    /// Milliseconds by which pictures are decoded before their timestamps.
    ///
    /// Some encoders stamp pictures in decode order and give earlier ones negative composition times. Containers, or the players of them, know no
    /// picture that is shown before it is decoded. So all decode times move ahead by the most negative composition time; what is shown stays.
    private(set) var leadMs: Int64

    init(_ track: Track, timescale: Int64, originMs: Int64, leadMs: Int64 = 0) {
        self.leadMs = track.kind == .video ? max(0, min(leadMs, Self.maxLeadMs)) : 0
        self.track = track
        self.timescale = timescale
        self.originMs = originMs
        self.clock = AudioClock(sampleRate: track.sampleRate)
        // Until two pictures have arrived: the header's rate, or 25 pictures a second.
        let rate = max(1, track.frameRate ?? 25)
        self.lastDuration = max(1, Int64(Double(timescale) / rate))
        self.lastSamples = track.samplesPerRun ?? 1_024
    }

    var isEmpty: Bool { self.held == nil && self.count == 0 }

    /// The shorter of the last two picture steps, in milliseconds; nil before three pictures.
    var pictureMs: Int64? { self.shortestStep.map { AudioClock.scale($0, 1_000, self.timescale) } }

    /// Throws `.timestampJump` when the sample cannot follow the ones before.
    func judge(_ sample: Sample) throws(FFmpegError) {
        guard let lastMs else { return }
        let step = sample.dts.subtractingReportingOverflow(lastMs)
        guard !step.overflow, step.partialValue >= -Self.maxStepBackMs, self.isEmpty || step.partialValue <= Self.maxStepForwardMs else {
            throw .timestampJump(kind: sample.kind, fromMs: lastMs, toMs: sample.dts)
        }
    }

    /// Adds a sample that passed ``judge(_:)``. Returns the one held before, with its duration in ticks.
    mutating func push(_ sample: Sample) -> (timed: TimedSample, duration: Int64)? {
        let timed = self.time(sample)
        let released = self.release(until: timed.dts)
        self.held = timed
        return released
    }

    /// Returns the held sample. `next` is the next sample's dts in ticks; nil when unknown.
    mutating func release(until next: Int64?) -> (timed: TimedSample, duration: Int64)? {
        guard let timed = self.held else { return nil }
        self.held = nil
        var duration = timed.nominal ?? self.lastDuration
        if let next, next > timed.dts {
            // A gap between fragments stays open; the last sample is not stretched over it.
            let measured = next - timed.dts
            let isGap = measured > Self.maxStepBackMs * self.timescale / 1_000
            if !isGap { duration = measured }
        }
        if self.track.kind == .video, next != nil { self.lastDuration = duration }
        if self.count == 0 { self.first = timed }
        self.count += 1
        self.end = timed.dts + duration
        return (timed, duration)
    }

    /// The start of a sample in ticks since the origin, rounded to the millisecond. Does not add the sample.
    func ticks(ofMs ms: Int64) -> Int64 {
        AudioClock.scale(AudioClock.bounded(ms &- self.originMs), self.timescale, 1_000)
    }

    /// The decode time of a sample with this timestamp, in ticks since the origin.
    func ticks(ofDecodeMs ms: Int64) -> Int64 { self.ticks(ofMs: ms &- self.leadMs) }

    /// Milliseconds; nil if no encoder has such a one.
    private static func composition(of sample: Sample) -> Int64? {
        let (composition, overflows) = sample.pts.subtractingReportingOverflow(sample.dts)
        return !overflows && composition >= -Self.maxLeadMs ? composition : nil
    }

    private mutating func noteLead(of sample: Sample) {
        guard let composition = Self.composition(of: sample) else { return }
        self.leadMs = max(self.leadMs, -composition)
    }

    /// Milliseconds on the stream's timeline.
    func ms(ofTicks ticks: Int64) -> Int64 { AudioClock.scale(ticks, 1_000, self.timescale) &+ self.originMs }

    mutating func fragmentEnded() {
        self.first = nil
        self.count = 0
    }

    private mutating func time(_ sample: Sample) -> TimedSample {
        var nominal: Int64?
        var dts: Int64
        if self.track.kind == .audio {
            let samples = self.track.samples(in: sample.payload) ?? self.lastSamples
            let rate = Int64(self.track.sampleRate)
            // In MPEG-TS the ticks are not samples.
            dts = AudioClock.scale(self.clock.time(ms: sample.dts &- self.originMs, samples: samples), self.timescale, rate)
            nominal = AudioClock.scale(Int64(samples), self.timescale, rate)
            self.lastSamples = samples
        } else {
            self.noteLead(of: sample)
            dts = self.ticks(ofDecodeMs: sample.dts)
        }
        // Two samples can share one of RTMP's milliseconds, but decode times must rise. They cannot precede the origin either.
        let least = self.lastTicks.map { $0 + 1 } ?? 0
        let isPressed = dts < least
        if isPressed {
            // Until decode times have moved ahead they lie close together, which moves nothing that is shown.
            if dts + AudioClock.scale(self.leadMs, self.timescale, 1_000) < least { self.adjusted += 1 }
            dts = least
        }
        var pts = dts
        if self.track.kind == .video {
            if let composition = Self.composition(of: sample), composition <= Self.maxCompositionMs {
                pts = max(self.ticks(ofMs: sample.dts &+ composition), dts)
            } else {
                self.adjusted += 1
                pts = max(self.ticks(ofMs: sample.dts), dts)
            }
        }
        // Without a known successor, as at a fragment's end, a picture lasts as its predecessor. This holds across fragments, since at
        // few pictures a second each may be a fragment of its own.
        if self.track.kind == .video, !isPressed, let last = self.lastTicks, dts - last <= Self.maxStepBackMs * self.timescale / 1_000 {
            self.shortestStep = self.lastStep.map { min($0, dts - last) }
            self.lastStep = dts - last
            self.lastDuration = max(1, dts - last)
        }
        self.lastTicks = dts
        self.lastMs = sample.dts
        return TimedSample(payload: sample.payload, dts: dts, pts: pts, nominal: nominal, ms: sample.dts, isKeyframe: sample.isKeyframe)
    }
}
