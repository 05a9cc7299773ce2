import FFmpeg
import Foundation
import Media
import NIOCore
import TestSupport

/// Enhanced RTMP messages made from an MP4 file, because ffmpeg 5.1 writes no such FLV.
struct EnhancedClip: Sendable {
    var path: String
    var frames: [Frame]
    /// The packets as pushed: on a timeline that starts at 0, in whole milliseconds.
    var packets: [ProbedPacket]
    private let scratch: Scratch

    private static let boxes = ["hvcC": "hvc1", "av1C": "av01", "avcC": "avc1", "dOps": "Opus", "dfLa": "fLaC", "dac3": "ac-3"]

    init(_ arguments: [String]) async throws {
        self.scratch = try Scratch()
        self.path = self.scratch.path("clip.mp4")
        _ = try await Tool.ffmpeg(arguments + ["-f", "mp4", self.path])
        let file = ByteBuffer(bytes: try Data(contentsOf: URL(fileURLWithPath: self.path)))
        self.packets = try await Probe.packets(self.path)
        let start = self.packets.map(\.dts).min() ?? 0
        self.frames = []
        let found = Self.boxes.compactMap { box, fourCC in Self.find(box, in: file).map { (box, fourCC, $0) } }
        guard let (box, fourCC, record) = found.first, found.count == 1 else { throw Tool.Failed(description: "\(found.count) codecs") }
        let kind: Frame.Kind = ["hvcC", "av1C", "avcC"].contains(box) ? .video : .audio
        let head: UInt8 = kind == .video ? 0x90 : 0x90
        if box != "dac3" {
            self.frames.append(try Self.frame(kind, 0, [head] + Array(fourCC.utf8) + Self.header(box, record)))
        }
        for index in self.packets.indices {
            let packet = self.packets[index]
            let (dts, pts) = (Int64(((packet.dts - start) * 1_000).rounded()), Int64(((packet.pts - start) * 1_000).rounded()))
            guard let position = packet.position, let size = packet.size, let body = file.getBytes(at: position, length: size) else {
                continue
            }
            var bytes = (kind == .video ? [packet.isKeyframe ? 0x91 : 0xA1] : [0x91]) + Array(fourCC.utf8)
            if box == "hvcC" || box == "avcC" { bytes += [16, 8, 0].map { UInt8(truncatingIfNeeded: (pts - dts) >> $0) } }
            self.frames.append(try Self.frame(kind, dts, bytes + body))
            self.packets[index].dts = Double(dts) / 1_000
            self.packets[index].pts = Double(pts) / 1_000
        }
    }

    private static func frame(_ kind: Frame.Kind, _ time: Int64, _ bytes: [UInt8]) throws -> Frame {
        try Frame(kind: kind, timestamp: time, payload: ByteBuffer(bytes: bytes))
    }

    /// The codec header that Enhanced RTMP sends instead of a box.
    private static func header(_ box: String, _ record: [UInt8]) -> [UInt8] {
        switch box {
        // Version, channels, pre-skip, rate, gain, family: big-endian in the box, little-endian in the header.
        case "dOps":
            Array("OpusHead".utf8) + [
                1, record[1], record[3], record[2], record[7], record[6], record[5], record[4], record[9], record[8], record[10],
            ]
        case "dfLa": Array(record[8...])
        default: record
        }
    }

    private static func find(_ box: String, in file: ByteBuffer) -> [UInt8]? {
        let bytes = Data(file.readableBytesView)
        guard let range = bytes.range(of: Data(box.utf8)), let size = file.getInteger(at: range.lowerBound - 4, as: UInt32.self) else {
            return nil
        }
        return file.getBytes(at: range.upperBound, length: Int(size) - 8)
    }

    private static let video = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=3"]
    private static let tone = ["-f", "lavfi", "-i", "aevalsrc=0.5*sin(2*PI*440*t):s=48000:d=3"]

    static let hevc = Task {
        try await EnhancedClip(
            Self.video + [
                "-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "keyint=25:bframes=3:log-level=none:pools=1", "-tag:v", "hvc1",
            ])
    }
    static let av1 = Task { try await EnhancedClip(Self.video + ["-c:v", "libsvtav1", "-preset", "12", "-g", "25"]) }
    static let opus = Task { try await EnhancedClip(Self.tone + ["-c:a", "libopus", "-b:a", "64k"]) }
    static let flac = Task { try await EnhancedClip(Self.tone + ["-c:a", "flac", "-strict", "-2"]) }
    static let ac3 = Task { try await EnhancedClip(Self.tone + ["-c:a", "ac3"]) }

    var track: Track {
        get throws { try Track(try self.frames.first { Track.describes($0) }.orThrow("a track")) }
    }
    var samples: [Sample] { self.frames.compactMap { Sample($0) } }
}

extension Optional {
    func orThrow(_ what: String) throws -> Wrapped {
        guard let self else { throw Tool.Failed(description: "no \(what)") }
        return self
    }
}
