import FFmpeg
import Foundation
import Media
import NIOCore
import Relay
import ServerTestSupport
import SignalCheck
import Synchronization
import Talk
import TestSupport
import Testing

@testable import Streaming
@testable import Talkback

/// The server's whole path of a voice, from incoming to outgoing message. The clock is the test's own. `TalkDelayMeasurement` measures the
/// same on a live server, for Benchmarks/talk.sh.
@Suite struct TalkPipelineTests {
    /// Measures the time from a click's incoming message to the outgoing one that has it. In the first seconds the buffer learns how even
    /// the input is.
    @Test(arguments: [0.0, 20.0], [0, 7_000, 15_000] as [Int64]) func delayOfClicks(_ jitterMs: Double, _ phaseUs: Int64) throws {
        let period = 24_000
        // A short burst, which AAC keeps sharp enough to tell from its surroundings.
        let runs = try Pipeline.runs(seconds: 16, jitterMs: jitterMs) { index in
            let phase = index % period
            return phase < 96 ? 0.8 * Float(sin(2 * Double.pi * Double(phase) / 24)) : 0
        }
        var pipeline = try Pipeline(phaseUs: phaseUs)
        try pipeline.play(runs)
        let heard = try pipeline.heard()
        // Close enough together to tell one click from its double.
        let clicks = Signal.clicks(heard.samples, threshold: 0.25, apart: 960)
        #expect((31...32).contains(clicks.count), "\(clicks.count) of 32 clicks were heard")
        // An adapting buffer moves a click by at most a tenth of a second. A click lost or doubled moves the next one further.
        let gaps = zip(clicks.dropFirst(), clicks).map { $0 - $1 }
        #expect(gaps.allSatisfy { abs($0 - period) <= 4_800 }, "\(gaps)")
        // The nth click heard is the nth sent. The count above shows a lost one.
        let delays = clicks.enumerated().dropFirst(8).compactMap { number, click -> Double? in
            let sent = runs.last { $0.position <= Int64(number * period) } ?? runs[0]
            guard let message = heard.messages.last(where: { $0.start <= click }) else { return nil }
            return Double(message.atUs) / 1_000 - sent.due * 1_000
        }.sorted()
        let (middle, last) = (delays[delays.count / 2], delays[delays.count - 1])
        #expect(delays.count >= 23 && middle <= 120 && last <= 200, "\(delays)")
        #expect(pipeline.voice.jitter.counters.underruns <= 1, "\(pipeline.voice.jitter.counters)")
    }

    /// A voice made by espeak-ng is unchanged in the mix.
    @Test(.timeLimit(.minutes(5))) func speechSurvives() async throws {
        let speech = try await Self.speech()
        // Some seconds of a quiet room come first: the buffer learns how even the input is.
        let before = 6 * 48_000
        let runs = try Pipeline.runs(seconds: Double(before + speech.count) / 48_000, jitterMs: 5) { index in
            index < before ? 0.001 * Float(sin(Double(index) / 20)) : index - before < speech.count ? speech[index - before] : 0
        }
        var pipeline = try Pipeline(phaseUs: 7_000)
        try pipeline.play(runs)
        let heard = try pipeline.heard().samples
        let first = try (heard.firstIndex { abs($0) > 0.02 }).orThrow() - (speech.firstIndex { abs($0) > 0.02 } ?? 0)
        // Each half second has a lag of its own.
        let matches = Signal.matches(speech, in: heard, window: 24_000, lags: (first - 9_600)...(first + 9_600), silence: -40)
        #expect(matches.count >= 6)
        #expect(matches.allSatisfy { $0.value >= 0.9 }, "\(matches.map { "\($0.start): \($0.value) at \($0.lag)" })")
    }

    private static func speech() async throws -> [Float] {
        try await Fixture.withDirectory { directory in
            let file = directory.appendingPathComponent("speech.wav").path
            let text = "The quick brown fox jumps over the lazy dog, and then it sleeps for a while under the old tree near the river."
            let spoken = try await ClientProcess.run(["espeak-ng", "-w", file, text], within: 60)
            #expect(spoken.status == 0, "\(spoken.errors)")
            let raw = directory.appendingPathComponent("speech.f32").path
            let decoded = try await ClientProcess.run(
                ["ffmpeg", "-v", "error", "-i", file, "-f", "f32le", "-ar", "48000", "-ac", "1", raw], within: 60)
            #expect(decoded.status == 0, "\(decoded.errors)")
            return try RawSamples.read(URL(fileURLWithPath: raw))
        }
    }

    /// The figures of an even voice, and of a late and incomplete one. The latter is late by up to 40 ms and lacks a twentieth.
    @Test func figures() throws {
        var even = try Pipeline(phaseUs: 7_000)
        try even.play(Pipeline.runs(seconds: 6, Tone.sine(500)))
        var uneven = try Pipeline(phaseUs: 7_000)
        let all = try Pipeline.runs(seconds: 6, jitterMs: 40, Tone.sine(900))
        let runs = all.filter { $0.position / 1_024 % 20 != 10 }
        try uneven.play(runs)
        let (straight, bent) = (even.voice.jitter.counters, uneven.voice.jitter.counters)
        for counters in [straight, bent] {
            #expect(
                (20...200).contains(counters.targetMs) && (5...260).contains(counters.delayMs) && counters.depthMs <= 260, "\(counters)")
        }
        #expect(straight.lost == 0 && straight.jitterMs < 1, "\(straight)")
        #expect((4...30).contains(bent.jitterMs), "\(bent)")
        // Timestamps are in whole milliseconds.
        #expect(abs(bent.lost - Int64(all.count - runs.count) * 1_024) <= Int64(all.count - runs.count) * 48, "\(bent)")
    }
}

/// A talker's inbox and voice, the mixer and a mix's encoder, in simulated time.
private struct Pipeline {
    private(set) var voice: TalkVoice
    private let inbox: TalkInbox
    private let clock = ManualMicroseconds()
    private let encoder: MixEncoder
    private var mixer = Mixer()
    private var sent: [(frame: Frame, atUs: Int64)] = []
    /// Offset of the ticks from the talker's start.
    private let phaseUs: Int64

    init(phaseUs: Int64) throws {
        let clock = self.clock
        self.inbox = TalkInbox { clock.us }
        self.voice = TalkVoice(self.inbox)
        self.encoder = try MixEncoder(.aac, bitRate: 64_000, tick: 0, after: [TalkBlock.silence.samples])
        self.phaseUs = phaseUs
    }

    static func runs(seconds: Double, jitterMs: Double = 0, _ signal: @escaping (Int) -> Float) throws -> [CodedVoice.Run] {
        try CodedVoice(seconds: seconds, jitterMs: jitterMs, signal).all()
    }

    /// Plays the runs when due. Continues for half a second, since they may end in the middle of a sound.
    mutating func play(_ runs: [CodedVoice.Run]) throws {
        let header = try CodedVoice(.aac, { _ in 0 }).header
        self.inbox.receive([.frame(try Frame(kind: .audio, timestamp: 0, payload: header))])
        let id = try ParticipantID("ann")
        var rest = runs[...]
        let ticks = Int64(((runs.last?.due ?? 0) + 0.5) * 46.875)
        for tick in 0..<ticks {
            let nowUs = TalkFormat.microseconds(tick: tick) + self.phaseUs
            while let run = rest.first, Int64(run.due * 1_000_000) <= nowUs {
                self.clock.us = Int64(run.due * 1_000_000)
                self.inbox.receive([.frame(try Frame(kind: .audio, timestamp: Int64(run.timestamp), payload: run.message))])
                rest = rest.dropFirst()
            }
            self.clock.us = nowUs
            _ = self.voice.fetch()
            self.mixer.beginTick([Mixer.Input(id: id, block: self.voice.pull(nowUs: nowUs))])
            let mix = self.mixer.mix()
            for frame in try self.encoder.encode(mix.samples, isSilent: mix.isSilent, tick: tick) { self.sent.append((frame, nowUs)) }
        }
    }

    /// The mix as a listener hears it. For each message: when it was sent, and the number of samples before it.
    func heard() throws -> (samples: [Float], messages: [(atUs: Int64, start: Int)]) {
        let decoder = try AudioDecoder(Track(Frame(kind: .audio, timestamp: 0, payload: self.encoder.header)))
        let resampler = Resampler(channels: 1)
        var samples: [Float] = []
        var messages: [(atUs: Int64, start: Int)] = []
        for (frame, atUs) in self.sent {
            messages.append((atUs, samples.count))
            for run in try decoder.decode(Sample(frame).orThrow().payload) { samples += try resampler.convert(run).planes[0] }
        }
        return (samples, messages)
    }
}

/// A clock that stands still until it is set. Any thread.
private final class ManualMicroseconds: Sendable {
    private let value = Atomic<Int64>(0)
    var us: Int64 {
        get { self.value.load(ordering: .relaxed) }
        set { self.value.store(newValue, ordering: .relaxed) }
    }
}
