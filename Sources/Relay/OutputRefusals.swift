import Health
package import Media

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

    mutating func take() -> (video: TrackRefusal?, audio: TrackRefusal?) {
        defer { self = OutputRefusals() }
        return (self.video, self.audio)
    }
}

extension RelayLoop {
    /// Records what an output left out of a stream, for its verdict. Any thread.
    package static func refused(_ frames: Int, of kind: Frame.Kind, in stream: Stream, cause: String) {
        stream.home.run { $0.homes[stream.id]?.refusals.note(kind, frames, cause) }
    }
}
