import FFmpeg
import Foundation
import Media
import MediaClips
import NIOCore
import TestSupport
import Testing

@Suite struct MP4FinisherTests {
    /// Records the clip in fragments of `partMs`, without the last `cut` bytes.
    private static func record(_ clip: Clip, to path: String, partMs: Int64 = 1_000, originMs: Int64 = 0, cut: Int = 0) throws -> Pieces {
        let pieces = try Pieces(FragmentMuxer(tracks: clip.tracks, originMs: originMs), clip.samples, partMs: partMs)
        let bytes = pieces.whole
        try Data(bytes.readableBytesView.dropLast(cut)).write(to: URL(fileURLWithPath: path))
        return pieces
    }

    @Test func theIndexIsInFrontAndNothingIsLost() async throws {
        let clip = try await Clip.avc.value
        let scratch = try Scratch()
        let (source, out) = (scratch.path("rec.mp4"), scratch.path("done: 1.mp4"))
        _ = try Self.record(clip, to: source)
        let finished = try MP4Finisher.finish(source, to: out)
        let data = try Data(contentsOf: URL(fileURLWithPath: out))
        #expect(finished.bytes == data.count && finished.lostBytes == 0 && finished.durationMs >= 6_000 && finished.durationMs < 6_200)
        let boxes = FragmentMuxerTests.boxes(ByteBuffer(bytes: data))
        #expect(boxes.filter { $0 != "free" } == ["ftyp", "moov", "mdat"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.directory).sorted() == ["done: 1.mp4", "rec.mp4"])
        let got = try await Probe.packets(out)
        let pushed = try await Probe.packets(clip.path).filter { $0.kind != "data" }
        #expect(finished.packets == pushed.count)
        for kind in ["video", "audio"] {
            let (got, pushed) = (got.filter { $0.kind == kind }, pushed.filter { $0.kind == kind })
            #expect(got.map(\.hash) == pushed.map(\.hash) && got.map(\.isKeyframe) == pushed.map(\.isKeyframe))
            for (got, pushed) in zip(got, pushed) { #expect(abs(got.pts - pushed.pts) < 0.001, "\(got) \(pushed)") }
            let letter = kind == "video" ? "v" : "a"
            #expect(try await Tool.decodedHashes(out, letter) == Tool.decodedHashes(clip.path, letter))
        }
        // Seeking finds a picture of the clip.
        let sought = try await Tool.ffmpeg(["-ss", "4", "-i", out, "-map", "0:v", "-frames:v", "1", "-f", "framehash", "-hash", "md5", "-"])
        let hash = sought.lines.last?.split(separator: ",").last.map { $0.trimmingCharacters(in: .whitespaces) }
        #expect(try await hash.map(Tool.decodedHashes(clip.path).contains) == true)
    }

    /// Only the incomplete fragment is lost, wherever the file ends.
    @Test(arguments: [1, 9, 400, 20_000, 27_000]) func aCutFragmentIsAllThatIsLost(cut: Int) async throws {
        let clip = try await Clip.avc.value
        let scratch = try Scratch()
        let pieces = try Self.record(clip, to: scratch.path("rec.mp4"), cut: cut)
        let finished = try MP4Finisher.finish(scratch.path("rec.mp4"), to: scratch.path("done.mp4"))
        let last = try #require(pieces.fragments.last)
        #expect(finished.packets == pieces.fragments.dropLast().map(\.samples).reduce(0, +))
        #expect(finished.lostBytes == Int64(last.bytes.readableBytes - cut))
        #expect(try await Tool.decodedHashes(scratch.path("done.mp4")).count == 125)
    }

    /// A file whose recording began hours into the stream starts at 0.
    @Test func laterPartsStartAtNothing() async throws {
        let clip = try await Clip.avc.value
        let scratch = try Scratch()
        _ = try Self.record(clip, to: scratch.path("rec.mp4"), originMs: -7_200_000)
        _ = try MP4Finisher.finish(scratch.path("rec.mp4"), to: scratch.path("done.mp4"))
        let first = try #require(try await Probe.packets(scratch.path("done.mp4")).map(\.pts).min())
        #expect(abs(first) < 0.1)
    }

    @Test func audioAlone() async throws {
        let clip = try await Clip.audioOnly.value
        let scratch = try Scratch()
        _ = try Self.record(clip, to: scratch.path("rec.mp4"))
        _ = try MP4Finisher.finish(scratch.path("rec.mp4"), to: scratch.path("done.mp4"))
        #expect(try await Tool.decodedHashes(scratch.path("done.mp4"), "a") == Tool.decodedHashes(clip.path, "a"))
    }

    /// Offsets beyond 4 GiB. Needs 9 GiB of disk, so it runs only on request (`EARSHOT_LARGE=1`, as `make soak` sets).
    @Test(
        .enabled(if: ProcessInfo.processInfo.environment["EARSHOT_LARGE"] != nil, "9 GiB of disk: set EARSHOT_LARGE=1, as `make soak` does")
    ) func largeFiles() async throws {
        let clip = try await Clip.videoOnly.value
        let scratch = try Scratch()
        let muxer = try FragmentMuxer(tracks: clip.tracks)
        let file = try FragmentFile(path: scratch.path("rec.mp4"), initialization: muxer.initialization, sync: .never)
        // Real pictures, each followed by a filler data unit (H.264 §7.3.2.7), which decoders skip.
        var filler = ByteBuffer(integer: UInt32(7 << 20))
        filler.writeBytes([0x0C])
        filler.writeRepeatingByte(0xFF, count: (7 << 20) - 2)
        filler.writeBytes([0x80])
        for round in 0..<Int64(5) {
            for sample in clip.samples {
                var sample = sample
                sample.dts += round * 6_000
                sample.pts += round * 6_000
                sample.payload.writeImmutableBuffer(filler)
                try muxer.write(sample)
                if let fragment = try muxer.pendingBytes > 40 << 20 ? muxer.flush() : nil { try file.append(fragment.bytes, nowMs: 0) }
            }
        }
        if let fragment = try muxer.flush() { try file.append(fragment.bytes, nowMs: 0) }
        let finished = try MP4Finisher.finish(file.path, to: scratch.path("done.mp4"))
        #expect(finished.packets == 750 && finished.bytes > 5_000_000_000)
        #expect(
            try await Tool.decodedHashes(scratch.path("done.mp4"))
                == Array(repeating: Tool.decodedHashes(clip.path), count: 5).flatMap { $0 })
    }

    @Test func cancelledLeavesNothing() async throws {
        let clip = try await Clip.avc.value
        let scratch = try Scratch()
        _ = try Self.record(clip, to: scratch.path("rec.mp4"))
        var calls = 0
        #expect(throws: FFmpegError.cancelled) {
            try MP4Finisher.finish(scratch.path("rec.mp4"), to: scratch.path("done.mp4")) { done, total in
                calls += 1
                return done < total
            }
        }
        #expect(calls > 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.directory) == ["rec.mp4"])
    }

    @Test func errorsNameTheFile() async throws {
        let clip = try await Clip.avc.value
        let scratch = try Scratch()
        let (source, none) = (scratch.path("rec.mp4"), scratch.path("none.mp4"))
        let pieces = try Self.record(clip, to: source)
        #expect(throws: FFmpegError.file(operation: "open", path: none, errno: ENOENT)) { try MP4Finisher.finish(none, to: source) }
        let nowhere = scratch.path("no/where.mp4")
        #expect(throws: FFmpegError.file(operation: "create", path: nowhere + ".tmp", errno: ENOENT)) {
            try MP4Finisher.finish(source, to: nowhere)
        }
        // Only the beginning of the file, without a complete fragment.
        try Data(pieces.whole.readableBytesView.prefix(2_000)).write(to: URL(fileURLWithPath: none))
        #expect(throws: FFmpegError.media(.mismatch(expected: "a movie box and a whole fragment in \(none)", found: "none"))) {
            try MP4Finisher.finish(none, to: scratch.path("done.mp4"))
        }
    }

    @Test func aFullDiskIsNamed() async throws {
        let clip = try await Clip.avc.value
        let scratch = try Scratch()
        _ = try Self.record(clip, to: scratch.path("rec.mp4"))
        try FileManager.default.createSymbolicLink(atPath: scratch.path("done.mp4.tmp"), withDestinationPath: "/dev/full")
        #expect(throws: FFmpegError.file(operation: "write", path: scratch.path("done.mp4.tmp"), errno: ENOSPC)) {
            try MP4Finisher.finish(scratch.path("rec.mp4"), to: scratch.path("done.mp4"))
        }
    }
}
