internal import Media
internal import NIOCore

/// One track's samples on their way into a muxer: puts them on the track's clock, in strictly rising order, and tells how long each lasts.
///
/// A plain value, owned by a `FragmentMuxer`. The newest sample is held back until the one behind it, or a flush, tells its duration.
struct Lane {
    /// A sample on the track's clock.
    struct Placed {
        var payload: ByteBuffer
        /// Ticks of the track's timescale since the origin.
        var dts: Int64
        var pts: Int64
        /// What the codec says a sample lasts; nil of video.
        var nominal: Int64?
        /// Milliseconds on the stream's timeline, as they came.
        var ms: Int64
        var isKeyframe: Bool
    }

    /// Milliseconds. A step back that is more than encoders' disorder; a composition time that no encoder has.
    static let maxStepBackMs: Int64 = 10_000
    static let maxCompositionMs: Int64 = 10_000
    /// Milliseconds. A step forward inside one fragment that is no pause any more.
    static let maxStepForwardMs: Int64 = 60_000

    let track: Track
    /// Ticks a second.
    let timescale: Int64
    private let originMs: Int64
    private var clock: AudioClock
    /// The newest sample, which is not written yet.
    private(set) var held: Placed?
    private var lastTicks: Int64?
    private var lastMs: Int64?
    /// Ticks; of video.
    private var lastDuration: Int64
    /// Between the last two pictures, and the shorter of that and the one before. Ticks.
    private var lastStep: Int64?
    private var shortestStep: Int64?
    /// Of audio, in the last run whose header could be read.
    private var lastSamples: Int
    /// Of the fragment that is being written.
    private(set) var first: Placed?
    private(set) var count = 0
    /// Where the last written sample ends. Ticks since the origin.
    private(set) var end: Int64 = 0
    /// Times that had to be moved.
    private(set) var adjusted = 0

    init(_ track: Track, timescale: Int64, originMs: Int64) {
        self.track = track
        self.timescale = timescale
        self.originMs = originMs
        self.clock = AudioClock(sampleRate: track.sampleRate)
        // Until two pictures have been seen: the header's rate, or 25 pictures a second.
        let rate = max(1, track.frameRate ?? 25)
        self.lastDuration = max(1, Int64(Double(timescale) / rate))
        self.lastSamples = track.samplesPerRun ?? 1_024
    }

    var isEmpty: Bool { self.held == nil && self.count == 0 }

    /// What pictures last at least, by the last two that are known; nil before.
    var pictureMs: Int64? { self.shortestStep.map { AudioClock.scale($0, 1_000, self.timescale) } }

    /// Throws `.timestampJump` when the sample cannot stand behind the ones before.
    func judge(_ sample: Sample) throws(FFmpegError) {
        guard let lastMs else { return }
        let step = sample.dts.subtractingReportingOverflow(lastMs)
        guard !step.overflow, step.partialValue >= -Self.maxStepBackMs, self.isEmpty || step.partialValue <= Self.maxStepForwardMs else {
            throw .timestampJump(kind: sample.kind, fromMs: lastMs, toMs: sample.dts)
        }
    }

    /// Takes a sample that was judged, and gives back the one it had held, with its duration in ticks.
    mutating func push(_ sample: Sample) -> (placed: Placed, duration: Int64)? {
        let placed = self.place(sample)
        let released = self.release(until: placed.dts)
        self.held = placed
        return released
    }

    /// Gives back the held sample. `next` is the dts of the sample behind it in ticks; nil when nobody knows.
    mutating func release(until next: Int64?) -> (placed: Placed, duration: Int64)? {
        guard let placed = self.held else { return nil }
        self.held = nil
        var duration = placed.nominal ?? self.lastDuration
        if let next, next > placed.dts {
            // A gap is left open, between fragments; a fragment's last sample does not fill it.
            let measured = next - placed.dts
            let isGap = measured > Self.maxStepBackMs * self.timescale / 1_000
            if !isGap { duration = measured }
        }
        if self.track.kind == .video, next != nil { self.lastDuration = duration }
        if self.count == 0 { self.first = placed }
        self.count += 1
        self.end = placed.dts + duration
        return (placed, duration)
    }

    /// When a sample would start, without taking it. Ticks since the origin; rounded to the millisecond.
    func ticks(ofMs ms: Int64) -> Int64 {
        AudioClock.scale(AudioClock.bounded(ms &- self.originMs), self.timescale, 1_000)
    }

    /// Milliseconds on the stream's timeline.
    func ms(ofTicks ticks: Int64) -> Int64 {
        AudioClock.scale(ticks, 1_000, self.timescale) &+ self.originMs
    }

    mutating func fragmentEnded() {
        self.first = nil
        self.count = 0
    }

    private mutating func place(_ sample: Sample) -> Placed {
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
            dts = self.ticks(ofMs: sample.dts)
        }
        // RTMP's milliseconds can be equal for two samples; a container's decode times must rise. Nothing can be before the origin.
        let least = self.lastTicks.map { $0 + 1 } ?? 0
        if dts < least {
            self.adjusted += 1
            dts = least
        }
        var pts = dts
        if self.track.kind == .video, sample.pts != sample.dts {
            if sample.pts > sample.dts, sample.pts &- sample.dts <= Self.maxCompositionMs {
                pts = max(self.ticks(ofMs: sample.pts), dts)
            } else {
                // Shown before it is decoded: no container has that, and libavformat refuses it.
                self.adjusted += 1
            }
        }
        // What a picture lasts whose successor is not known, as at the end of a fragment, is what the one before it did: across fragments,
        // for of few pictures a second each may be one.
        if self.track.kind == .video, let last = self.lastTicks, dts - last <= Self.maxStepBackMs * self.timescale / 1_000 {
            self.shortestStep = self.lastStep.map { min($0, dts - last) }
            self.lastStep = dts - last
            self.lastDuration = max(1, dts - last)
        }
        self.lastTicks = dts
        self.lastMs = sample.dts
        return Placed(payload: sample.payload, dts: dts, pts: pts, nominal: nominal, ms: sample.dts, isKeyframe: sample.isKeyframe)
    }
}
