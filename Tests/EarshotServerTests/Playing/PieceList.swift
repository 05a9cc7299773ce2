import FFmpeg
import Media
import NIOCore
import Relay

@testable import EarshotServer

/// Pieces of 200 ms, as HLS has them, and what was said in between.
final class PieceList: PieceTaker {
    private(set) var beginnings: [PieceMaker.Beginning] = []
    private(set) var pieces: [PieceMaker.Piece] = []
    /// How many pieces there were when it was interrupted.
    private(set) var breaks: [Int] = []
    /// How often it was asked before a keyframe.
    private(set) var keyframes = 0

    func isDue(pendingMs: Int64, frameMs: Int64, isKeyframe: Bool) -> Bool {
        if isKeyframe { self.keyframes += 1 }
        return pendingMs + frameMs / 2 >= 200
    }
    func due(frameMs: Int64) -> (pendingMs: Int64, keyframeMs: Int64) { (200 - frameMs / 2, 0) }
    func began(_ beginning: PieceMaker.Beginning, nowMs: Int64) { self.beginnings.append(beginning) }
    func made(_ piece: PieceMaker.Piece, nowMs: Int64) { self.pieces.append(piece) }
    func interrupted(nowMs: Int64) { self.breaks.append(self.pieces.count) }

    /// Milliseconds of the container, of each piece's start.
    var starts: [Int64] {
        self.pieces.compactMap { piece in
            // moof, mfhd, traf, tfhd and then tfdt: ISO/IEC 14496-12 §8.8.12.
            let bytes = piece.fragment.bytes.readableBytesView
            guard let at = bytes.firstRange(of: Array("tfdt".utf8)) else { return nil }
            return piece.fragment.bytes.getInteger(at: at.upperBound + 4, as: UInt64.self).map { Int64($0) / 90 }
        }
    }

    var samples: Int { self.pieces.reduce(0) { $0 + $1.fragment.samples } }
    /// Run by run: "va" has video and audio.
    var runs: [String] { self.beginnings.map { $0.tracks.map { $0.kind == .video ? "v" : "a" }.joined() } }

    static func frames(_ tags: [Tag], by ms: Int64 = 0, skippingHeaders: Bool = false) throws -> [TapItem] {
        try tags.compactMap { tag in
            if tag.kind == .data || skippingHeaders && tag.isSequenceHeader { return nil }
            return .frame(try Frame(kind: tag.kind, timestamp: Int64(tag.timestamp) + ms, payload: ByteBuffer(bytes: tag.payload)))
        }
    }

    /// Four seconds with a keyframe each.
    static func clip(audio: Bool = true, rate: Int = 25) async throws -> [Tag] {
        try FLVFile.read(
            try await Fixture.flv(
                video: ["-c:v", "libx264", "-profile:v", "baseline", "-g", "\(rate)"], audio: audio ? Fixture.aac : nil, seconds: 4,
                rate: rate))
    }
}
