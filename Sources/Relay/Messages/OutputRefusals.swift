import Health
import Media

/// What muxers refused of a stream, until the next second is judged. A value, owned by the stream's home loop.
struct OutputRefusals: Sendable {
    private var video: TrackRefusal?
    private var audio: TrackRefusal?

    /// Adds up the reports of a second. Two outputs of the same frames count them twice, so the verdict bounds the share.
    mutating func note(_ kind: Frame.Kind, _ frames: Int, _ cause: String) {
        switch kind {
        case .video: self.video = TrackRefusal(frames: frames + (self.video?.frames ?? 0), cause: cause)
        case .audio: self.audio = TrackRefusal(frames: frames + (self.audio?.frames ?? 0), cause: cause)
        case .data: break
        }
    }

    mutating func popAll() -> (video: TrackRefusal?, audio: TrackRefusal?) {
        defer { self = OutputRefusals() }
        return (self.video, self.audio)
    }
}
