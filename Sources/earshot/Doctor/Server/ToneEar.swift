import FFmpeg
import LibC
import Media
import Synchronization
import Upstream

/// Decodes a talk mix and listens for the clip's tone. Taken on the link's thread; the lock lets the doctor look.
final class ToneEar: Sendable {
    private struct State: ~Copyable {
        var track: Track?
        var decoder: AudioDecoder?
        let resampler = Resampler(channels: 1)
        var samples: [Float] = []
        var problem: String?
    }

    /// A second; the first quarter, while decoder and mix begin, is not judged.
    private static let enough = DoctorClip.sampleRate * 5 / 4
    private static let start = DoctorClip.sampleRate / 4

    private let state = Mutex(State())

    var isDone: Bool { self.state.withLock { $0.samples.count >= Self.enough || $0.problem != nil } }

    func take(_ event: PullEvent) {
        guard case .frame(let frame) = event, frame.kind == .audio else { return }
        self.state.withLock { state in
            guard state.samples.count < Self.enough, state.problem == nil else { return }
            do throws(FFmpegError) { try Self.decode(frame, &state) } catch { state.problem = "the mix cannot be decoded: \(error)" }
        }
    }

    private static func decode(_ frame: Frame, _ state: inout State) throws(FFmpegError) {
        if Track.describes(frame) {
            let track = try Track(frame)
            if track != state.track {
                state.decoder = try AudioDecoder(track)
                state.track = track
            }
        }
        guard let sample = Sample(frame), let decoder = state.decoder else { return }
        for run in try decoder.decode(sample.payload) { state.samples += try state.resampler.convert(run).planes.first ?? [] }
    }

    func verdict(_ name: String, _ advice: String) -> DoctorResult {
        let (samples, problem) = self.state.withLock { ($0.samples, $0.problem) }
        if let problem { return .fail(name, problem, advice) }
        guard samples.count >= Self.enough else {
            return .fail(name, "\(samples.count * 1_000 / DoctorClip.sampleRate) ms of sound came", advice)
        }
        // Silence until the speaker is mixed in is no fault: judge the loudest half second.
        let heard = Array(samples[Self.start...])
        let share =
            stride(from: 0, through: heard.count - Self.window, by: Self.window / 2)
            .map { Self.share(of: DoctorClip.toneHz, in: heard[$0..<$0 + Self.window]) }.max() ?? 0
        guard share > 0.5 else { return .fail(name, "the tone that was spoken is not heard (\(Int(share * 100)) % of the sound)", advice) }
        return .pass(name, "a tone spoken by one was heard by another (\(Int(share * 100)) % of the sound)")
    }

    private static let window = DoctorClip.sampleRate / 4

    /// The part of the energy at this frequency, 0 to 1 (Goertzel's algorithm).
    static func share(of hertz: Double, in samples: ArraySlice<Float>) -> Double {
        let turn = 2 * Double.pi * hertz / Double(DoctorClip.sampleRate)
        // cos by its series would do; the recurrence needs it once.
        let factor = 2 * cos(turn)
        var (last, before, energy) = (0.0, 0.0, 0.0)
        for sample in samples {
            let value = Double(sample)
            energy += value * value
            (before, last) = (last, value + factor * last - before)
        }
        guard energy > 1e-6 * Double(samples.count), !samples.isEmpty else { return 0 }
        let power = last * last + before * before - factor * last * before
        return min(1, 2 * power / (energy * Double(samples.count)))
    }
}
