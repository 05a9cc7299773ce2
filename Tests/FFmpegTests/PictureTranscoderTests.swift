import Foundation
import Media
import NIOCore
import Testing

@testable import FFmpeg

/// Pictures encoded anew are the pictures that were there, as ffmpeg decodes and compares them.
@Suite struct PictureTranscoderTests {
    /// x264's usual pyramid of B-frames, of which some are made from others.
    private static let pyramid = [
        "-f", "lavfi", "-i", "testsrc2=s=640x360:r=25:d=4", "-c:v", "libx264", "-preset", "medium", "-g", "50", "-qp", "18", "-pix_fmt",
    ]

    private struct Made {
        let pictures: [PictureTranscoder.Picture]
        let source: [Sample]
    }

    private static func make(_ clip: Clip, atMost limits: PictureTranscoder.Limits = .init()) throws -> Made {
        let header = try #require(clip.frames.first { $0.kind == .video && $0.isSequenceHeader })
        let transcoder = try PictureTranscoder(Track(header), atMost: limits)
        let source = clip.frames.filter { $0.kind == .video && !$0.isSequenceHeader }.compactMap { Sample($0) }
        return Made(pictures: try source.flatMap { try transcoder.transcode($0) }, source: source)
    }

    /// Decodes both with ffmpeg. Returns the mean likeness in dB.
    private static func likeness(_ made: Made, _ clip: Clip, size: String = "640:360") async throws -> Double {
        let scratch = try Scratch()
        let path = scratch.path("made.h264")
        var bytes = ByteBuffer()
        for unit in made.pictures.flatMap(\.units) {
            bytes.writeBytes([0, 0, 0, 1])
            bytes.writeImmutableBuffer(unit)
        }
        try Data(bytes.readableBytesView).write(to: URL(fileURLWithPath: path))
        let compared = try await Tool.must([
            "ffmpeg", "-v", "info", "-r", "25", "-i", path, "-i", clip.path, "-lavfi",
            "[0:v]settb=1/25,setpts=N,format=yuv420p[a];[1:v]settb=1/25,setpts=N,scale=\(size),format=yuv420p[b];[a][b]psnr=shortest=1",
            "-f", "null",
            "-",
        ])
        let frames = compared.errors.matches(of: /frame= *(\d+)/).last.flatMap { Int($0.1) }
        #expect(frames == made.pictures.count, "\(compared.errors.suffix(300))")
        let average = compared.errors.split(separator: " ").first { $0.hasPrefix("average:") }.flatMap { Double($0.dropFirst(8)) }
        return try #require(average)
    }

    @Test(arguments: ["yuv420p", "yuvj420p", "yuv422p"]) func picturesStayWhatTheyWere(_ format: String) async throws {
        let clip = try await Clip(Self.pyramid + [format])
        let made = try Self.make(clip)
        // The decoder holds some back for their order; those of the end are not asked for.
        #expect((made.source.count - 4...made.source.count).contains(made.pictures.count))
        #expect(made.pictures.map(\.pts) == Array(made.source.map(\.pts).sorted().prefix(made.pictures.count)))
        let keyframes = made.source.filter(\.isKeyframe).map(\.pts)
        #expect(made.pictures.filter(\.isKeyframe).map(\.pts) == keyframes && keyframes.count == 2)
        for picture in made.pictures {
            let types = picture.units.compactMap { $0.getInteger(at: $0.readerIndex, as: UInt8.self).map { $0 & 0x1F } }
            #expect(picture.isKeyframe ? types.filter { $0 != 6 } == [7, 8, 5] : types.allSatisfy { $0 == 1 }, "\(types)")
        }
        let likeness = try await Self.likeness(made, clip)
        #expect(likeness >= 40, "\(likeness) dB")
    }

    @Test func largePicturesBecomeSmaller() async throws {
        let clip = try await Clip(Self.pyramid + ["yuv420p"])
        let made = try Self.make(clip, atMost: .init(bitsPerSecond: 500_000, width: 320, height: 320))
        let bits = made.pictures.flatMap(\.units).reduce(0) { $0 + $1.readableBytes } * 8
        // Four seconds, and a second in the buffer before.
        #expect(bits < 5 * 550_000, "\(bits)")
        #expect(try await Self.likeness(made, clip, size: "320:180") > 25)
    }

    /// Damage and nonsense cost pictures, and nothing else.
    @Test func damagedPictures() async throws {
        let clip = try await Clip(Self.pyramid + ["yuv420p"])
        let header = try #require(clip.frames.first { $0.kind == .video && $0.isSequenceHeader })
        let transcoder = try PictureTranscoder(Track(header))
        var generator = SystemRandomNumberGenerator()
        var made = 0
        for (number, frame) in clip.frames.filter({ $0.kind == .video && !$0.isSequenceHeader }).enumerated() {
            guard var sample = Sample(frame) else { continue }
            if number % 3 == 1 {
                var bytes = Array(sample.payload.readableBytesView)
                for _ in 0..<20 { bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator) }
                sample.payload = ByteBuffer(bytes: bytes)
            }
            do { made += try transcoder.transcode(sample).count } catch {}
        }
        #expect(made > 20, "\(made)")
    }

    @Test func startCodes() {
        func units(_ bytes: [UInt8]) -> [[UInt8]] { bytes.withUnsafeBytes { StartCodes.units(in: $0).map { Array($0.readableBytesView) } } }
        #expect(units([0, 0, 0, 1, 7, 1, 0, 0, 1, 8, 0, 0, 0, 1, 5, 2, 0, 3]) == [[7, 1], [8], [5, 2, 0, 3]])
        #expect(units([]).isEmpty && units([0, 0, 1]).isEmpty && units([1, 2, 3, 4]).isEmpty && units([0, 0, 1, 0, 0, 1]).isEmpty)
    }
}
