import FFmpeg
import Media
import Relay

/// Counts the frames that a packager left out since its owner reported them, with the newest cause of each kind, and lists all causes. A value.
struct LeftOutFrames {
    /// For the log; each listed once.
    private(set) var problems: [String] = []
    private(set) var counts = (video: 0, audio: 0)
    private(set) var causes = (video: "", audio: "")

    private static let problemLimit = 16

    mutating func note(_ kind: Frame.Kind, frames: Int = 1, _ cause: String) {
        if kind == .video {
            self.counts.video += frames
            self.causes.video = cause
        } else {
            self.counts.audio += frames
            self.causes.audio = cause
        }
    }

    /// Counts frames that a muxer did not take. Returns the cause.
    @discardableResult
    mutating func refuse(_ kind: Frame.Kind, _ frames: Int = 1, by muxer: FragmentMuxer, _ text: String? = nil) -> String {
        let codec = muxer.tracks.first { $0.kind == kind }?.codecName ?? "\(kind)"
        let cause = "\(muxer.format.name) does not take these frames of \(codec)\(text.map { " (\($0))" } ?? "")"
        self.note(kind, frames: frames, cause)
        self.list(cause)
        return cause
    }

    /// Hands the counts to the stream's verdict and counts anew.
    mutating func report(to stream: Relay.Stream) {
        if self.counts.video > 0 { RelayLoop.refused(self.counts.video, of: .video, in: stream, cause: self.causes.video) }
        if self.counts.audio > 0 { RelayLoop.refused(self.counts.audio, of: .audio, in: stream, cause: self.causes.audio) }
        self.counts = (0, 0)
    }

    mutating func list(_ problem: String) {
        guard self.problems.count < Self.problemLimit, !self.problems.contains(problem) else { return }
        self.problems.append(problem)
    }
}
