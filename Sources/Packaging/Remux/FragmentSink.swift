import FFmpeg
import NIOCore

/// Decides where pieces end, and receives them. On its ``FragmentPackager``'s thread.
protocol FragmentSink: AnyObject {
    /// Whether the piece of `pendingMs` ends before this frame. It is of the leading kind: video, if there is any.
    func isDue(pendingMs: Int64, frameMs: Int64, isKeyframe: Bool) -> Bool
    /// Durations from which a piece may end before other frames and before keyframes. Frames are `frameMs` apart. A value that is too low costs some
    /// work; one that is too high delays the piece.
    func due(frameMs: Int64) -> (pendingMs: Int64, keyframeMs: Int64)
    /// Milliseconds that a piece of several pictures must not exceed; nil: any.
    var longestMs: Int64? { get }
    /// A run begins, perhaps with other tracks or another publisher.
    func began(_ beginning: FragmentPackager.Beginning, nowMs: Int64)
    func made(_ piece: FragmentPackager.Piece, nowMs: Int64)
    /// The run has ended; the next one calls ``began(_:nowMs:)``.
    func interrupted(nowMs: Int64)
    /// Whether a separate container, from time zero, begins here. Called after a piece has ended before a frame of the leading kind.
    func consumeSplit() -> Bool
}

extension FragmentSink {
    func consumeSplit() -> Bool { false }
    var longestMs: Int64? { nil }
}

extension FragmentPackager {
    /// The properties of a run that its pieces depend on.
    struct Beginning {
        let initialization: ByteBuffer
        /// `video/mp4; codecs="…"`
        let mimeType: String
        let codecs: String
        let tracks: [Track]
        /// The container's zero, in milliseconds of the stream's timeline. If neither it nor the initialization changes, a run can be
        /// appended to the previous one.
        let originMs: Int64
        /// Whether the container's time goes on where the run before ended.
        let goesOn: Bool
    }

    struct Piece {
        let fragment: Fragment
        /// A keyframe is anywhere in the piece, not only at its beginning.
        let holdsKeyframe: Bool
        /// Arrival of its first frame, in milliseconds since 1970.
        let wallMs: Int64
        /// It ended because no frame came for a while.
        var isCutShort = false
    }
}
