import FFmpeg
import Media
import NIOCore
import SignalCheck
import Talk
import TestSupport
import Testing

@testable import Streaming
@testable import Talkback

/// Skipped silence must equal encoded silence, in its timestamps and in the sound after it.
@Suite struct MixEncoderTests {
    @Test(arguments: TalkCodec.allCases) func sparedSilenceIsLikeEncoded(codec: TalkCodec) throws {
        // Opus skips 36 and 51 ticks of these, which are no whole cycles.
        for silence in [60, 75] {
            var line = try Line(codec)
            try line.encode(40) { Tone.sine(500)($0) }
            let before = line.encoder.encodes
            try line.encode(silence, nil)
            #expect(line.encoder.encodes - before < 30, "\(codec)")
            try line.encode(40) { Tone.sine(800)($0) }

            let steps = line.steps
            #expect(codec == .opus ? steps.allSatisfy { $0 == 20 } : steps.allSatisfy { (21...22).contains($0) }, "\(codec): \(steps)")
            let heard = try line.decoded()
            let fed = (40 + silence + 40) * TalkFormat.blockSamples
            #expect(abs(heard.count - fed) <= 2_048, "\(codec): \(heard.count) of \(fed) samples")
            // Half a second after the tone, and up to a tick before the next.
            let quiet = Array(heard[(40 * 1_024 + 24_000)..<((40 + silence - 2) * 1_024)])
            #expect(Signal.rms(quiet) < -60, "\(codec): \(Signal.rms(quiet)) dB")
            let onset = (heard[(42 * 1_024 + 24_000)...].firstIndex { abs($0) > 0.05 } ?? 0) - (40 + silence) * 1_024
            #expect((-480...2_400).contains(onset), "\(codec): the tone begins \(onset) samples late after \(silence) ticks")
            #expect(Signal.level(Array(heard.suffix(24_000)), frequency: 800) > -18, "\(codec)")
        }
    }

    /// Timestamps follow the channel's clock, even if the server had to skip ticks.
    @Test(arguments: TalkCodec.allCases) func ticksLeftOutLeaveAGap(codec: TalkCodec) throws {
        var line = try Line(codec)
        try line.encode(20) { Tone.sine(500)($0) }
        line.tick += 47
        try line.encode(20) { Tone.sine(500)($0) }
        #expect(line.steps.filter { $0 > 22 }.count == 1 && abs((line.steps.max() ?? 0) - 1_023) <= 1, "\(codec): \(line.steps)")
    }

    /// The ticks of a mix, encoded.
    private struct Line {
        let encoder: MixEncoder
        var tick: Int64 = 100
        private var position = 0
        private var frames: [Frame] = []

        init(_ codec: TalkCodec) throws {
            self.encoder = try MixEncoder(codec, bitRate: 64_000, tick: self.tick, after: [TalkBlock.silence.samples])
        }

        mutating func encode(_ ticks: Int, _ signal: ((Int) -> Float)?) throws {
            for _ in 0..<ticks {
                let samples = signal.map { signal in (0..<TalkFormat.blockSamples).map { signal(self.position + $0) } }
                self.frames += try self.encoder.encode(
                    samples ?? TalkBlock.silence.samples, isSilent: samples == nil, tick: self.tick)
                self.tick += 1
                self.position += TalkFormat.blockSamples
            }
        }

        var steps: [Int64] { zip(self.frames.dropFirst(), self.frames).map { $0.timestamp - $1.timestamp } }

        func decoded() throws -> [Float] {
            let header = try Frame(kind: .audio, timestamp: 0, payload: self.encoder.header)
            let decoder = try AudioDecoder(Track(header))
            let resampler = Resampler(channels: 1)
            return try self.frames.flatMap { frame in
                try decoder.decode(Sample(frame).orThrow().payload).flatMap { try resampler.convert($0).planes[0] }
            }
        }
    }
}
