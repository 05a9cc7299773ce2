import FFmpeg
import Foundation
import Media
import Relay
import TestSupport
import Testing

@testable import Packaging
@testable import Streaming

/// Pieces of streams whose cameras and microphones are switched on and off.
@Suite struct PieceTracksTests {
    /// Pieces for players, and for files.
    enum Use: String, CaseIterable { case playing, files }

    private static func maker(_ taker: PieceList, _ use: Use) -> FragmentPackager {
        FragmentPackager(.fmp4, for: taker, rebases: use == .files)
    }

    /// A clip's tags without the end of sequence. Its first picture is at time 0.
    private struct Parts {
        let headers: [FLVTag]
        let pictures: [FLVTag]
        let sounds: [FLVTag]
        /// Pictures and sounds in their original order.
        let coded: [FLVTag]

        init() async throws {
            let clip = try await FLVTag.clip()
            self.headers = clip.filter(\.isSequenceHeader)
            let coded = clip.filter { !$0.isSequenceHeader && $0.kind != .data && !($0.kind == .video && $0.payload[1] == 2) }
            let first = try coded.first { $0.kind == .video }.orThrow().timestamp
            self.coded = coded.filter { $0.timestamp >= first }.map {
                FLVTag(kind: $0.kind, timestamp: $0.timestamp - first, payload: $0.payload)
            }
            self.pictures = self.coded.filter { $0.kind == .video }
            self.sounds = self.coded.filter { $0.kind == .audio }
        }
    }

    private static func feed(_ tags: [FLVTag], by ms: Int64 = 0, to maker: FragmentPackager) throws {
        maker.receive(try PieceList.frames(tags, by: ms), nowMs: ms, wallMs: ms)
    }

    /// Pictures that start after seconds of sound are complete, and so is the sound. The video header may arrive early or late.
    @Test(arguments: Use.allCases, [true, false]) func cameraIsTurnedOnLate(_ use: Use, _ isAnnounced: Bool) async throws {
        let parts = try await Parts()
        let taker = PieceList()
        let maker = Self.maker(taker, use)
        try Self.feed(parts.headers.filter { isAnnounced || $0.kind == .audio }, to: maker)
        try Self.feed(parts.sounds, to: maker)
        try Self.feed(parts.headers, by: 4_000, to: maker)
        try Self.feed(parts.coded, by: 4_000, to: maker)
        maker.finish(nowMs: 8_000)
        #expect(taker.runs == ["a", "va"])
        #expect(taker.samples == parts.sounds.count + parts.coded.count)
        #expect(taker.pieces.count { $0.holdsKeyframe && $0.fragment.startMs >= 4_000 } >= 4)
        #expect(maker.problems.isEmpty, "\(maker.problems)")
        let origins = taker.beginnings.map(\.originMs)
        // The audio header comes first, so the file starts with its first sample.
        #expect(use == .playing ? origins[1] == origins[0] : origins[1] == 4_000, "\(origins)")
    }

    /// Sound that starts late joins at the next keyframe; the pictures do not wait for it. Players have silence until then.
    @Test(arguments: Use.allCases) func microphoneIsTurnedOnLate(_ use: Use) async throws {
        let parts = try await Parts()
        let taker = PieceList()
        let maker = Self.maker(taker, use)
        try Self.feed(parts.headers, to: maker)
        try Self.feed(parts.pictures.filter { $0.timestamp < 1_000 }, to: maker)
        let alone = use == .playing ? "vs" : "v"
        #expect(taker.runs == [alone] && !taker.pieces.isEmpty, "less than a second was waited for it")
        try Self.feed(parts.pictures.filter { $0.timestamp >= 1_000 }, to: maker)
        try Self.feed(parts.coded, by: 4_000, to: maker)
        maker.finish(nowMs: 8_000)
        #expect(taker.runs == [alone, "va"])
        // The first of those keyframes precedes its sound, and the next is a second later. A file has the sound in between.
        let lost = parts.pictures.count + parts.coded.count - taker.samplesBesideSilence
        #expect(use == .files ? lost == 0 : (0...50).contains(lost), "\(lost) of \(parts.sounds.count) sounds")
    }

    /// A camera is off for four seconds. Players soon get a run of sound alone, and then all pictures from the first on. A file only has a
    /// pause. Sound never counts as a keyframe between pictures.
    @Test(arguments: Use.allCases) func cameraIsTurnedOff(_ use: Use) async throws {
        let parts = try await Parts()
        let taker = PieceList()
        let maker = Self.maker(taker, use)
        try Self.feed(parts.headers + parts.coded, to: maker)
        let asked = taker.keyframes
        #expect(asked == 3, "keyframes behind the first: \(asked)")
        let before = taker.pieces.count
        try Self.feed(parts.sounds.filter { $0.timestamp < 1_900 }, by: 4_000, to: maker)
        #expect(taker.runs == ["va"] && taker.keyframes == asked)
        let patience = try maker.patience.orThrow()
        #expect(patience.leads == .audio && patience.dueMs - patience.newestMs <= 200)
        try Self.feed(parts.sounds.filter { $0.timestamp >= 1_900 }, by: 4_000, to: maker)
        #expect(taker.runs == (use == .playing ? ["va", "a"] : ["va"]))
        if use == .files { #expect(taker.keyframes == asked) }
        let pieces = taker.pieces[before...].dropFirst()
        #expect(pieces.count >= 12, "\(pieces.count) pieces")
        #expect(pieces.count { $0.fragment.durationMs < 150 } <= 1, "\(pieces.map(\.fragment.durationMs))")
        try Self.feed(parts.coded, by: 8_000, to: maker)
        maker.finish(nowMs: 12_000)
        #expect(taker.runs == (use == .playing ? ["va", "a", "va"] : ["va"]))
        #expect(taker.samples == 2 * parts.coded.count + parts.sounds.count)
        #expect(taker.pieces.last(where: { $0.holdsKeyframe })?.fragment.endMs ?? 0 > 11_000)
        // Each run starts where the previous one ended.
        for (last, next) in zip(taker.pieces, taker.pieces.dropFirst()) {
            let stepMs = next.fragment.startMs - last.fragment.endMs
            #expect((-100...100).contains(stepMs), "\(stepMs) ms at \(next.fragment.startMs)")
        }
    }

    /// After half a minute without pictures a file ends. The sound goes on in another file, which can be split anywhere.
    @Test func filesGoOnWithSoundAlone() async throws {
        let parts = try await Parts()
        let taker = PieceList()
        let maker = Self.maker(taker, .files)
        try Self.feed(parts.headers + parts.coded, to: maker)
        for index in 1...9 { try Self.feed(parts.sounds, by: Int64(index) * 4_000, to: maker) }
        #expect(taker.runs == ["va", "a"])
        #expect((33_000...36_000).contains(taker.beginnings[1].originMs), "\(taker.beginnings[1].originMs)")
        #expect(taker.keyframes > 50)
        try Self.feed(parts.coded, by: 40_000, to: maker)
        maker.finish(nowMs: 44_000)
        #expect(taker.runs == ["va", "a", "va"])
        #expect(taker.samples == 2 * parts.coded.count + 9 * parts.sounds.count)
    }

    /// A microphone switched off leaves the tracks at the next keyframe. It rejoins when it returns.
    @Test func microphoneIsTurnedOff() async throws {
        let parts = try await Parts()
        let taker = PieceList()
        let maker = Self.maker(taker, .playing)
        try Self.feed(parts.headers + parts.coded, to: maker)
        try Self.feed(parts.pictures, by: 4_000, to: maker)
        #expect(taker.runs == ["va", "vs"])
        #expect(taker.pieces[try taker.breaks.first.orThrow()].fragment.startMs == 6_000)
        for index in 2...3 { try Self.feed(parts.coded, by: Int64(index) * 4_000, to: maker) }
        maker.finish(nowMs: 16_000)
        #expect(taker.runs == ["va", "vs", "va"])
    }

    /// A picture every five seconds is a slow camera, not one switched off and on. Its track is removed only once.
    @Test func rarePicturesDoNotFlap() async throws {
        let parts = try await Parts()
        let keyframe = try parts.pictures.first.orThrow()
        let taker = PieceList()
        let maker = Self.maker(taker, .playing)
        try Self.feed(parts.headers, to: maker)
        for second in stride(from: Int64(0), to: 60, by: 1) {
            if second % 5 == 0 { try Self.feed([keyframe], by: second * 1_000, to: maker) }
            try Self.feed(parts.sounds.filter { $0.timestamp < 1_000 }, by: second * 1_000, to: maker)
        }
        #expect(taker.runs == ["va", "a", "va"])
    }

    /// A camera switched every few seconds changes the tracks only a few times.
    @Test func aFlappingCameraIsGotUsedTo() async throws {
        let parts = try await Parts()
        let taker = PieceList()
        let maker = Self.maker(taker, .playing)
        try Self.feed(parts.headers, to: maker)
        for index in stride(from: Int64(0), to: 80, by: 8) {
            try Self.feed(parts.coded, by: index * 1_000, to: maker)
            try Self.feed(parts.sounds, by: (index + 4) * 1_000, to: maker)
        }
        #expect(taker.runs == ["va", "a", "va"])
    }

    /// A device comes back within a second without its microphone, or without its camera: one change, whose pieces are in one run.
    @Test(arguments: Use.allCases, [true, false]) func aReturnWithoutOneKind(_ use: Use, _ isMute: Bool) async throws {
        let parts = try await Parts()
        let taker = PieceList()
        let maker = Self.maker(taker, use)
        try Self.feed(parts.headers + parts.coded, to: maker)
        maker.receive([.restarted], nowMs: 4_500, wallMs: 4_500)
        let kept = isMute ? parts.pictures : parts.sounds
        try Self.feed(parts.headers.filter { $0.kind == (isMute ? .video : .audio) }, by: 4_500, to: maker)
        for index in 0..<10 as Range<Int64> { try Self.feed(kept, by: 4_500 + index * 4_000, to: maker) }
        maker.finish(nowMs: 50_000)
        #expect(taker.runs == ["va", isMute ? use == .playing ? "vs" : "v" : "a"])
        #expect(taker.samplesBesideSilence == parts.coded.count + 10 * kept.count)
        #expect(maker.problems.isEmpty, "\(maker.problems)")
    }

    /// Sound that cannot be a track is left out, and is counted with its cause.
    @Test(arguments: Use.allCases) func aHeaderWithoutATrack(_ use: Use) async throws {
        let parts = try await Parts()
        let taker = PieceList()
        let maker = Self.maker(taker, use)
        let headers = parts.headers.map { $0.kind == .audio ? FLVTag.audio(0, [0xAF, 0, 0xFF]) : $0 }
        try Self.feed(headers + parts.coded, to: maker)
        #expect(maker.problems.count == 1)
        #expect(taker.runs == [use == .playing ? "vs" : "v"])
        #expect(maker.leftOut.counts.audio == parts.sounds.count && maker.leftOut.counts.video == 0)
        #expect(maker.leftOut.causes.audio == maker.problems.first)
    }

    /// The publisher pauses all media and then goes on: the tracks stay the same.
    @Test(arguments: [Int64(4_000), 30_000]) func aPauseOfAllIsNobodysAbsence(_ pauseMs: Int64) async throws {
        let parts = try await Parts()
        let taker = PieceList()
        let maker = Self.maker(taker, .playing)
        try Self.feed(parts.headers + parts.coded, to: maker)
        try Self.feed(parts.coded, by: 4_000 + pauseMs, to: maker)
        maker.finish(nowMs: 0)
        #expect(taker.runs == ["va"] && taker.samples == 2 * parts.coded.count)
    }

    /// FFmpeg sends an empty header before AV1's own. Media before it is kept, and the next keyframe goes on.
    @Test func aHeaderThatCannotBeRead() async throws {
        let parts = try await Parts()
        let taker = PieceList()
        let maker = Self.maker(taker, .files)
        let first = parts.coded.filter { $0.timestamp < 2_900 }
        try Self.feed(parts.headers + first + [.video(2_900, [0x90] + Array("av01".utf8))], to: maker)
        #expect(taker.samples == first.count)
        try Self.feed(parts.coded.filter { $0.timestamp >= 2_900 }, to: maker)
        maker.finish(nowMs: 4_000)
        #expect(taker.pieces.last?.fragment.endMs ?? 0 > 3_900 && maker.problems.count == 1, "\(maker.problems)")
    }

    /// Sound in batches of three seconds, ahead of its pictures, is no switched-off camera.
    @Test func soundInBatches() async throws {
        let parts = try await Parts()
        let taker = PieceList()
        let maker = Self.maker(taker, .playing)
        try Self.feed(parts.headers, to: maker)
        for index in 0..<8 {
            let ms = Int64(index) * 4_000
            try Self.feed(parts.sounds, by: ms, to: maker)
            try Self.feed(parts.pictures, by: ms, to: maker)
        }
        // Learning this may cost one change.
        #expect(taker.runs.count <= 3 && taker.runs.last == "va", "\(taker.runs)")
    }
}
