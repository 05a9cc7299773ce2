internal import Media
internal import NIOCore

/// Silence in AAC-LC, 48 kHz stereo, for pictures that have no sound. A value.
package struct SilentSound: Sendable {
    private static let sampleRate: Int64 = 48_000
    private static let samplesPerRun: Int64 = 1_024
    /// ISO/IEC 14496-3 §1.6.2.1: object type 2, frequency index 3, two channels.
    private static let header = ByteBuffer(bytes: [0x11, 0x90])
    /// ISO/IEC 14496-3 §4.4.2.1: a channel pair, and one channel, whose sections are all empty, as encoders make of zeros at any rate.
    private static let run = ByteBuffer(bytes: [0x21, 0x10, 0x04, 0x60, 0x8C, 0x1C])
    private static let monoRun = ByteBuffer(bytes: [0x01, 0x18, 0x20, 0x07])

    package let track: Track
    private let startMs: Int64
    private var runs: Int64 = 0

    /// Begins at `startMs` of the stream's timeline.
    package init(startMs: Int64) throws(FFmpegError) {
        self.track = try AudioEncoder.track(AudioEncoder.Codec.aac.message(Self.header, isHeader: true))
        self.startMs = startMs
    }

    /// Runs of silence in a track of AAC-LC with one or two channels, from `startMs` on, as many as end before `endMs`. None in other tracks.
    package static func samples(in track: Track, from startMs: Int64, to endMs: Int64) -> [Sample] {
        guard track.codecsString == "mp4a.40.2", (1...2).contains(track.channels), let length = track.runMs else { return [] }
        return stride(from: Double(startMs), to: Double(endMs) - length, by: length).map {
            let ms = Int64($0.rounded())
            return Sample(kind: .audio, dts: ms, pts: ms, isKeyframe: true, payload: track.channels == 1 ? Self.monoRun : Self.run)
        }
    }

    /// The next runs that begin before `ms`.
    package mutating func samples(before ms: Int64) -> [Sample] {
        var samples: [Sample] = []
        while case let next = self.startMs + self.runs * Self.samplesPerRun * 1_000 / Self.sampleRate, next < ms {
            samples.append(Sample(kind: .audio, dts: next, pts: next, isKeyframe: true, payload: Self.run))
            self.runs += 1
        }
        return samples
    }
}

extension Track {
    /// Milliseconds of a coded run of sound; nil where they differ.
    package var runMs: Double? {
        self.samplesPerRun.map { Double($0) * 1_000 / Double(max(1, self.sampleRate)) }
    }
}
