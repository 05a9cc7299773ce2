import FFmpeg
import Foundation
import Media
import MediaClips
import NIOCore
import TestSupport
import Testing

/// The codecs of talk: mixes as AAC and Opus for players, and talkers that send anything.
@Suite struct TalkCodecTests {
    static func tone(_ count: Int, rate: Double = 48_000) -> [Float] {
        (0..<count).map { Float(0.5 * sin(2 * Double.pi * 440 * Double($0) / rate)) }
    }

    /// Encodes a mix's ticks of 1,024 samples.
    static func encoded(_ encoder: AudioEncoder, ticks: Int = 141) throws -> [AudioEncoder.Run] {
        let tone = Self.tone(ticks * 1_024)
        var runs: [AudioEncoder.Run] = []
        for tick in 0..<ticks {
            runs += try encoder.encode(PCM(sampleRate: 48_000, planes: [Array(tone[(tick * 1_024)..<((tick + 1) * 1_024)])]))
        }
        return runs + (try encoder.flush())
    }

    @Test func opusInRunsOf20Milliseconds() throws {
        let encoder = try AudioEncoder(codec: .opus, channels: 1, bitRate: 32_000)
        #expect(encoder.runSamples == 960 && encoder.track.codec == .audio(.opus) && encoder.track.codecsString == "opus")
        #expect(encoder.track.sampleRate == 48_000 && encoder.track.channels == 1)
        #expect((1...2_000).contains(encoder.priming))
        let runs = try Self.encoded(encoder)
        let positions = (0..<Int64(runs.count)).map { $0 * 960 - Int64(encoder.priming) }
        #expect(runs.map(\.position) == positions && runs.count >= 141 * 1_024 / 960)
        #expect(runs.allSatisfy { $0.payload.readableBytes < 400 })
        let decoder = try AudioDecoder(encoder.track)
        let plane = try runs.flatMap { try decoder.decode($0.payload).flatMap { $0.planes[0] } }
        AudioTests.expectTone(plane, noise: 0.02)
        #expect(throws: FFmpegError.self) { try AudioEncoder(codec: .opus, sampleRate: 44_100, channels: 1, bitRate: 32_000) }
        #expect(throws: FFmpegError.self) { try encoder.encode(PCM(silence: 10, sampleRate: 48_000, channels: 2)) }
        // libopus takes two channels interleaved; they must stay apart.
        let stereo = try AudioEncoder(codec: .opus, channels: 2, bitRate: 64_000)
        let both = try stereo.encode(PCM(sampleRate: 48_000, planes: [Self.tone(96_000), Array(repeating: 0, count: 96_000)]))
        let reader = try AudioDecoder(stereo.track)
        let halves = try both.flatMap { try reader.decode($0.payload) }
        let level = { (index: Int) in halves.flatMap { $0.planes[index] }.dropFirst(9_600).reduce(0) { $0 + Double($1) * Double($1) } }
        #expect(level(0) > 100 * level(1))
    }

    /// A player can decode a mix from its messages alone.
    @Test(arguments: AudioEncoder.Codec.allCases) func messages(_ codec: AudioEncoder.Codec) async throws {
        let encoder = try AudioEncoder(codec: codec, channels: 1, bitRate: 48_000)
        let header = try Frame(kind: .audio, timestamp: 0, payload: encoder.sequenceMessage)
        #expect(header.isSequenceHeader && Track.describes(header) && header.tag.flags.contains(.enhanced) == (codec == .opus))
        let track = try Track(header)
        #expect(track == encoder.track)
        let frames = try Self.encoded(encoder).map { run in
            let ms = (run.position + Int64(encoder.priming)) / 48
            return try Frame(kind: .audio, timestamp: ms, payload: encoder.message(run))
        }
        #expect(frames.allSatisfy { $0.tag.flags.contains(.coded) && !$0.isSequenceHeader && $0.tag.codec == track.codec })
        let samples = frames.compactMap { Sample($0) }
        #expect(samples.count == frames.count)
        let pieces = try Pieces(FragmentMuxer(tracks: [track], originMs: 0), samples)
        let scratch = try Scratch()
        try pieces.write(to: scratch.path("out.mp4"))
        let raw = try await Tool.ffmpeg(["-i", scratch.path("out.mp4"), "-f", "f32le", "-ac", "1", "-"]).output
        AudioTests.expectTone(raw.withUnsafeBytes { Array($0.bindMemory(to: Float.self)) }, noise: 0.02)
    }

    /// Decodes and resamples AAC at all its rates, mono and stereo, to 48 kHz mono.
    @Test(arguments: [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000], [1, 2])
    func aacAtAnyRate(_ rate: Int, _ channels: Int) throws {
        let encoder = try AudioEncoder(sampleRate: rate, channels: channels, bitRate: 128_000)
        let tone = Self.tone(rate * 3, rate: Double(rate))
        let runs = try encoder.encode(PCM(sampleRate: rate, planes: Array(repeating: tone, count: channels)))
        let decoder = try AudioDecoder(Track(Frame(kind: .audio, timestamp: 0, payload: encoder.sequenceMessage)))
        let resampler = Resampler(sampleRate: 48_000, channels: 1)
        var plane: [Float] = []
        for pcm in try runs.flatMap({ try decoder.decode($0.payload) }) { plane += try resampler.convert(pcm).planes[0] }
        #expect(abs(plane.count - 144_000) < 15_000, "\(plane.count)")
        AudioTests.expectTone(plane, noise: 0.02)
    }

    /// FLV's lowest rate. Nellymoser encoded at 11 kHz but marked as 5.5 kHz plays at half speed.
    @Test func fiveKilohertz() async throws {
        let tone = "aevalsrc=0.5*sin(2*PI*880*t):c=mono:s=11025:d=3"
        let clip = try await Clip(["-f", "lavfi", "-i", tone, "-c:a", "nellymoser"])
        let frames = try clip.frames.filter { $0.kind == .audio }.map { frame in
            var payload = frame.payload
            payload.setInteger(UInt8(0x62), at: payload.readerIndex)
            return try Frame(kind: .audio, timestamp: frame.timestamp, payload: payload)
        }
        let track = try Track(#require(frames.first))
        #expect((5_500...5_513).contains(track.sampleRate), "\(track.sampleRate)")
        let decoder = try AudioDecoder(track)
        let resampler = Resampler(sampleRate: 48_000, channels: 1)
        var plane: [Float] = []
        for pcm in try frames.compactMap({ Sample($0) }).flatMap({ try decoder.decode($0.payload) }) {
            plane += try resampler.convert(pcm).planes[0]
        }
        AudioTests.expectTone(plane, noise: 0.2)
    }

    /// HE-AAC with a core of 24 kHz decodes to 48 kHz at the original pitch.
    @Test func headerOfHighEfficiencyAAC() throws {
        let encoder = try AudioEncoder(sampleRate: 24_000, channels: 1, bitRate: 64_000)
        // Object type 5, index 6 (24 kHz), 1 channel, extension index 3 (48 kHz), core object type 2.
        let header = ByteBuffer(bytes: [0xAF, 0x00, 0x2B, 0x09, 0x88, 0x00])
        let track = try Track(Frame(kind: .audio, timestamp: 0, payload: header))
        let runs = try encoder.encode(PCM(sampleRate: 24_000, planes: [Self.tone(72_000, rate: 24_000)]))
        let decoder = try AudioDecoder(track)
        let pcm = try runs.flatMap { try decoder.decode($0.payload) }
        #expect(pcm.allSatisfy { $0.sampleRate == 48_000 && $0.count == 2_048 })
        AudioTests.expectTone(pcm.flatMap { $0.planes[0] }, noise: 0.02)
    }

    /// The resampler refuses absurd rates. A FLAC header may state 1 Hz: 48,000 samples out for each one in.
    @Test(arguments: [1, 100, 3_999, 768_001]) func absurdRates(_ rate: Int) throws {
        let resampler = Resampler(sampleRate: 48_000, channels: 1)
        #expect(throws: FFmpegError.unsupported("resampling from \(rate) Hz")) {
            try resampler.convert(PCM(silence: 65_535, sampleRate: rate, channels: 1))
        }
        // The next run may have a valid rate again.
        #expect(try resampler.convert(PCM(silence: 4_000, sampleRate: 4_000, channels: 1)).count > 40_000)
    }

    /// A talker sends the wrong header for its audio, none, or only noise.
    @Test(.seeded) func wrongOrMissingHeaders() throws {
        let encoder = try AudioEncoder(channels: 1, bitRate: 64_000)
        let runs = try Self.encoded(encoder, ticks: 20)
        let coded = try Frame(kind: .audio, timestamp: 0, payload: encoder.message(runs[5]))
        #expect(!Track.describes(coded))
        #expect(throws: FFmpegError.self) { try Track(coded) }
        var random = TestRandom()
        for length in 0..<24 {
            for _ in 0..<20 {
                let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
                self.feed([0xAF, 0x00] + bytes, runs)
                self.feed([0x90] + Array("Opus".utf8) + bytes, runs)
                self.feed([0x90] + Array("Opus".utf8) + Array("OpusHead".utf8) + bytes, runs)
                self.feed([0x90] + Array("fLaC".utf8) + bytes, runs)
            }
        }
    }

    /// Makes a decoder from a header, if possible, and feeds it audio of another header. Expects errors or sound.
    private func feed(_ header: [UInt8], _ runs: [AudioEncoder.Run]) {
        let decoder: AudioDecoder
        do {
            decoder = try AudioDecoder(Track(Frame(kind: .audio, timestamp: 0, payload: ByteBuffer(bytes: header))))
        } catch {
            return
        }
        let resampler = Resampler(sampleRate: 48_000, channels: 1)
        for run in runs {
            do throws(FFmpegError) {
                for pcm in try decoder.decode(run.payload) {
                    let mono = try resampler.convert(pcm)
                    #expect(mono.channels == 1 && mono.count < 1 << 20)
                }
            } catch {
                // Any error is allowed, but no crash and no endless sound.
                #expect(!"\(error)".isEmpty)
            }
        }
    }
}
