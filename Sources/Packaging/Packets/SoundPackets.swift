import FFmpeg
import Media
import NIOCore
import WebRTC

/// Makes RTP bundles of one track of sound, with times that count samples: a device's milliseconds would crackle.
///
/// Owned by one ``PacketMaker``.
final class SoundPackets {
    private let track: Track
    private let kind: PacketBundle.Kind
    /// Nil for sound that passes as it came.
    private let transcoder: AudioTranscoder?
    /// The next packet's time, in the kind's clock.
    private var next: Int64?

    /// A time that differs by more is a gap or a leap. Milliseconds.
    private static let toleranceMs: Int64 = 60
    private static let bitRate = 64_000
    /// A packet of G.711 is a fifth of a second at most; RTMP's messages are shorter.
    private static let longestRun = 1_600

    init(_ track: Track, of frame: Frame) throws(FFmpegError) {
        self.track = track
        switch frame.tag.audioCodec {
        case .opus where track.channels <= 2: self.kind = .opus
        case .g711MuLaw where Self.isPlain(track): self.kind = .pcmu
        case .g711ALaw where Self.isPlain(track): self.kind = .pcma
        default:
            self.kind = .opus
            self.transcoder = try AudioTranscoder(track, to: .opus, bitRate: Self.bitRate)
            return
        }
        self.transcoder = nil
    }

    /// RFC 3551 knows G.711 with one channel at 8 kHz.
    private static func isPlain(_ track: Track) -> Bool { track.sampleRate == 8_000 && track.channels == 1 }

    /// The next run need not continue the last one.
    func restart() { self.next = nil }

    /// Whether a header, or a run of a codec without one, is of this track.
    func fits(_ frame: Frame) -> Bool {
        if frame.isSequenceHeader {
            do throws(FFmpegError) { return try Track(frame) == self.track } catch { return false }
        }
        return frame.tag.codec == self.track.codec
    }

    /// The bundles that are complete with this run, with their times in milliseconds.
    func bundles(_ sample: Sample) throws(FFmpegError) -> [(ms: Int64, bundle: ByteBuffer)] {
        guard let transcoder = self.transcoder else {
            guard let samples = self.samples(in: sample.payload) else { return [] }
            return [self.bundle(sample.payload, ms: sample.pts, samples: samples)]
        }
        return try transcoder.transcode(sample).compactMap { run in
            OpusPacket.samples(run.payload).map { self.bundle(run.payload, ms: run.pts, samples: $0) }
        }
    }

    private func samples(in payload: ByteBuffer) -> Int? {
        if self.kind == .opus { return OpusPacket.samples(payload) }
        return (1...Self.longestRun).contains(payload.readableBytes) ? payload.readableBytes : nil
    }

    private func bundle(_ payload: ByteBuffer, ms: Int64, samples: Int) -> (ms: Int64, bundle: ByteBuffer) {
        let rate = self.kind.clockRate / 1_000
        var time = ms * rate
        if let next = self.next, abs(next - time) <= Self.toleranceMs * rate { time = next }
        self.next = time + Int64(samples)
        var writer = PacketBundle.Writer(self.kind, time: time, capacity: payload.readableBytes + 2)
        writer.add(payload)
        return (ms, writer.finish())
    }
}
