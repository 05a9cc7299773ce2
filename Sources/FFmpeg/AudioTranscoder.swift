internal import Media

/// Transcodes audio to AAC-LC, or to Opus for browsers' calls, at 48 kHz with continuous times. One per stream and codec, for all its outputs.
///
/// Owned by one consumer of a stream, used on one thread at a time. Gaps in the publisher's audio become silence; above
/// ``maxSilenceMs`` the times jump instead.
package final class AudioTranscoder {
    /// The longest gap, in milliseconds, that is filled with silence.
    package static let maxSilenceMs: Int64 = 5_000
    private static let sampleRate = 48_000

    /// The track that it makes.
    package let track: Track
    /// Coded runs that failed to decode and became silence.
    package private(set) var damaged = 0
    private let codec: AudioEncoder.Codec
    private let bitRate: Int
    private let decoder: AudioDecoder
    private let resampler: Resampler
    private var encoder: AudioEncoder
    private var clock: AudioClock
    /// The encoder's first and next sample on the stream's timeline, in samples at 48 kHz.
    private var base: Int64?
    private var next: Int64 = 0

    /// `bitRate` is in bits per second per channel. Throws `.unsupported` for codecs without a decoder.
    package init(_ source: Track, to codec: AudioEncoder.Codec = .aac, bitRate: Int = 64_000) throws(FFmpegError) {
        self.codec = codec
        self.decoder = try AudioDecoder(source)
        let channels = min(source.channels, 2)
        self.bitRate = bitRate * channels
        self.resampler = Resampler(sampleRate: Self.sampleRate, channels: channels)
        self.encoder = try AudioEncoder(codec: codec, sampleRate: Self.sampleRate, channels: channels, bitRate: self.bitRate)
        self.track = self.encoder.track
        self.clock = AudioClock(sampleRate: Self.sampleRate, toleranceMs: 60)
    }

    /// Transcodes a coded run of audio; other samples yield nothing. Damaged runs are counted and become silence when the next one arrives.
    package func transcode(_ sample: Sample) throws(FFmpegError) -> [Sample] {
        guard sample.kind == .audio else { return [] }
        let runs: [PCM]
        do throws(FFmpegError) {
            runs = try self.decoder.decode(sample.payload)
        } catch .library {
            self.damaged += 1
            return []
        }
        var output: [Sample] = []
        var ms = sample.pts
        for run in runs {
            // When one message holds several runs, each starts where the one before ends.
            let start = ms
            ms += Int64(run.count) * 1_000 / Int64(max(1, run.sampleRate))
            let pcm = try self.resampler.convert(run)
            if pcm.count > 0 { output += try self.add(pcm, ms: start) }
        }
        return output
    }

    /// Encodes the rest when the stream ends. Nothing can be transcoded afterwards.
    package func flush() throws(FFmpegError) -> [Sample] { self.samples(try self.encoder.flush()) }

    private func add(_ pcm: PCM, ms: Int64) throws(FFmpegError) -> [Sample] {
        var pcm = pcm
        var output: [Sample] = []
        let time = self.clock.time(ms: ms, samples: pcm.count)
        if self.base == nil {
            self.base = time
            self.next = time
        }
        let missing = time - self.next
        if missing > Self.maxSilenceMs * Int64(Self.sampleRate) / 1_000 {
            // The current encoder ends before the gap; a new one starts after it.
            output = self.samples(try self.encoder.flush())
            self.encoder = try AudioEncoder(
                codec: self.codec, sampleRate: Self.sampleRate, channels: pcm.channels, bitRate: self.bitRate)
            self.base = time
            self.next = time
        } else if missing > 0 {
            let silence = PCM(silence: Int(missing), sampleRate: Self.sampleRate, channels: pcm.channels)
            output = self.samples(try self.encoder.encode(silence))
            self.next = time
        } else if missing < 0 {
            // The clock slows down to the timestamps: drop a few samples.
            pcm.dropFirst(Int(min(-missing, Int64(pcm.count))))
        }
        self.next += Int64(pcm.count)
        return output + self.samples(try self.encoder.encode(pcm))
    }

    private func samples(_ runs: [AudioEncoder.Run]) -> [Sample] {
        guard let base = self.base else { return [] }
        return runs.compactMap { run in
            // Runs before the first sample hold only the encoder's priming.
            guard run.position >= 0 else { return nil }
            let ms = AudioClock.scale(base + run.position, 1_000, Int64(Self.sampleRate))
            return Sample(kind: .audio, dts: ms, pts: ms, isKeyframe: true, payload: run.payload)
        }
    }
}
