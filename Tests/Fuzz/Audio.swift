import FFmpeg
import Media
import NIOCore

extension FuzzTarget {
    /// Decodes a talker's audio to samples for the mixer, or transcodes a stream's to AAC.
    static let audio = FuzzTarget("audio", maxLength: 4_096, allocationMiB: 64, timeoutSeconds: 20) { input in
        var input = input
        var run = AudioRun(transcodes: input.byte() & 1 == 1)
        for record in MediaRecords(input) where record.frame.kind == .audio { run.receive(record.frame) }
        run.end()
    }
}

private struct AudioRun {
    let transcodes: Bool
    private var track: Track?
    private var decoder: AudioDecoder?
    private var transcoder: AudioTranscoder?
    private let resampler = Resampler(channels: 1)
    private var made = 0
    private static let mostDecoders = 8

    init(transcodes: Bool) { self.transcodes = transcodes }

    mutating func receive(_ frame: Frame) {
        do throws(FFmpegError) {
            if Track.describes(frame) { try self.note(Track(frame)) }
            guard let sample = Sample(frame) else { return }
            if let decoder = self.decoder { try self.check(decoder.decode(sample.payload)) }
            if let transcoder = self.transcoder { Self.check(try transcoder.transcode(sample)) }
        } catch {
            expect(!"\(error)".isEmpty, "an error without words")
        }
    }

    mutating func end() {
        do throws(FFmpegError) {
            if let decoder = self.decoder { try self.check(decoder.flush()) }
            if let transcoder = self.transcoder { Self.check(try transcoder.flush()) }
        } catch {
            expect(!"\(error)".isEmpty, "an error without words")
        }
    }

    private mutating func note(_ track: Track) throws(FFmpegError) {
        guard track != self.track, self.made < Self.mostDecoders else { return }
        self.made += 1
        self.track = track
        self.decoder = nil
        self.transcoder = nil
        if self.transcodes { self.transcoder = try AudioTranscoder(track) } else { self.decoder = try AudioDecoder(track) }
    }

    private func check(_ runs: [PCM]) throws(FFmpegError) {
        for run in runs {
            expect(run.planes.allSatisfy { $0.count == run.count } && run.sampleRate > 0, "planes of different lengths")
            let isSound = run.planes.allSatisfy { $0.allSatisfy { abs($0) <= AudioDecoder.loudest } }
            expect(isSound, "samples that are no sound")
            let mono = try self.resampler.convert(run)
            expect(mono.channels == 1 && mono.sampleRate == 48_000, "\(mono.channels) channels at \(mono.sampleRate) Hz")
        }
    }

    /// Checks that times rise and no sample is empty.
    private static func check(_ samples: [Sample]) {
        for sample in samples { expect(sample.payload.readableBytes > 0 && sample.kind == .audio, "an empty run") }
        for (sample, next) in zip(samples, samples.dropFirst()) { expect(sample.dts < next.dts, "times do not rise") }
    }
}
