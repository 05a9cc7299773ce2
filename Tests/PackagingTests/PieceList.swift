import FFmpeg
import Media
import NIOCore
import Relay
import TestSupport

@testable import Packaging
@testable import Streaming

/// Collects pieces of 200 ms, as HLS cuts them, and the calls between them.
final class PieceList: FragmentSink {
    private(set) var beginnings: [FragmentPackager.Beginning] = []
    private(set) var pieces: [FragmentPackager.Piece] = []
    /// The number of pieces before each interruption.
    private(set) var breaks: [Int] = []
    /// The number of pieces before each run.
    private var firstPieces: [Int] = []
    /// The number of `isDue` calls before a keyframe.
    private(set) var keyframes = 0

    func isDue(pendingMs: Int64, frameMs: Int64, isKeyframe: Bool) -> Bool {
        if isKeyframe { self.keyframes += 1 }
        return pendingMs + frameMs / 2 >= 200
    }
    func due(frameMs: Int64) -> (pendingMs: Int64, keyframeMs: Int64) { (200 - frameMs / 2, 0) }
    func began(_ beginning: FragmentPackager.Beginning, nowMs: Int64) {
        self.beginnings.append(beginning)
        self.firstPieces.append(self.pieces.count)
    }
    func made(_ piece: FragmentPackager.Piece, nowMs: Int64) { self.pieces.append(piece) }
    func interrupted(nowMs: Int64) { self.breaks.append(self.pieces.count) }

    /// The start of each piece in milliseconds of the container's time.
    var starts: [Int64] {
        self.pieces.compactMap { piece in
            // moof, mfhd, traf, tfhd and then tfdt: ISO/IEC 14496-12 §8.8.12.
            let bytes = piece.fragment.bytes.readableBytesView
            guard let at = bytes.firstRange(of: Array("tfdt".utf8)) else { return nil }
            return piece.fragment.bytes.getInteger(at: at.upperBound + 4, as: UInt64.self).map { Int64($0) / 90 }
        }
    }

    /// Start and end of a track in each piece that has it, in its timescale. From tfhd, tfdt and trun: ISO/IEC 14496-12 §8.8.7, 8.8.8 and 8.8.12.
    func spans(ofTrack id: Int) -> [(start: Int, end: Int)] {
        self.pieces.compactMap { piece in
            let bytes = piece.fragment.bytes
            let view = bytes.readableBytesView
            func word(_ at: Int) -> Int { bytes.getInteger(at: at, as: UInt32.self).map { Int($0) } ?? 0 }
            var rest = view[...]
            while let tfhd = rest.firstRange(of: Array("tfhd".utf8))?.upperBound {
                rest = view[tfhd...]
                func box(_ name: String) -> Int? { rest.firstRange(of: Array(name.utf8))?.upperBound }
                guard word(tfhd + 4) == id, let tfdt = box("tfdt"), let trun = box("trun") else { continue }
                // Flags and track id precede base data offset, description and the default duration.
                let usual = word(tfhd) & 0x8 == 0 ? 0 : word(tfhd + 8 + (word(tfhd) & 1) * 8 + (word(tfhd) >> 1 & 1) * 4)
                let flags = word(trun)
                var at = trun + 8 + (flags & 1) * 4 + (flags >> 2 & 1) * 4
                var length = 0
                for _ in 0..<word(trun + 4) {
                    length += flags & 0x100 == 0 ? usual : word(at)
                    at += 4 * (flags & 0xF00).nonzeroBitCount
                }
                let start = bytes.getInteger(at: tfdt + 4, as: UInt64.self).map { Int($0) } ?? 0
                return (start, start + length)
            }
            return nil
        }
    }

    var samples: Int { self.pieces.reduce(0) { $0 + $1.fragment.samples } }
    /// Samples of the pieces without those of silence beside them, of which a piece has one for each 1,024 at 48 kHz.
    var samplesBesideSilence: Int {
        zip(self.pieces, self.runOfPiece).reduce(0) { sum, next in
            let (piece, run) = next
            return sum + (self.runs[run] == "vs" ? Self.pictures(piece.fragment.bytes) : piece.fragment.samples)
        }
    }
    /// The tracks of each run: "va" has video and audio, "vs" video and silence.
    var runs: [String] {
        self.beginnings.map { $0.tracks.map { $0.kind == .video ? "v" : $0 == Self.silence ? "s" : "a" }.joined() }
    }
    private static let silence = try? SilentSound(startMs: 0).track
    /// The number of the run that each piece is in.
    private var runOfPiece: [Int] { self.pieces.indices.map { piece in self.firstPieces.lastIndex { $0 <= piece } ?? 0 } }

    /// The samples of the first track's run of samples. ISO/IEC 14496-12 §8.8.8.
    private static func pictures(_ bytes: ByteBuffer) -> Int {
        guard let at = bytes.readableBytesView.firstRange(of: Array("trun".utf8)) else { return 0 }
        return bytes.getInteger(at: at.upperBound + 4, as: UInt32.self).map { Int($0) } ?? 0
    }

    static func frames(_ tags: [FLVTag], by ms: Int64 = 0, skippingHeaders: Bool = false) throws -> [TapItem] {
        try tags.compactMap { tag in
            if tag.kind == .data || skippingHeaders && tag.isSequenceHeader { return nil }
            return .frame(try Frame(kind: tag.kind, timestamp: Int64(tag.timestamp) + ms, payload: ByteBuffer(bytes: tag.payload)))
        }
    }
}
