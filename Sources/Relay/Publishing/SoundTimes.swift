import Media
import NIOCore

/// Evens the times of AAC that a device stamps unevenly. A pure value of milliseconds; owned by the stream's state.
///
/// Times stand as they are while each is later than the one before, by two frames' duration at most, or by so much that sound is missing. Devices that
/// stamp several frames alike, or by a clock that jitters, break this within a moment. From then on, until ``calmMs`` have passed without such a
/// step, their frames are counted: one within half a frame of the count keeps its time, others get the count's. So no gap is longer than a frame
/// where no sound is missing.
///
/// Other codecs keep their times, since their frames' durations are not known here; the muxers count them. A count that does not fit the timestamps
/// has a wrong sample rate, and is given up.
struct SoundTimes: Sendable {
    /// The duration of the stream's frames, by its header.
    private struct Format: Sendable {
        let samples: Int
        let sampleRate: Int
        /// Milliseconds, rounded up.
        var frameMs: Int64 { (Int64(self.samples) * 1_000 + Int64(self.sampleRate) - 1) / Int64(self.sampleRate) }
    }

    static let calmMs: Int64 = 10_000
    /// A longer excess of a step over the frame before it is missing sound. Of a stream's first frames it may still be a block.
    private static let missingMs: Int64 = 60
    private static let unknownMs: Int64 = 245
    private static let unknownFrames = 50
    /// A count that differs by more does not fit.
    private static let unfitMs: Int64 = 400

    private var format: Format?
    private var clock: AudioClock?
    /// The newest frame's time, as given and as put out.
    private var given: Int64?
    private var last: Int64?
    private var frames = 0
    /// When the last uneven step was, by timestamps.
    private var unevenAt: Int64 = 0

    /// Whether frames are counted at present.
    var isCounting: Bool { self.clock != nil }

    /// Reads a sequence header; one of another codec ends the counting.
    mutating func headerCame(_ header: Frame) {
        guard header.kind == .audio, header.isSequenceHeader, Self.isPlain(header) else { return }
        self.clock = nil
        self.format = Self.format(header)
    }

    /// A new publisher's times are new.
    mutating func publisherChanged() {
        self.clock = nil
        self.given = nil
        self.frames = 0
    }

    /// Sets the time of a coded frame of sound, which is on the stream's timeline.
    mutating func even(_ frame: inout Frame) {
        guard frame.tag.codec == .audio(.aac), Self.isPlain(frame) else { return }
        let ms = frame.timestamp
        defer {
            self.given = ms
            self.last = frame.timestamp
            self.frames &+= 1
        }
        guard let last = self.last else { return }
        guard let given = self.given else {
            // After a return, times go on behind what was put out before.
            if last >= ms, last - ms < Self.unfitMs { frame.timestamp = last + 1 }
            return
        }
        guard let format = self.format else {
            frame.timestamp = max(ms, last)
            return
        }
        let frameMs = format.frameMs
        let missingMs = frameMs + (self.frames < Self.unknownFrames ? Self.unknownMs : Self.missingMs)
        let stepMs = ms - given
        if stepMs <= 0 || stepMs > 2 * frameMs && stepMs < missingMs { self.noteUneven(ms, after: last, format) }
        guard var clock = self.clock else { return }
        let counted = AudioClock.scale(clock.time(ms: ms, samples: format.samples), 1_000, Int64(format.sampleRate))
        self.clock = clock
        if abs(counted - ms) > Self.unfitMs {
            self.format = nil
            self.clock = nil
            frame.timestamp = max(ms, last)
        } else {
            frame.timestamp = max(abs(counted - ms) < frameMs / 2 ? ms : counted, last + 1)
            if ms - self.unevenAt > Self.calmMs, frame.timestamp == ms { self.clock = nil }
        }
    }

    /// Begins to count with the frame before, unless frames are counted already.
    private mutating func noteUneven(_ ms: Int64, after last: Int64, _ format: Format) {
        self.unevenAt = ms
        guard self.clock == nil else { return }
        var clock = AudioClock(sampleRate: format.sampleRate)
        _ = clock.time(ms: last, samples: format.samples)
        self.clock = clock
    }

    /// Whether the frame belongs to the only track that players know.
    private static func isPlain(_ frame: Frame) -> Bool { !frame.tag.flags.contains(.multitrack) && frame.tag.trackID == 0 }

    private static func format(_ header: Frame) -> Format? {
        let offset = Int(header.tag.bodyOffset)
        guard header.tag.codec == .audio(.aac), offset <= header.payload.readableBytes else { return nil }
        var body = header.payload
        body.moveReaderIndex(forwardBy: offset)
        do throws(MediaError) {
            let config = try AudioSpecificConfig(body)
            guard config.coreChannels != nil, config.coreSampleRate > 0 else { return nil }
            return Format(samples: config.samplesPerFrame, sampleRate: config.coreSampleRate)
        } catch {
            // Players cannot read it either.
            return nil
        }
    }
}
