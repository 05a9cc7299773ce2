import CommandSupport
import FFmpeg
import LibC
import LinkTransport
import Media
import Synchronization

/// Decodes a talk mix and listens for the clip's tone. Fed on the link's thread; the lock lets the doctor read the result.
final class ToneEar: Sendable {
    private struct State: ~Copyable {
        var decoder = TrackDecoder()
        /// The newest samples, at most one window.
        var samples: [Float] = []
        var heard = 0
        /// The tone's largest share of a window so far.
        var share = 0.0
        var problem: String?
    }

    private static let enough = 0.5

    private let state = Mutex(State())

    var isDone: Bool { self.state.withLock { $0.share > Self.enough || $0.problem != nil } }

    func receive(_ event: PullEvent) {
        guard case .frame(let frame) = event else { return }
        self.state.withLock { state in
            guard state.share <= Self.enough, state.problem == nil else { return }
            do throws(FFmpegError) { try Self.decode(frame, &state) } catch { state.problem = "the mix cannot be decoded: \(error)" }
        }
    }

    private static func decode(_ frame: Frame, _ state: inout State) throws(FFmpegError) {
        for pcm in try state.decoder.decode(frame) {
            let new = pcm.planes.first ?? []
            state.heard += new.count
            state.samples += new
            guard state.samples.count >= Self.window else { continue }
            state.share = max(state.share, Self.share(of: DoctorClip.toneHz, in: state.samples.suffix(Self.window)))
            state.samples = Array(state.samples.suffix(Self.window / 2))
        }
    }

    func verdict(_ name: String, _ advice: String) -> DoctorResult {
        let (heard, share, problem) = self.state.withLock { ($0.heard, $0.share, $0.problem) }
        if let problem { return .fail(name, problem, advice) }
        let percent = "\(Int(share * 100)) % of the sound"
        guard share > Self.enough else {
            let seconds = HumanUnits.decimal(Double(heard) / Double(DoctorClip.sampleRate), digits: 1) ?? "?"
            return .fail(name, heard == 0 ? "no sound came" : "the tone that was spoken is not heard in \(seconds) s (\(percent))", advice)
        }
        return .pass(name, "a tone spoken by one was heard by another (\(percent))")
    }

    /// A quarter of a second. Silence before the speaker is mixed in, and gaps on a busy machine, are no faults.
    private static let window = DoctorClip.sampleRate / 4

    /// The part of the energy at this frequency, 0 to 1 (Goertzel's algorithm).
    static func share(of hertz: Double, in samples: ArraySlice<Float>) -> Double {
        let turn = 2 * Double.pi * hertz / Double(DoctorClip.sampleRate)
        // The recurrence needs the cosine only once, so its cost does not matter.
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
