import FFmpeg
import Foundation
import Media
import MediaClips

/// An FLV file made by ffmpeg, and its messages.
struct Clip: Sendable {
    var path: String
    var frames: [Frame]
    /// Keeps the file from being removed.
    private let scratch: Scratch

    /// Makes the file. `arguments`: ffmpeg's inputs and codecs.
    init(_ arguments: [String]) async throws {
        self.scratch = try Scratch()
        self.path = self.scratch.path("clip.flv")
        _ = try await Tool.ffmpeg(arguments + ["-f", "flv", self.path])
        self.frames = try FLV.frames(self.path)
    }

    private static let video = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=6"]
    private static let tone = ["-f", "lavfi", "-i", "sine=f=440:r=44100:d=6"]
    private static let x264 = ["-c:v", "libx264", "-preset", "veryfast", "-g", "25", "-bf", "2", "-sc_threshold", "0", "-threads", "1"]
    private static let aac = ["-c:a", "aac", "-b:a", "96k", "-ac", "2"]

    /// 6 s of video at 25 pictures a second, with B-frames and a keyframe every second, and a tone.
    static let avc = Task { try await Clip(Self.video + Self.tone + Self.x264 + Self.aac) }
    static let videoOnly = Task { try await Clip(Self.video + Self.x264) }
    static let audioOnly = Task { try await Clip(Self.tone + Self.aac) }
    static let mp3 = Task { try await Clip(Self.tone + ["-c:a", "libmp3lame", "-b:a", "64k"]) }

    func track(_ kind: Frame.Kind) throws -> Track {
        guard let frame = self.frames.first(where: { $0.kind == kind && Track.describes($0) }) else {
            throw Tool.Failed(description: "no \(kind) track")
        }
        return try Track(frame)
    }

    var tracks: [Track] {
        get throws { try [Frame.Kind.video, .audio].filter { kind in self.frames.contains { $0.kind == kind } }.map(self.track) }
    }
    var samples: [Sample] { self.frames.compactMap { Sample($0) } }
}
