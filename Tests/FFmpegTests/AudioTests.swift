import FFmpeg
import Foundation
import Media
import MediaClips
import NIOCore
import TestSupport
import Testing

/// A tone of 440 Hz at half of full scale, through every codec.
@Suite struct AudioTests {
    struct Source: Sendable, CustomTestStringConvertible {
        var name: String
        var rate: Int
        var channels = 1
        var arguments: [String]
        /// The share of the signal's power that may differ from the tone.
        var noise = 0.02
        var testDescription: String { self.name }
    }

    static let sources = [
        Source(name: "AAC stereo", rate: 44_100, channels: 2, arguments: ["-c:a", "aac", "-b:a", "128k"]),
        Source(name: "MP3", rate: 44_100, arguments: ["-c:a", "libmp3lame", "-b:a", "96k"]),
        Source(name: "Speex", rate: 16_000, arguments: ["-c:a", "libspeex", "-b:a", "32k"], noise: 0.2),
        Source(name: "Nellymoser", rate: 22_050, arguments: ["-c:a", "nellymoser"], noise: 0.2),
        Source(name: "Nellymoser 8k", rate: 8_000, arguments: ["-c:a", "nellymoser"], noise: 0.2),
        Source(name: "Nellymoser 16k", rate: 16_000, arguments: ["-c:a", "nellymoser"], noise: 0.2),
        Source(name: "G.711 A", rate: 8_000, arguments: ["-c:a", "pcm_alaw"]),
        Source(name: "G.711 u", rate: 8_000, arguments: ["-c:a", "pcm_mulaw"]),
        Source(name: "PCM", rate: 44_100, arguments: ["-c:a", "pcm_s16le"], noise: 0.01),
        Source(name: "PCM 5.5k", rate: 5_512, arguments: ["-c:a", "pcm_u8"], noise: 0.2),
        Source(name: "ADPCM", rate: 44_100, arguments: ["-c:a", "adpcm_swf"], noise: 0.2),
    ]

    static func clip(_ source: Source, seconds: Int = 3) async throws -> Clip {
        let layout = source.channels == 2 ? "stereo" : "mono"
        let tone =
            "aevalsrc=0.5*sin(2*PI*440*t)\(source.channels == 2 ? "|0.5*sin(2*PI*440*t)" : ""):c=\(layout):s=\(source.rate):d=\(seconds)"
        return try await Clip(["-f", "lavfi", "-i", tone] + source.arguments)
    }

    @Test(arguments: sources) func decodedAndResampled(_ source: Source) async throws {
        let clip = try await Self.clip(source)
        let decoder = try AudioDecoder(clip.track(.audio))
        for channels in [1, 2] {
            let resampler = Resampler(sampleRate: 48_000, channels: channels)
            var planes = [[Float]](repeating: [], count: channels)
            for run in try clip.samples.flatMap({ try decoder.decode($0.payload) }) + decoder.flush() {
                let pcm = try resampler.convert(run)
                #expect(pcm.sampleRate == 48_000 && pcm.channels == channels)
                for index in 0..<channels { planes[index] += pcm.planes[index] }
            }
            if let rest = try resampler.flush() { for index in 0..<channels { planes[index] += rest.planes[index] } }
            #expect(abs(planes[0].count - 144_000) < 7_000, "\(planes[0].count)")
            for plane in planes { Self.expectTone(plane, noise: source.noise) }
        }
    }

    @Test func enhancedCodecs() async throws {
        for clip in [try await EnhancedClip.opus.value, try await EnhancedClip.flac.value, try await EnhancedClip.ac3.value] {
            let decoder = try AudioDecoder(clip.track)
            let plane = try clip.samples.flatMap { try decoder.decode($0.payload).flatMap { $0.planes[0] } }
            Self.expectTone(plane, noise: 0.02)
        }
    }

    /// Checks the level of the middle second, and the tone's share of it.
    static func expectTone(_ samples: [Float], rate: Double = 48_000, noise: Double, location: SourceLocation = #_sourceLocation) {
        guard samples.count > Int(rate * 2) else {
            Issue.record("\(samples.count) samples", sourceLocation: location)
            return
        }
        let middle = samples[Int(rate)..<Int(rate * 2)]
        let (mut, tone) = (middle.reduce(0.0) { $0 + Double($1) * Double($1) } / rate, Self.power(middle, 440, rate))
        // A sine at half of full scale has a power of 0.125; the bounds are 1 dB either way.
        #expect(mut > 0.099 && mut < 0.157, "power \(mut)", sourceLocation: location)
        #expect(tone > mut * (1 - noise), "\(tone) of \(mut)", sourceLocation: location)
    }

    /// The power of a sine in the samples, on the scale of the mean square.
    static func power(_ samples: ArraySlice<Float>, _ frequency: Double, _ rate: Double) -> Double {
        var (real, imaginary) = (0.0, 0.0)
        for (index, sample) in samples.enumerated() {
            let angle = 2 * Double.pi * frequency * Double(index) / rate
            real += Double(sample) * cos(angle)
            imaginary += Double(sample) * sin(angle)
        }
        let count = Double(samples.count)
        return 2 * (real * real + imaginary * imaginary) / (count * count)
    }

    @Test func encoderTellsItsPriming() throws {
        let encoder = try AudioEncoder(channels: 1, bitRate: 64_000)
        #expect(encoder.priming == 1_024 && encoder.track.codecsString == "mp4a.40.2")
        #expect(encoder.track.sampleRate == 48_000 && encoder.track.channels == 1)
        let tone = (0..<96_300).map { Float(0.5 * sin(2 * Double.pi * 440 * Double($0) / 48_000)) }
        var runs: [AudioEncoder.Run] = []
        for start in stride(from: 0, to: tone.count, by: 480) {
            runs += try encoder.encode(PCM(sampleRate: 48_000, planes: [Array(tone[start..<min(start + 480, tone.count)])]))
        }
        runs += try encoder.flush()
        let positions: [Int64] = (0..<96).map { $0 * 1_024 - 1_024 }
        #expect(runs.map(\.position) == positions)
        let decoder = try AudioDecoder(encoder.track)
        var plane = try runs.flatMap { try decoder.decode($0.payload).flatMap { $0.planes[0] } }
        plane.removeFirst(encoder.priming)
        // The output is in phase with the input, sample by sample.
        let error = zip(plane, tone).dropFirst(4_800).prefix(48_000).map { Double(($0 - $1) * ($0 - $1)) }.reduce(0, +) / 48_000
        #expect(error < 0.001, "\(error)")
        #expect(throws: FFmpegError.self) { try encoder.encode(PCM(silence: 10, sampleRate: 44_100, channels: 1)) }
        #expect(throws: FFmpegError.self) { try AudioEncoder(sampleRate: 12_345, channels: 1, bitRate: 1) }
        #expect(throws: FFmpegError.self) { try AudioEncoder(channels: 3, bitRate: 64_000) }
    }

    @Test(arguments: sources.filter { $0.name != "AAC stereo" }) func transcoded(_ source: Source) async throws {
        let clip = try await Self.clip(source)
        let transcoder = try AudioTranscoder(clip.track(.audio))
        var samples: [Sample] = []
        for sample in clip.samples {
            var sample = sample
            sample.dts += 500_000
            sample.pts += 500_000
            samples += try transcoder.transcode(sample)
        }
        samples += try transcoder.flush()
        let first = try #require(samples.first)
        #expect(abs(first.dts - 500_000) < 50)
        for (index, sample) in samples.enumerated() {
            #expect(abs(sample.dts - first.dts - Int64(index) * 64 / 3) <= 1, "\(index)")
        }
        // A player hears the tone too.
        let muxer = try FragmentMuxer(tracks: [transcoder.track], originMs: first.dts)
        let pieces = try Pieces(muxer, samples)
        let scratch = try Scratch()
        try pieces.write(to: scratch.path("out.mp4"))
        let raw = try await Tool.ffmpeg(["-i", scratch.path("out.mp4"), "-f", "f32le", "-ac", "1", "-"]).output
        Self.expectTone(raw.withUnsafeBytes { Array($0.bindMemory(to: Float.self)) }, noise: source.noise)
    }

    /// It follows itself without a gap, and decodes to zeros.
    @Test func silenceIsSilent() throws {
        var silence = try SilentSound(startMs: 7_000)
        let samples = silence.samples(before: 8_000) + silence.samples(before: 8_001) + silence.samples(before: 9_000)
        let expected: [Int64] = (0..<94).map { 7_000 + Int64($0) * 64 / 3 }
        #expect(samples.map(\.dts) == expected)
        #expect(silence.track.codecsString == "mp4a.40.2" && silence.track.sampleRate == 48_000 && silence.track.channels == 2)
        let decoder = try AudioDecoder(silence.track)
        let decoded = try samples.flatMap { try decoder.decode($0.payload) }
        #expect(decoded.count == 94)
        for pcm in decoded {
            let isSilent = pcm.planes.count == 2 && pcm.planes.joined().allSatisfy { $0 == 0 }
            #expect(isSilent && pcm.count == 1_024)
        }
        // The encoder makes the same of zeros.
        let encoder = try AudioEncoder(channels: 2, bitRate: 64_000)
        let runs = try encoder.encode(PCM(silence: 4_096, sampleRate: 48_000, channels: 2)) + encoder.flush()
        #expect(runs.last?.payload == samples.last?.payload)
    }

    /// Two missing seconds become silence, ten become a step in time, and damage is counted.
    @Test func whatIsMissingIsSilence() async throws {
        let clip = try await Self.clip(Self.sources[6])
        let transcoder = try AudioTranscoder(clip.track(.audio))
        var samples: [Sample] = []
        for offset in [Int64(0), 5_000, 18_000] {
            for sample in clip.samples where sample.dts < 2_900 {
                var sample = sample
                sample.dts += offset
                sample.pts += offset
                samples += try transcoder.transcode(sample)
            }
        }
        samples += try transcoder.flush()
        let steps = zip(samples, samples.dropFirst()).map { $1.dts - $0.dts }
        #expect(steps.filter { !(21...22).contains($0) }.count == 1)
        #expect(abs((steps.max() ?? 0) - 10_100) < 300, "\(steps.max() ?? 0)")
        let damaged = try AudioTranscoder(try await Clip.mp3.value.track(.audio))
        for _ in 0..<10 {
            let junk = Sample(kind: .audio, dts: 0, pts: 0, isKeyframe: true, payload: ByteBuffer(repeating: 0x13, count: 300))
            #expect(try damaged.transcode(junk).isEmpty)
        }
        #expect(damaged.damaged == 10)
    }

    /// Garbage causes errors in every decoder, but no crash.
    @Test(.seeded, arguments: sources) func garbage(_ source: Source) async throws {
        let decoder = try AudioDecoder(try await Self.clip(source, seconds: 1).track(.audio))
        var random = TestRandom()
        for length in 0..<400 {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            do throws(FFmpegError) {
                for run in try decoder.decode(ByteBuffer(bytes: bytes)) { #expect(run.count > 0) }
            } catch {
                guard case .library = error else {
                    Issue.record("\(error)")
                    continue
                }
            }
        }
    }
}
