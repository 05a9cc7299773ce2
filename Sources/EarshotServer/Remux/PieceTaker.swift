import FFmpeg
import NIOCore

/// Decides where pieces end, and takes them. On its ``PieceMaker``'s thread.
protocol PieceTaker: AnyObject {
    /// Before a frame of the leading kind (video, if there is any): whether the piece that has `pendingMs` ends here.
    func isDue(pendingMs: Int64, frameMs: Int64, isKeyframe: Bool) -> Bool
    /// From how many milliseconds on that may be said of a piece, of other frames and of keyframes, when frames are `frameMs` apart. What is
    /// said too early costs some work, what is said too late delays the piece.
    func due(frameMs: Int64) -> (pendingMs: Int64, keyframeMs: Int64)
    /// A new beginning: other tracks, or another publisher.
    func began(_ beginning: PieceMaker.Beginning, nowMs: Int64)
    func made(_ piece: PieceMaker.Piece, nowMs: Int64)
    /// What comes next is a new beginning.
    func interrupted(nowMs: Int64)
    /// Asked when a piece has ended before a frame of the leading kind: whether a container of its own, from zero, begins there.
    func takesSplit() -> Bool
}

extension PieceTaker {
    func takesSplit() -> Bool { false }
}

extension PieceMaker {
    /// What stands before the pieces that follow.
    struct Beginning {
        let initialization: ByteBuffer
        /// `video/mp4; codecs="…"`
        let mimeType: String
        let codecs: String
        let tracks: [Track]
        /// Milliseconds of the stream's timeline that are the container's zero. The same as before, with the same initialization: what
        /// follows may stand behind what was.
        let originMs: Int64
    }

    struct Piece {
        let fragment: Fragment
        /// Somewhere in it, not only at its beginning.
        let holdsKeyframe: Bool
        /// When its first frame came: milliseconds since 1970.
        let wallMs: Int64
        /// It ended because nothing more came for a while, not because it was due.
        var isCutShort = false
    }
}
