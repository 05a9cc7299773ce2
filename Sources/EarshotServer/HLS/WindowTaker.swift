import FFmpeg
import HLS
import Media
import NIOCore

/// Puts a stream's pieces into HLS's window, which also says where they end. Owned by one ``StreamRemuxer``.
final class WindowTaker: PieceTaker {
    private(set) var window: MediaWindow
    /// The newest beginning, and what viewers of pieces start with: everything since the last keyframe.
    private(set) var beginning: PieceMaker.Beginning?
    private(set) var sinceKeyframe: [Fragment] = []
    var pieces: PieceStream?
    /// What the window did not take.
    private(set) var problem: String?
    private static let cachedPieces = 600

    init(_ window: MediaWindow) { self.window = window }

    func isDue(pendingMs: Int64, frameMs: Int64, isKeyframe: Bool) -> Bool {
        (isKeyframe && self.window.startsSegment(pendingMicros: pendingMs * 1_000))
            || self.window.closesPart(pendingMicros: pendingMs * 1_000, frameMicros: frameMs * 1_000)
    }

    func due(frameMs: Int64) -> (pendingMs: Int64, keyframeMs: Int64) {
        (self.window.partDueMicros(frameMicros: frameMs * 1_000) / 1_000, self.window.segmentDueMicros / 1_000)
    }

    func began(_ beginning: PieceMaker.Beginning, nowMs: Int64) {
        self.beginning = beginning
        self.sinceKeyframe = []
        let picture = beginning.tracks.first { $0.kind == .video }
        self.change { (window: inout MediaWindow) throws(HLSError) in
            try window.begin(
                MediaFormat(
                    initialization: beginning.initialization, codecs: beginning.codecs, hasVideo: picture != nil, width: picture?.width,
                    height: picture?.height, frameRate: picture?.frameRate, keyframeIntervalMs: nil), nowMs: nowMs)
        }
        self.pieces?.begin(beginning.initialization)
    }

    func made(_ piece: PieceMaker.Piece, nowMs: Int64) {
        let fragment = piece.fragment
        if fragment.isIndependent { self.sinceKeyframe = [] }
        if self.sinceKeyframe.count < Self.cachedPieces { self.sinceKeyframe.append(fragment) }
        let part = MediaPart(
            bytes: fragment.bytes, durationMicros: max(1, fragment.durationMs) * 1_000, isIndependent: piece.holdsKeyframe,
            beginsWithKeyframe: fragment.isIndependent, programDateTimeMs: piece.wallMs)
        self.change { (window: inout MediaWindow) throws(HLSError) in try window.append(part, nowMs: nowMs) }
        self.pieces?.publish(fragment)
    }

    func interrupted(nowMs: Int64) { self.window.interrupt(nowMs: nowMs) }
    func end(nowMs: Int64) { self.window.end(nowMs: nowMs) }
    func expire(nowMs: Int64) { self.window.expire(nowMs: nowMs) }
    func mediaPlaylist(_ kind: PlaylistKind) -> PlaylistText? { self.window.mediaPlaylist(kind) }

    /// Everything that is listed goes at once.
    func purge(_ empty: MediaWindow) {
        self.window = empty
        self.sinceKeyframe = []
    }

    private func change(_ body: (inout MediaWindow) throws(HLSError) -> Void) {
        do throws(HLSError) {
            try body(&self.window)
        } catch {
            self.problem = "\(error)"
        }
    }
}
