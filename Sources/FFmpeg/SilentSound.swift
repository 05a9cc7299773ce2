internal import Media
internal import NIOCore

/// Silence in AAC-LC, 48 kHz stereo, for pictures that have no sound. A value.
package struct SilentSound: Sendable {
    private static let sampleRate: Int64 = 48_000
    private static let samplesPerRun: Int64 = 1_024
    /// ISO/IEC 14496-3 §1.6.2.1: object type 2, frequency index 3, two channels.
    private static let header = ByteBuffer(bytes: [0x11, 0x90])
    /// ISO/IEC 14496-3 §4.4.2.1: a channel pair whose sections are all empty, as encoders make of zeros.
    private static let run = ByteBuffer(bytes: [0x21, 0x10, 0x04, 0x60, 0x8C, 0x1C])

    package let track: Track
    private let startMs: Int64
    private var runs: Int64 = 0

    /// Begins at `startMs` of the stream's timeline.
    package init(startMs: Int64) throws(FFmpegError) {
        self.track = try AudioEncoder.track(AudioEncoder.Codec.aac.message(Self.header, isHeader: true))
        self.startMs = startMs
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
