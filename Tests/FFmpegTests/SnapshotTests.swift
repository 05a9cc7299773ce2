import FFmpeg
import Foundation
import Media
import NIOCore
import Testing

@Suite struct SnapshotTests {
    private static let x264 = ["-c:v", "libx264", "-preset", "veryfast", "-g", "25", "-bf", "2", "-sc_threshold", "0", "-qp", "10"]
    static let source = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=2"]
    static let range = Task { try await Clip(Self.source + ["-vf", "scale=out_range=full", "-pix_fmt", "yuvj420p"] + Self.x264) }
    static let matrix = Task {
        try await Clip(
            Self.source + ["-vf", "scale=out_color_matrix=bt709:out_range=limited", "-colorspace", "bt709", "-color_range", "tv"]
                + Self.x264)
    }
    static let anamorphic = Task { try await Clip(Self.source + ["-vf", "setsar=4/3"] + Self.x264) }
    static let plain = Task { try await Clip(Self.source + Self.x264) }

    /// Compares the picture of the second keyframe with ffmpeg's decoding.
    private static func compare(_ clip: Clip, width: Int?, size expected: (Int, Int)) async throws {
        let header = try #require(clip.frames.first { $0.kind == .video && $0.isSequenceHeader })
        let key = try #require(clip.frames.filter(\.isKeyframe).dropFirst().first)
        let jpeg = try Snapshot.jpeg(keyframe: key, header: header, width: width)
        try await Self.compare(jpeg, clip.path, size: expected)
    }

    private static func compare(_ jpeg: ByteBuffer, _ path: String, size expected: (Int, Int)) async throws {
        let scratch = try Scratch()
        let picture = scratch.path("snapshot.jpg")
        try Data(jpeg.readableBytesView).write(to: URL(fileURLWithPath: picture))
        let shape = try await Tool.must(
            ["ffprobe", "-v", "warning", "-show_entries", "stream=width,height,codec_name,color_range", "-of", "csv=p=0", picture])
        #expect(shape.text == "mjpeg,\(expected.0),\(expected.1),pc\n")
        // Compares in RGB, which accounts for range and matrix, by way of 4:2:0, the format of our JPEGs.
        let compared = try await Tool.must([
            "ffmpeg", "-v", "info", "-i", picture, "-i", path, "-lavfi",
            "[0:v]setpts=0,setsar=1,format=gbrp[a];[1:v]select='eq(n,25)',setpts=0,scale=\(expected.0):\(expected.1):flags=bicubic+accurate_rnd,setsar=1,"
                + "format=yuvj420p,format=gbrp[b];[a][b]psnr", "-frames:v", "1", "-f", "null", "-",
        ])
        let average = compared.errors.split(separator: " ").first { $0.hasPrefix("average:") }.flatMap { Double($0.dropFirst(8)) }
        #expect(try #require(average) > 27, "\(compared.errors.split(separator: "\n").last ?? "")")
    }

    @Test func ofTheSameSize() async throws { try await Self.compare(Self.plain.value, width: nil, size: (320, 180)) }
    @Test func smaller() async throws { try await Self.compare(Self.plain.value, width: 161, size: (160, 90)) }
    @Test func larger() async throws { try await Self.compare(Self.plain.value, width: 640, size: (640, 360)) }
    @Test func fullRange() async throws { try await Self.compare(Self.range.value, width: nil, size: (320, 180)) }
    @Test func matrixOf709() async throws { try await Self.compare(Self.matrix.value, width: nil, size: (320, 180)) }
    @Test func pixelsThatAreNotSquare() async throws { try await Self.compare(Self.anamorphic.value, width: nil, size: (426, 180)) }
    @Test func beyondTheLimits() async throws {
        try await Self.compare(Self.plain.value, width: 1, size: (16, 10))
        try await Self.compare(Self.plain.value, width: 99_999, size: (3_840, 2_160))
    }

    @Test func hevcAndAV1() async throws {
        for clip in [try await EnhancedClip.hevc.value, try await EnhancedClip.av1.value] {
            let header = try #require(clip.frames.first)
            let key = try #require(clip.frames.filter(\.isKeyframe).dropFirst().first)
            try await Self.compare(Snapshot.jpeg(keyframe: key, header: header), clip.path, size: (320, 180))
        }
    }

    /// Truncated and damaged keyframes yield an error or a picture, but no crash.
    @Test func damaged() async throws {
        let clip = try await Self.plain.value
        let header = try #require(clip.frames.first { $0.kind == .video && $0.isSequenceHeader })
        let key = try #require(clip.frames.first { $0.isKeyframe })
        let bytes = Array(key.payload.readableBytesView)
        var refused = 0
        for round in 0..<60 {
            var damaged = bytes
            if round % 2 == 0 {
                damaged = Array(damaged.prefix(6 + round * bytes.count / 61))
            } else {
                for index in 0..<20 { damaged[5 + (round * 7_919 + index * 104_729) % (bytes.count - 5)] ^= 0x5A }
            }
            let frame = try Frame(kind: .video, timestamp: 0, payload: ByteBuffer(bytes: damaged))
            do throws(FFmpegError) { _ = try Snapshot.jpeg(keyframe: frame, header: header) } catch { refused += 1 }
        }
        #expect(refused >= 30)
    }

    @Test func whatIsNoKeyframeIsRefused() async throws {
        let clip = try await Self.plain.value
        let header = try #require(clip.frames.first { $0.kind == .video && $0.isSequenceHeader })
        let inter = try #require(clip.frames.first { $0.kind == .video && $0.tag.flags == .coded })
        let key = try #require(clip.frames.first { $0.isKeyframe })
        #expect(throws: FFmpegError.media(.mismatch(expected: "a video keyframe", found: "another message"))) {
            try Snapshot.jpeg(keyframe: inter, header: header)
        }
        #expect(throws: FFmpegError.media(.mismatch(expected: "the keyframe's sequence header", found: "another message"))) {
            try Snapshot.jpeg(keyframe: key, header: key)
        }
    }

    /// A header of 16,384 × 16,384 pixels is refused before anything is decoded.
    @Test func aHugePictureIsRefused() throws {
        // Baseline SPS: 1,024 × 1,024 macroblocks.
        let header = try Frame(
            kind: .video, timestamp: 0,
            payload: TrackTests.bytes("1700000000 0142c033ffe1000b 6742c033 da 000400 2000 4c80 01 0004 68ce0fc8"))
        let key = try Frame(kind: .video, timestamp: 0, payload: TrackTests.bytes("1701000000 00000001 65"))
        #expect(throws: FFmpegError.self) { try Snapshot.jpeg(keyframe: key, header: header) }
    }
}
