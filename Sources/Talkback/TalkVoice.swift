import FFmpeg
import Media
import Relay
import Talk

/// One talker as the mixer hears it: coded frames in, one block of samples out per tick.
///
/// Owned by a channel's ``TalkEngine``.
package struct TalkVoice {
    let inbox: TalkInbox
    private(set) var codec: String?
    private(set) var level = LevelMeter()
    private(set) var jitter = JitterBuffer()
    /// Frames that could not be decoded.
    private(set) var damaged: UInt64 = 0
    /// The reason why its audio cannot be decoded at all; logged once.
    private(set) var problem: String?
    private var track: Track?
    private var decoder: AudioDecoder?
    private var isResting = false
    private var allowance = DecodeAllowance()
    private var keepsAll = false
    /// Frames dropped undecoded, by the inbox or by the allowance.
    private(set) var skipped: UInt64 = 0
    private let resampler = Resampler(channels: 1)

    init(_ inbox: TalkInbox) { self.inbox = inbox }

    /// Processes what arrived since the last tick. Returns whether that included audio.
    mutating func fetch() -> Bool {
        var wasHeard = false
        let (items, dropped) = self.inbox.drain()
        var missing = dropped
        var surplus = self.allowance.surplus(of: items.count { $0.item.isAudio })
        for item in items {
            switch item.item {
            case .prelude(let frames): for frame in frames { self.note(frame) }
            case .frame(let frame):
                guard frame.kind == .audio else { continue }
                wasHeard = true
                if missing > 0 {
                    // The missing frames arrived before this frame.
                    self.leaveOut(missing, before: frame, item.arrivalUs)
                    missing = 0
                }
                guard surplus <= 0 else {
                    surplus -= 1
                    self.note(frame)
                    self.leaveOut(1, from: frame, item.arrivalUs)
                    continue
                }
                self.receive(frame, arrivalUs: item.arrivalUs)
            case .restarted, .ended: self.jitter.reset()
            }
        }
        return wasHeard
    }

    /// Sets whether a recording needs all audio that a long stall delayed, up to half a minute.
    mutating func keepsAll(_ keeps: Bool) {
        guard keeps != self.keepsAll else { return }
        self.keepsAll = keeps
        self.jitter.keep(ms: keeps ? Int(DecodeAllowance.recordedUs / 1_000) : 0)
        self.allowance.keeps(keeps)
    }

    /// Skips frames without decoding them. Each counts as long as the last decoded one, if there was one.
    private mutating func leaveOut(_ count: Int, from frame: Frame, _ arrivalUs: Int64) {
        guard !frame.isSequenceHeader else { return }
        self.skipped += UInt64(count)
        guard self.decoder != nil else { return }
        self.jitter.leaveOut(count * self.allowance.frameSamples, timestampMs: frame.timestamp, arrivalUs: arrivalUs)
    }

    private mutating func leaveOut(_ count: Int, before frame: Frame, _ arrivalUs: Int64) {
        self.skipped += UInt64(count)
        guard self.decoder != nil else { return }
        let samples = count * self.allowance.frameSamples
        self.jitter.leaveOut(samples, timestampMs: frame.timestamp - Int64(samples / 48), arrivalUs: arrivalUs)
    }

    /// The next block. `nowUs`: when the tick is due.
    mutating func pull(nowUs: Int64) -> TalkBlock {
        self.isResting = false
        let block = self.jitter.pull(nowUs: nowUs)
        _ = self.level.add(block)
        return block
    }

    /// Clears the buffer while the talker is not heard, because its audio would be outdated later.
    mutating func rest() {
        guard !self.isResting else { return }
        self.isResting = true
        self.jitter.reset()
        self.level = LevelMeter()
    }

    private mutating func receive(_ frame: Frame, arrivalUs: Int64) {
        self.note(frame)
        guard let sample = Sample(frame) else { return }
        guard let decoder = self.decoder else {
            self.damaged += 1
            if self.problem == nil, case .audio(let codec)? = frame.tag.codec {
                self.problem =
                    Track.describes(frame) ? "\(codec.name) audio is not decoded" : "no sequence header came before its \(codec.name) audio"
            }
            return
        }
        do throws(FFmpegError) {
            var timestampMs = sample.pts
            var decodedUs: Int64 = 0
            defer { self.allowance.spent(decodedUs) }
            for run in try decoder.decode(sample.payload) {
                let pcm = try self.resampler.convert(run)
                if let samples = pcm.planes.first, !samples.isEmpty {
                    self.jitter.push(samples, timestampMs: timestampMs, arrivalUs: arrivalUs)
                }
                let lengthUs = Int64(run.count) * 1_000_000 / Int64(max(1, run.sampleRate))
                timestampMs += lengthUs / 1_000
                decodedUs += lengthUs
            }
        } catch {
            // The buffer conceals this gap.
            self.damaged += 1
        }
    }

    /// Sets up the decoder from a sequence header. Codecs without one describe themselves in the first frame.
    private mutating func note(_ frame: Frame) {
        guard frame.kind == .audio, frame.isSequenceHeader || self.track == nil || self.track?.codec != frame.tag.codec,
            Track.describes(frame)
        else { return }
        do throws(FFmpegError) {
            let track = try Track(frame)
            guard track != self.track else { return }
            self.decoder = try AudioDecoder(track)
            self.track = track
            self.codec = track.codecName
            self.problem = nil
        } catch {
            self.decoder = nil
            self.track = nil
            self.problem = "\(error)"
        }
    }
}

/// Limits how much of one talker's audio is decoded, because all rooms of a clock share its thread. A stall's burst is decoded as a whole, except
/// audio older than the buffer keeps, and at most four times the rate of speech. A plain value; microseconds.
struct DecodeAllowance {
    private static let usualUs: Int64 = 1_500_000
    /// The limit when a recording needs all audio.
    static let recordedUs: Int64 = 31_000_000
    private static let perTickUs: Int64 = 4 * TalkFormat.microseconds(tick: 3) / 3

    private var mostUs = Self.usualUs
    private var leftUs = Self.usualUs
    /// Length of the last decoded frame.
    private var frameUs: Int64 = 20_000

    /// How many of the oldest frames since the last tick to skip. A frame longer than the allowance is decoded once the allowance has grown enough.
    mutating func surplus(of count: Int) -> Int {
        self.leftUs = min(self.mostUs, self.leftUs + Self.perTickUs)
        return max(0, count - max(0, Int((self.leftUs + self.frameUs - 1) / self.frameUs)))
    }

    /// Samples of a frame, at 48 kHz.
    var frameSamples: Int { Int((self.frameUs * 48 + 500) / 1_000) }

    /// Adapts the allowance at once to the amount that is kept, so that this much is decoded.
    mutating func keeps(_ all: Bool) {
        self.mostUs = all ? Self.recordedUs : Self.usualUs
        self.leftUs = all ? self.mostUs : min(self.mostUs, self.leftUs)
    }

    mutating func spent(_ us: Int64) {
        self.leftUs -= us
        // Frames that cannot be decoded cost time, too.
        if us > 0 { self.frameUs = max(2_500, us) } else { self.leftUs -= self.frameUs / 4 }
    }
}

extension TapItem {
    fileprivate var isAudio: Bool { if case .frame(let frame) = self { frame.kind == .audio } else { false } }
}
