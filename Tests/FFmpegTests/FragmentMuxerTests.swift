import FFmpeg
import Foundation
import Media
import MediaClips
import NIOCore
import TestSupport
import Testing

@Suite struct FragmentMuxerTests {
    /// Fragments hold every packet with the publisher's bytes and times.
    @Test(arguments: [Int64(200), 1_000, 100_000]) func fragmentsHoldThePushedPackets(partMs: Int64) async throws {
        let clip = try await Clip.avc.value
        let pieces = try Pieces(FragmentMuxer(tracks: clip.tracks), clip.samples, partMs: partMs)
        #expect(pieces.fragments.count >= 6)
        try await Self.expectSame(pieces, clip)
    }

    @Test func videoAlone() async throws {
        let clip = try await Clip.videoOnly.value
        try await Self.expectSame(try Pieces(FragmentMuxer(tracks: clip.tracks), clip.samples), clip)
    }

    @Test func audioAlone() async throws {
        let clip = try await Clip.audioOnly.value
        let muxer = try FragmentMuxer(tracks: clip.tracks)
        #expect(muxer.mimeType == "audio/mp4; codecs=\"mp4a.40.2\"")
        try await Self.expectSame(try Pieces(muxer, clip.samples), clip)
    }

    @Test func mp3() async throws {
        let clip = try await Clip.mp3.value
        let pieces = try Pieces(FragmentMuxer(tracks: clip.tracks), clip.samples)
        try await Self.expectSame(pieces, clip)
    }

    @Test func hevc() async throws { try await Self.expectSameEnhanced(EnhancedClip.hevc.value, "hvc1.1.6.L60.90") }
    @Test func av1() async throws { try await Self.expectSameEnhanced(EnhancedClip.av1.value, "av01.0.00M.08") }
    @Test func opus() async throws { try await Self.expectSameEnhanced(EnhancedClip.opus.value, "opus") }
    @Test func flac() async throws { try await Self.expectSameEnhanced(EnhancedClip.flac.value, "fLaC") }

    private static func expectSameEnhanced(_ clip: EnhancedClip, _ codecs: String) async throws {
        let muxer = try FragmentMuxer(tracks: [clip.track])
        #expect(muxer.codecsString == codecs)
        try await Self.expectSame(try Pieces(muxer, clip.samples), clip.packets, clip.path)
    }

    private static func expectSame(_ pieces: Pieces, _ clip: Clip, gap: Double = 0.000_02) async throws {
        try await Self.expectSame(pieces, try await Probe.packets(clip.path), clip.path, gap: gap)
    }

    private static func expectSame(_ pieces: Pieces, _ pushed: [ProbedPacket], _ source: String, gap: Double = 0.000_02) async throws {
        let scratch = try Scratch()
        let path = scratch.path("out.mp4")
        try pieces.write(to: path)
        let got = try await Probe.packets(path)
        for kind in ["video", "audio"] {
            let (got, pushed) = (got.filter { $0.kind == kind }, pushed.filter { $0.kind == kind })
            #expect(got.map(\.hash) == pushed.map(\.hash))
            #expect(got.map(\.isKeyframe) == pushed.map(\.isKeyframe))
            guard got.count == pushed.count, !got.isEmpty else { continue }
            // Audio times are exact to the sample; pushed ones are whole milliseconds.
            for (got, pushed) in zip(got, pushed) {
                #expect(abs(got.pts - pushed.pts) < (kind == "video" ? 0.000_02 : 0.001), "\(got) \(pushed)")
                #expect(abs(got.dts - pushed.dts) < (kind == "video" ? 0.000_02 : 0.001), "\(got) \(pushed)")
            }
            // There is no gap and no overlap, also between fragments.
            for (sample, next) in zip(got, got.dropFirst()) {
                // ffprobe 5.1 omits the durations of packets that it read to find the codec; the file has them.
                if sample.duration == 0 { continue }
                #expect(abs(sample.dts + sample.duration - next.dts) < gap, "\(sample) \(next)")
            }
            if let last = got.last, kind == "video" { #expect(abs(last.duration - 0.04) < 0.002) }
            #expect(
                try await Tool.decodedHashes(path, kind == "video" ? "v" : "a")
                    == Tool.decodedHashes(source, kind == "video" ? "v" : "a"))
        }
        #expect(got.count == pushed.filter { $0.kind != "data" }.count)
        #expect(pieces.fragments.map(\.samples).reduce(0, +) == got.count)
    }

    @Test func eachPieceIsOneMoofAndOneMdat() async throws {
        let clip = try await Clip.avc.value
        let pieces = try Pieces(FragmentMuxer(tracks: clip.tracks, firstSequenceNumber: 41), clip.samples, partMs: 240)
        #expect(Self.boxes(pieces.initialization) == ["ftyp", "moov"])
        for (index, fragment) in pieces.fragments.enumerated() {
            #expect(Self.boxes(fragment.bytes) == ["moof", "mdat"])
            #expect(fragment.sequenceNumber == UInt32(41 + index))
            // The sequence number in mfhd, which follows the moof header, is the sixth word.
            #expect(fragment.bytes.getInteger(at: fragment.bytes.readerIndex + 20, as: UInt32.self) == UInt32(41 + index))
        }
        for (fragment, next) in zip(pieces.fragments, pieces.fragments.dropFirst()) {
            #expect(fragment.endMs == next.startMs)
            #expect(fragment.durationMs > 0 && fragment.durationMs <= 280)
        }
        #expect(pieces.fragments.filter(\.isIndependent).count == 6)
        #expect(pieces.fragments.map(\.durationMs).reduce(0, +) == 6_000)
    }

    static func boxes(_ bytes: ByteBuffer) -> [String] {
        var bytes = bytes
        var types: [String] = []
        while let size = bytes.getInteger(at: bytes.readerIndex, as: UInt32.self), size >= 8,
            let type = bytes.getString(at: bytes.readerIndex + 4, length: 4), bytes.readSlice(length: Int(size)) != nil
        {
            types.append(type)
        }
        return bytes.readableBytes == 0 ? types : types + ["\(bytes.readableBytes) bytes"]
    }

    /// A second muxer in mid-stream continues where the first one stopped.
    @Test func aSecondMuxerGoesOn() async throws {
        let clip = try await Clip.avc.value
        let half = try #require(clip.samples.firstIndex { $0.kind == .video && $0.isKeyframe && $0.dts >= 3_000 })
        let first = try FragmentMuxer(tracks: clip.tracks)
        var pieces = try Pieces(first, Array(clip.samples[..<half]))
        let second = try FragmentMuxer(tracks: clip.tracks, firstSequenceNumber: first.nextSequenceNumber)
        #expect(second.initialization == first.initialization)
        pieces.fragments += try Pieces(second, Array(clip.samples[half...])).fragments
        // The second muxer's audio clock starts at a whole millisecond.
        try await Self.expectSame(pieces, clip, gap: 0.001)
    }

    /// Decode times are the stream's times minus the origin, 30 hours into the stream and across gaps.
    @Test func timesAreTheStreams() async throws {
        let clip = try await Clip.avc.value
        let origin: Int64 = 108_000_000
        let muxer = try FragmentMuxer(tracks: clip.tracks, originMs: origin)
        let moved = clip.samples.map { sample in
            var sample = sample
            let gap: Int64 = sample.dts >= 3_000 ? 7_200_000 : 0
            sample.dts += origin + gap
            sample.pts += origin + gap
            return sample
        }
        let half = try #require(clip.samples.firstIndex { $0.dts >= 3_000 })
        var pieces = try Pieces(muxer, Array(moved[..<half]))
        pieces.fragments += try Pieces(muxer, Array(moved[half...])).fragments
        let scratch = try Scratch()
        try pieces.write(to: scratch.path("out.mp4"))
        let got = try await Probe.packets(scratch.path("out.mp4")).filter { $0.kind == "video" }
        let pushed = try await Probe.packets(clip.path).filter { $0.kind == "video" }
        for (got, pushed) in zip(got, pushed) {
            #expect(abs(got.pts - pushed.pts - (pushed.dts >= 2.999 ? 7_200 : 0)) < 0.000_1, "\(got) \(pushed)")
        }
        #expect(got.count == pushed.count && muxer.adjustedTimestamps == 0)
        #expect(pieces.fragments.first?.startMs == origin)
        // The gap lies between fragments: no sample lasts two hours.
        #expect(got.allSatisfy { $0.duration < 0.1 })
    }

    @Test func transportStreamHoldsTheSamePictures() async throws {
        let clip = try await Clip.avc.value
        let muxer = try FragmentMuxer(tracks: clip.tracks, format: .mpegTS)
        #expect(muxer.mimeType == "video/mp2t" && muxer.initialization.readableBytes == 0)
        let pieces = try Pieces(muxer, clip.samples)
        #expect(pieces.fragments.count == 6)
        let scratch = try Scratch()
        for fragment in pieces.fragments {
            #expect(fragment.bytes.readableBytes % 188 == 0)
            let packets = fragment.bytes.readableBytesView
            // The first three packets include PAT and PMT; some muxers put SDT between them.
            let pids = [0, 1, 2].map {
                Int(packets[packets.startIndex + $0 * 188 + 1] & 0x1F) << 8 | Int(packets[packets.startIndex + $0 * 188 + 2])
            }
            #expect(pids.contains(0) && pids.contains(0x1000), "\(pids)")
            #expect(fragment.isIndependent)
        }
        try pieces.write(to: scratch.path("out.ts"))
        let got = try await Probe.packets(scratch.path("out.ts"))
        let pushed = try await Probe.packets(clip.path)
        for kind in ["video", "audio"] {
            let (got, pushed) = (got.filter { $0.kind == kind }, pushed.filter { $0.kind == kind })
            #expect(got.count == pushed.count)
            for (got, pushed) in zip(got, pushed) { #expect(abs(got.pts - pushed.pts - 1.4) < 0.001, "\(got) \(pushed)") }
            let letter = kind == "video" ? "v" : "a"
            #expect(try await Tool.decodedHashes(scratch.path("out.ts"), letter) == Tool.decodedHashes(clip.path, letter))
        }
        // A single piece plays on its own.
        try Data(pieces.fragments[3].bytes.readableBytesView).write(to: URL(fileURLWithPath: scratch.path("one.ts")))
        #expect(try await Tool.decodedHashes(scratch.path("one.ts")).count == 25)
    }
}
