import FFmpeg
import Foundation
import Media
import NIOCore
import Relay
import TestSupport
import Testing

@testable import Packaging
@testable import Streaming

/// The ends and beginnings of runs of pieces, as players see them.
@Suite struct PieceRunTests {
    private static func feed(_ tags: [FLVTag], by ms: Int64 = 0, to maker: FragmentPackager) throws {
        maker.receive(try PieceList.frames(tags, by: ms), nowMs: ms, wallMs: ms)
    }

    /// A publisher returns after five seconds: the stream's time has a gap, the container's has none.
    @Test func theHoleOfAReturnIsClosed() async throws {
        let clip = try await FLVTag.clip()
        let taker = PieceList()
        let maker = FragmentPackager(.fmp4, for: taker)
        try Self.feed(clip, to: maker)
        maker.receive([.restarted], nowMs: 9_000, wallMs: 9_000)
        try Self.feed(clip, by: 9_000, to: maker)
        maker.finish(nowMs: 13_000)
        #expect(taker.beginnings.count == 2 && taker.beginnings[0].initialization == taker.beginnings[1].initialization)
        let starts = taker.starts
        for (last, next) in zip(starts, starts.dropFirst()) {
            #expect((20...400).contains(next - last), "from \(last) to \(next) ms: \(starts)")
        }
        // The fragment's reported start is in the stream's own time.
        #expect(taker.pieces.last?.fragment.startMs ?? 0 > 12_000)
        // A file keeps the pause.
        let file = PieceList()
        let recorder = FragmentPackager(.fmp4, for: file, rebases: true)
        try Self.feed(clip, to: recorder)
        recorder.receive([.restarted], nowMs: 9_000, wallMs: 9_000)
        try Self.feed(clip, by: 9_000, to: recorder)
        recorder.finish(nowMs: 13_000)
        #expect((file.starts.last ?? 0) - (file.starts.first ?? 0) > 12_000)
    }

    /// A device drops while one kind is ahead of the other, and its sound begins behind its picture when it returns: neither track has a hole, before
    /// which Chromium's own HLS player would stop.
    @Test(arguments: [UInt32(3_200), 3_400, 3_600], [UInt32(3_300), 3_500])
    func neitherTrackHasAHole(_ picturesEnd: UInt32, _ soundEnd: UInt32) async throws {
        let clip = try await FLVTag.clip()
        let taker = PieceList()
        let maker = FragmentPackager(.fmp4, for: taker)
        try Self.feed(clip.filter { $0.timestamp < ($0.kind == .video ? picturesEnd : soundEnd) }, to: maker)
        maker.receive([.restarted], nowMs: 9_000, wallMs: 9_000)
        // The sounds before the keyframe are in no piece.
        let back = clip.filter { tag in
            tag.isSequenceHeader || (tag.kind == .video ? tag.timestamp > 900 : !(980...1_120).contains(tag.timestamp))
        }
        try Self.feed(back, by: 9_000, to: maker)
        maker.finish(nowMs: 13_000)
        for (id, timescale, mostMs) in [(1, 90_000, 1), (2, 44_100, 23)] {
            let spans = taker.spans(ofTrack: id)
            #expect(spans.count > 25)
            for (last, next) in zip(spans, spans.dropFirst()) {
                let ms = (next.start - last.end) * 1_000 / timescale
                #expect((-1...mostMs).contains(ms), "track \(id): \(ms) ms at \(next.start * 1_000 / timescale)")
            }
        }
    }

    /// A change of resolution puts the parameter sets into the first keyframe too. FFmpeg's reader skips a second `moov`.
    @Test func anotherResolutionIsInTheKeyframe() async throws {
        let small = try await FLVTag.clip()
        let large = try FLVFile.read(
            try await Fixture.flv(
                video: ["-vf", "scale=640:360", "-c:v", "libx264", "-profile:v", "baseline", "-g", "25"], audio: Fixture.aac, seconds: 4,
                rate: 25))
        let taker = PieceList()
        let maker = FragmentPackager(.fmp4, for: taker)
        try Self.feed(small, to: maker)
        try Self.feed(large, by: 4_000, to: maker)
        maker.finish(nowMs: 8_000)
        #expect(taker.beginnings.count == 2)
        #expect(taker.beginnings[0].tracks.first?.width != taker.beginnings[1].tracks.first?.width)
        var bytes = taker.beginnings[0].initialization
        for piece in taker.pieces { bytes.writeImmutableBuffer(piece.fragment.bytes) }
        // One header and all pieces, as FFmpeg's HLS reader joins them.
        try await Fixture.withDirectory { directory in
            let file = directory.appendingPathComponent("one.mp4")
            try Data(bytes.readableBytesView).write(to: file)
            let sizes = try await ClientProcess.run([
                "ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "frame=width,height", "-of", "csv=p=0:s=x", file.path,
            ]).text.split(separator: "\n").map { $0.trimmingCharacters(in: CharacterSet(charactersIn: "x")) }
            let pictures = { (tags: [FLVTag]) in tags.count { $0.kind == .video && $0.payload.count > 5 && $0.payload[1] == 1 } }
            #expect(sizes.count { $0 == "640x360" } == pictures(large), "\(Set(sizes))")
            #expect(sizes.count { $0 != "640x360" } == pictures(small))
        }
    }

    /// Pictures at a variable rate: each lasts until the next one, even where a stall ended its piece. MediaSource drops everything between
    /// a gap and the next keyframe.
    @Test func picturesAtAVariableRateLeaveNoHoles() async throws {
        let clip = try await FLVTag.clip(audio: false)
        let taker = PieceList()
        let maker = FragmentPackager(.fmp4, for: taker)
        let kept = clip.enumerated().filter { [0, 1, 2, 3, 12, 13, 14, 25, 26, 40, 41, 42, 50, 51, 70, 75, 76, 77].contains($0.offset) }
        for item in try PieceList.frames(kept.map(\.element).filter { $0.kind == .video }) {
            maker.receive([item], nowMs: 0, wallMs: 0)
            maker.closeStalled(nowMs: 0)
        }
        maker.finish(nowMs: 4_000)
        let spans = taker.spans(ofTrack: 1)
        #expect(spans.count > 5 && spans.count == taker.pieces.count, "\(spans)")
        for (span, next) in zip(spans, spans.dropFirst()) { #expect(span.end == next.start, "\(spans)") }
    }

    /// Track ids depend on the kind of media. A player with the previous tracks must not decode pictures as sound.
    @Test(arguments: [ContainerFormat.fmp4, .mpegTS]) func idsGoWithTheKind(_ format: ContainerFormat) async throws {
        let clip = try await FLVTag.clip()
        let sounds = clip.filter { $0.kind == .audio }
        let taker = PieceList()
        let maker = FragmentPackager(format, for: taker)
        try Self.feed(sounds, to: maker)
        try Self.feed(clip, by: 4_000, to: maker)
        maker.finish(nowMs: 8_000)
        #expect(taker.runs == ["a", "va"], "\(maker.problems)")
        if format == .fmp4 {
            // tkhd (ISO/IEC 14496-12 §8.3.2), version 0: the id is 20 bytes after the start of the box.
            let ids = taker.beginnings.map { beginning -> [UInt32] in
                let bytes = Array(beginning.initialization.readableBytesView)
                return bytes.ranges(of: Array("tkhd".utf8)).compactMap {
                    beginning.initialization.getInteger(at: $0.upperBound + 12, as: UInt32.self)
                }
            }
            #expect(ids == [[2], [1, 2]])
        }
        var bytes = ByteBuffer()
        if format == .fmp4 { bytes.writeImmutableBuffer(taker.beginnings[0].initialization) }
        for piece in taker.pieces { bytes.writeImmutableBuffer(piece.fragment.bytes) }
        try await Fixture.withDirectory { directory in
            let file = directory.appendingPathComponent(format == .fmp4 ? "a.mp4" : "a.ts")
            try Data(bytes.readableBytesView).write(to: file)
            let packets = try await PacketList.of(file: file.path).only("audio")
            let sent = clip.count { $0.kind == .audio && !$0.isSequenceHeader }
            #expect(packets.count == 2 * sent, "no sound is lost or taken for pictures")
        }
    }

    /// Tracks announced by metadata are awaited for a second, and declared from the start.
    @Test(arguments: [900, 1_500]) func announcedPicturesAreWaitedFor(_ lateMs: UInt32) async throws {
        let clip = try await FLVTag.clip()
        let headers = clip.filter(\.isSequenceHeader)
        let video = clip.filter { $0.kind == .video && !$0.isSequenceHeader }
        let taker = PieceList()
        let maker = FragmentPackager(.fmp4, for: taker)
        let metadata = try #require(try Self.metadata(["videocodecid", "audiocodecid"]))
        maker.receive([.frame(metadata)], nowMs: 0, wallMs: 0)
        let sounds = clip.filter { $0.kind == .audio && !$0.isSequenceHeader }
        try Self.feed(headers.filter { $0.kind == .audio } + sounds.filter { $0.timestamp < lateMs }, to: maker)
        #expect(taker.runs == (lateMs < 1_000 ? [] : ["a"]))
        let late = (headers.filter { $0.kind == .video } + video).map { $0.later(by: lateMs) }
        let rest = late + sounds.filter { $0.timestamp >= lateMs }
        try Self.feed(rest.sorted { $0.timestamp < $1.timestamp }.filter { $0.timestamp < 3_900 }, to: maker)
        maker.finish(nowMs: 8_000)
        #expect(taker.runs == (lateMs < 1_000 ? ["va"] : ["a", "va"]))
    }

    /// Sound that says that it is alone is not held for pictures, but in a file, and pictures that come all the same are a track.
    @Test(arguments: [false, true]) func soundAloneBeginsAtOnce(_ rebases: Bool) async throws {
        let clip = try await FLVTag.clip()
        let taker = PieceList()
        let maker = FragmentPackager(.fmp4, for: taker, rebases: rebases)
        maker.receive([.frame(try #require(try Self.metadata(["audiocodecid"], denying: "hasVideo")))], nowMs: 0, wallMs: 0)
        let sounds = clip.filter { $0.kind == .audio }
        try Self.feed(sounds.filter { $0.timestamp < 100 }, to: maker)
        #expect(taker.runs == (rebases ? [] : ["a"]))
        try Self.feed(sounds.filter { $0.timestamp >= 100 && $0.timestamp < 1_500 }, to: maker)
        #expect(taker.runs == ["a"])
        let late = clip.filter { $0.kind == .video }.map { $0.later(by: 1_500) } + sounds.filter { $0.timestamp >= 1_500 }
        try Self.feed(late.sorted { $0.timestamp < $1.timestamp }.filter { $0.timestamp < 3_900 }, to: maker)
        maker.finish(nowMs: 8_000)
        #expect(taker.runs == ["a", "va"])
    }

    private static func metadata(_ names: [String], denying flag: String? = nil) throws -> Frame? {
        var payload = ByteBuffer()
        payload.writeBytes([2, 0, 10] + Array("onMetaData".utf8) + [8, 0, 0, 0, UInt8(names.count + (flag == nil ? 0 : 1))])
        if let flag {
            payload.writeInteger(UInt16(flag.utf8.count))
            payload.writeString(flag)
            payload.writeBytes([1, 0])
        }
        for name in names {
            payload.writeInteger(UInt16(name.utf8.count))
            payload.writeString(name)
            payload.writeBytes([0])
            payload.writeInteger((7.0).bitPattern)
        }
        payload.writeBytes([0, 0, 9])
        return try Frame(kind: .data, timestamp: 0, payload: payload)
    }

    @Test func whatMetadataAnnounces() throws {
        let both = try #require(try Self.metadata(["videocodecid", "audiocodecid"]).flatMap { AnnouncedTracks($0) })
        #expect(both.hasVideo && both.hasAudio)
        let sound = try #require(try Self.metadata(["audiosamplerate"]).flatMap { AnnouncedTracks($0) })
        #expect(!sound.hasVideo && sound.hasAudio)
        let none = try #require(try Self.metadata([]).flatMap { AnnouncedTracks($0) })
        #expect(none == AnnouncedTracks())
        var broken = try #require(try Self.metadata(["width"]))
        broken.payload = broken.payload.getSlice(at: 0, length: 20) ?? ByteBuffer()
        #expect(AnnouncedTracks(broken) == nil)
    }
}
