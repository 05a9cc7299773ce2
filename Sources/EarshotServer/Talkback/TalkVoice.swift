import FFmpeg
import Media
import Relay
import Talk

/// One talker as the mixer hears it: coded frames in, a block of samples out with each tick.
///
/// Owned by a channel's ``TalkEngine``.
struct TalkVoice {
    let inbox: TalkInbox
    private(set) var codec: String?
    private(set) var level = LevelMeter()
    private(set) var jitter = JitterBuffer()
    /// Frames that could not be decoded.
    private(set) var damaged: UInt64 = 0
    /// What cannot be decoded at all; told once.
    private(set) var problem: String?
    private var track: Track?
    private var decoder: AudioDecoder?
    private var isResting = false
    private let resampler = Resampler(channels: 1)

    init(_ inbox: TalkInbox) { self.inbox = inbox }

    /// Takes what came since the last tick. True: there were frames among it.
    mutating func fetch() -> Bool {
        var wasHeard = false
        for item in self.inbox.drain() {
            switch item.item {
            case .prelude(let frames): for frame in frames { self.note(frame) }
            case .frame(let frame):
                guard frame.kind == .audio else { continue }
                wasHeard = true
                self.take(frame, arrivalUs: item.arrivalUs)
            case .restarted, .ended: self.jitter.reset()
            }
        }
        return wasHeard
    }

    /// The next block. `nowUs`: when the tick is due.
    mutating func pull(nowUs: Int64) -> TalkBlock {
        self.isResting = false
        let block = self.jitter.pull(nowUs: nowUs)
        _ = self.level.add(block)
        return block
    }

    /// It is not to be heard now: what waits is old when it is.
    mutating func rest() {
        guard !self.isResting else { return }
        self.isResting = true
        self.jitter.reset()
        self.level = LevelMeter()
    }

    private mutating func take(_ frame: Frame, arrivalUs: Int64) {
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
            for run in try decoder.decode(sample.payload) {
                let pcm = try self.resampler.convert(run)
                if let samples = pcm.planes.first, !samples.isEmpty {
                    self.jitter.push(samples, timestampMs: timestampMs, arrivalUs: arrivalUs)
                }
                timestampMs += Int64(run.count) * 1_000 / Int64(max(1, run.sampleRate))
            }
        } catch {
            // A gap, which the buffer conceals.
            self.damaged += 1
        }
    }

    /// A sequence header, or the first frame of a codec without one.
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
