import FFmpeg
import Foundation
import HLS
import HLSCheck
import Media
import NIOCore
import Relay
import TestSupport
import Testing

@testable import Packaging
@testable import Streaming

/// Pieces of streams whose timestamps jump or are uneven.
@Suite struct FragmentPackagerTests {
    /// A jump by hours ahead, or back before the first frame: container time goes on after a discontinuity, and no picture is lost.
    @Test(arguments: [Int64(7_200_000), -3_000_000, -30_000, 90_000]) func timesThatLeapGoOn(_ leapMs: Int64) async throws {
        let clip = try await FLVTag.clip()
        let pictures = clip.count { $0.kind == .video && $0.payload.count > 5 && $0.payload[1] == 1 }
        let taker = PieceList()
        let maker = FragmentPackager(.fmp4, for: taker)
        maker.receive(try PieceList.frames(clip, by: 3_600_000), nowMs: 0, wallMs: 1_000_000)
        let before = taker.pieces.count
        #expect(before > 15)
        maker.receive(try PieceList.frames(clip, by: 3_604_000 + leapMs, skippingHeaders: true), nowMs: 4_000, wallMs: 1_004_000)
        maker.finish(nowMs: 8_000)
        #expect(taker.beginnings.count == 2, "\(maker.problems)")
        #expect(taker.pieces.count > 2 * before - 3)
        #expect(taker.samples > 2 * pictures + 300, "pictures and sound: \(taker.samples)")
        let starts = taker.starts
        for (last, next) in zip(starts, starts.dropFirst()) {
            #expect((100...400).contains(next - last), "from \(last) to \(next) ms, leap \(leapMs): \(starts)")
        }
        let dates = taker.pieces.map(\.wallMs)
        #expect(zip(dates, dates.dropFirst()).allSatisfy { (-300...600).contains($1 - $0) }, "\(dates)")
        #expect(maker.problems.isEmpty, "\(maker.problems)")
    }

    /// Browsers take MP3 in no fragmented MP4: players get AAC. A file keeps what was sent.
    @Test(arguments: [false, true]) func mp3BecomesAACForPlayers(_ isFile: Bool) async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: ["-c:a", "libmp3lame", "-ar", "44100"], seconds: 4)
        let taker = PieceList()
        let maker = FragmentPackager(.fmp4, for: taker, rebases: isFile)
        maker.receive(try PieceList.frames(FLVFile.read(source)), nowMs: 0, wallMs: 0)
        maker.finish(nowMs: 4_000)
        let codecs = taker.beginnings.map(\.codecs)
        #expect(codecs.count == 1 && codecs[0].hasPrefix("avc1.") && codecs[0].hasSuffix(isFile ? ",mp4a.6B" : ",mp4a.40.2"), "\(codecs)")
        // Runs of 1,152 samples at 44.1 kHz, or of 1,024 at 48 kHz.
        #expect(taker.samples - 100 > (isFile ? 145 : 175), "\(taker.samples) pictures and sounds of 4 s")
        #expect(maker.problems.isEmpty, "\(maker.problems)")
    }

    /// Audio that jumps alone ends the run and continues in the next. Pictures already written are not lost.
    @Test func aTrackThatLeapsAlone() async throws {
        let clip = try await FLVTag.clip()
        let taker = PieceList()
        let maker = FragmentPackager(.fmp4, for: taker)
        let late = clip.map { tag -> FLVTag in
            var tag = tag
            if tag.kind == .audio, tag.timestamp > 2_000 { tag.timestamp += 3_600_000 }
            return tag
        }
        maker.receive(try PieceList.frames(late), nowMs: 0, wallMs: 0)
        maker.receive(try PieceList.frames(clip, by: 4_000, skippingHeaders: true), nowMs: 0, wallMs: 0)
        maker.finish(nowMs: 4_000)
        #expect(taker.beginnings.count >= 2)
        let pictures = taker.pieces.count { $0.holdsKeyframe }
        #expect(pictures >= 5, "\(pictures) pieces with keyframes")
    }

    /// At two pictures a second each is a piece with its full duration. It is closed once the next one is overdue.
    @Test func slowPicturesLastAsLongAsTheyDo() async throws {
        let taker = PieceList()
        let maker = FragmentPackager(.fmp4, for: taker)
        for item in try PieceList.frames(try await FLVTag.clip(audio: false, rate: 2)) {
            maker.receive([item], nowMs: 0, wallMs: 0)
            maker.closeStalled(nowMs: 0)
        }
        let durations = taker.pieces.map { $0.fragment.durationMs }
        #expect(durations.count >= 5 && durations.dropFirst().allSatisfy { $0 == 500 }, "\(durations)")
    }

    /// A device that stalls again and again ends pieces early. They end no segment, which begins with a keyframe, and none is a part that is shorter
    /// than a part may be: the next piece joins it.
    @Test(arguments: [4, 7, 13]) func piecesThatAreCutShort(_ pictures: Int) async throws {
        let clip = try await FLVTag.clip()
        let taker = WindowTaker(try MediaWindow(epoch: "e", configuration: .init(windowMs: 60_000)), cacheLimit: (1 << 20, 10_000))
        let maker = FragmentPackager(.fmp4, for: taker)
        var history = PlaylistHistory()
        var count = 0
        for round in 0..<4 as Range<Int64> {
            for item in try PieceList.frames(clip, by: round * 4_000, skippingHeaders: round > 0) {
                maker.receive([item], nowMs: 0, wallMs: 0)
                guard case .frame(let frame) = item, frame.kind == .video else { continue }
                count += 1
                // In the middle of a part.
                if count % pictures == 0 { maker.closeStalled(nowMs: 0) }
                guard let text = taker.shared.change({ $0.mediaPlaylist(PlaylistKind(isLowLatency: true, skips: false)) })?.text else {
                    continue
                }
                let violations = history.check(text)
                #expect(violations.isEmpty, "\(violations)\n\(text)")
            }
        }
        maker.finish(nowMs: 0)
        let playlist = try #require(history.latest)
        #expect(playlist.segments.count >= 6)
        #expect(taker.shared.read { $0.statistics.forcedCuts } == 0)
        taker.end(nowMs: 0)
        let all = try #require(taker.shared.change({ $0.mediaPlaylist(PlaylistKind(isLowLatency: false, skips: false)) }))
        let lines = all.text.split(separator: "\n").filter { $0.hasPrefix("#EXTINF:") }
        let seconds = lines.compactMap { Double($0.dropFirst("#EXTINF:".count).prefix { $0 != "," }) }
        #expect(abs(seconds.reduce(0, +) - 16) < 0.1, "no media is lost: \(seconds)")
    }

    /// Pictures at uneven times, as from phones and screens. A picture that would make a part longer than the part target begins the next one, and
    /// one that lasts longer by itself is listed with the target. Media has no holes.
    @Test(arguments: [true, false]) func unevenPictures(_ hasAudio: Bool) async throws {
        let clip = try await FLVTag.clip(audio: hasAudio)
        let taker = WindowTaker(try MediaWindow(epoch: "e", configuration: .init(windowMs: 60_000)), cacheLimit: (1 << 20, 10_000))
        let maker = FragmentPackager(.fmp4, for: taker)
        var history = PlaylistHistory()
        for round in 0..<4 as Range<Int64> {
            var lastMs: UInt32 = 0
            let uneven = clip.map { tag -> FLVTag in
                guard tag.kind == .video, !tag.isSequenceHeader, tag.timestamp > 40 else { return tag }
                // Half a second without a picture, and otherwise 18 ms more or less.
                let away: UInt32 = (1_500..<2_000).contains(tag.timestamp) ? 2_000 - tag.timestamp : 0
                var moved = tag
                moved.timestamp = max(lastMs + 1, tag.timestamp + away + (tag.timestamp &* 40_503) % 37 - 18)
                lastMs = moved.timestamp
                return moved
            }
            for item in try PieceList.frames(uneven.sorted { $0.timestamp < $1.timestamp }, by: round * 4_000, skippingHeaders: round > 0) {
                maker.receive([item], nowMs: 0, wallMs: 0)
                guard let text = taker.shared.change({ $0.mediaPlaylist(PlaylistKind(isLowLatency: true, skips: false)) })?.text else {
                    continue
                }
                let violations = history.check(text).filter { $0.rule != .partDurationFloor }
                #expect(violations.isEmpty, "\(violations)\n\(text)")
            }
        }
        #expect(taker.shared.read { $0.statistics.forcedCuts } == 0 && maker.problems.isEmpty, "\(maker.problems)")
    }

    /// A device returns with the same encoding: its media goes on, without a discontinuity. MPEG-TS has one, by its packets' counters.
    @Test(arguments: [ContainerFormat.fmp4, .mpegTS]) func aReturnIsNoDiscontinuity(_ format: ContainerFormat) async throws {
        let clip = try await FLVTag.clip()
        let container = format == .fmp4 ? MediaContainer.fragmentedMP4 : .mpegTS
        let taker = WindowTaker(
            try MediaWindow(epoch: "e", configuration: .init(container: container, windowMs: 60_000)), cacheLimit: (1 << 20, 10_000))
        let maker = FragmentPackager(format, for: taker)
        var history = PlaylistHistory()
        for round in 0..<3 as Range<Int64> {
            if round > 0 { maker.receive([.restarted], nowMs: 0, wallMs: 0) }
            for item in try PieceList.frames(clip, by: round * 9_000) {
                maker.receive([item], nowMs: 0, wallMs: 0)
                guard let text = taker.shared.change({ $0.mediaPlaylist(PlaylistKind(isLowLatency: true, skips: false)) })?.text else {
                    continue
                }
                let violations = history.check(text)
                #expect(violations.isEmpty, "\(violations)\n\(text)")
            }
        }
        maker.finish(nowMs: 0)
        taker.end(nowMs: 0)
        let text = taker.shared.change({ $0.mediaPlaylist(PlaylistKind(isLowLatency: true, skips: false)) })?.text ?? ""
        #expect(text.components(separatedBy: "#EXT-X-DISCONTINUITY\n").count == (format == .fmp4 ? 1 : 3))
        #expect(ListedParts.listedMs(text) > 11_500)
    }

    /// After a pause, players of sound alone begin behind it; those of pictures need the keyframe before it.
    @Test(arguments: [false, true]) func aPauseOfSoundIsNoBeginning(_ hasVideo: Bool) async throws {
        let clip = try await FLVTag.clip().filter { hasVideo || $0.kind == .audio }
        let taker = WindowTaker(try MediaWindow(epoch: "e", configuration: .init(windowMs: 60_000)), cacheLimit: (1 << 20, 10_000))
        let maker = FragmentPackager(.fmp4, for: taker)
        maker.receive(try PieceList.frames(clip), nowMs: 0, wallMs: 0)
        #expect(!taker.sinceKeyframe.isEmpty)
        maker.closeStalled(nowMs: 0)
        taker.stalled()
        #expect(taker.sinceKeyframe.isEmpty == !hasVideo)
    }

    /// The maker wakes for the frame that ends the piece, or one earlier. It never wakes later.
    @Test func patienceEndsWithThePiece() async throws {
        let taker = PieceList()
        let maker = FragmentPackager(.fmp4, for: taker)
        var wakes = 0
        var pending: [TapItem] = []
        var made = 0
        for item in try PieceList.frames(try await FLVTag.clip()) {
            pending.append(item)
            guard case .frame(let frame) = item, frame.tag.flags.contains(.coded) else { continue }
            let isNews = maker.patience?.isNews(frame.kind, frame.timestamp, isKeyframe: frame.isKeyframe) ?? true
            let direct = taker.pieces.count
            guard isNews else { continue }
            wakes += 1
            maker.receive(pending, nowMs: 0, wallMs: 0)
            pending = []
            // One wake makes at most one piece: nothing was due before.
            if direct > 0 { #expect(taker.pieces.count - direct <= 1) }
            made = taker.pieces.count
        }
        #expect(made >= 18 && wakes < 3 * made, "\(wakes) wakes for \(made) pieces")
    }
}
