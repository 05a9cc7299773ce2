import HLSCheck
import Testing

/// Checks the checker: good playlists with one defect in each.
@Suite struct CheckerTests {
    private static let good = """
        #EXTM3U
        #EXT-X-VERSION:6
        #EXT-X-TARGETDURATION:2
        #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=3.0,CAN-SKIP-UNTIL=12.0,HOLD-BACK=6.0
        #EXT-X-PART-INF:PART-TARGET=1.0
        #EXT-X-MEDIA-SEQUENCE:5
        #EXT-X-DISCONTINUITY-SEQUENCE:1
        #EXT-X-MAP:URI="i.mp4"
        #EXT-X-PROGRAM-DATE-TIME:2026-11-21T16:45:40.000Z
        #EXTINF:2.0,
        s5.m4s
        #EXT-X-DISCONTINUITY
        #EXT-X-MAP:URI="j.mp4"
        #EXT-X-PROGRAM-DATE-TIME:2026-11-21T16:45:42.000Z
        #EXTINF:2.0,
        s6.m4s
        #EXT-X-PROGRAM-DATE-TIME:2026-11-21T17:45:44+01:00
        #EXT-X-PART:DURATION=1.0,URI="p0.m4s",INDEPENDENT=YES
        #EXT-X-PART:DURATION=0.9,URI="p1.m4s"
        #EXT-X-PART:DURATION=0.1,URI="p2.m4s"
        #EXTINF:2.0,
        s7.m4s
        #EXT-X-PART:DURATION=1.0,URI="p3.m4s",INDEPENDENT=YES
        #EXT-X-PRELOAD-HINT:TYPE=PART,URI="p4.m4s"

        """

    @Test func goodPlaylists() {
        #expect(checkMediaPlaylist(Self.good) == [])
        #expect(checkMediaPlaylist(Self.good.replacing("\n", with: "\r\n")) == [])
        let playlist = readMediaPlaylist(Self.good).playlist
        #expect(playlist.segments.map(\.sequence) == [5, 6, 7] && playlist.open?.sequence == 8)
        #expect(playlist.segments.map(\.discontinuity) == [1, 2, 2])
        #expect(playlist.segments.map(\.map) == ["i.mp4", "j.mp4", "j.mp4"])
        #expect(playlist.segments.last?.dateMs == 1_795_279_544_000)
        #expect(checkMediaPlaylist("#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:9,\na.ts\n#EXT-X-ENDLIST\n") == [])
    }

    @Test(
        arguments: [
            ("#EXTM3U\n", "", .firstLine), ("#EXTM3U", "#EXTM3U ", .firstLine), ("VERSION:6", "VERSION:5", .version),
            ("VERSION:6", "VERSION:7", .versionHigherThanNeeded), ("VERSION:6", "VERSION:x", .tagSyntax), ("s5.m4s", "s\u{7}5.m4s", .text),
            ("s5.m4s", "s 5.m4s", .text), ("#EXT-X-TARGETDURATION:2\n", "", .targetDuration),
            ("#EXT-X-TARGETDURATION:2", "#EXT-X-TARGETDURATION:1", .segmentDuration),
            ("#EXTINF:2.0,\ns5", "#EXTINF:2.5,\ns5", .segmentDuration), ("#EXTINF:2.0,\ns6.m4s", "s6.m4s", .segmentWithoutDuration),
            ("#EXTINF:2.0,\ns5", "#EXTINF:2.0\ns5", .tagSyntax), ("#EXTINF:2.0,\ns5", "#EXTINF:-2.0,\ns5", .tagSyntax),
            ("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"p4.m4s\"", "#EXTINF:2.0,", .danglingTag),
            ("s5.m4s\n", "s5.m4s\n#EXT-X-MEDIA-SEQUENCE:5\n", .sequenceOrder),
            ("s5.m4s\n", "s5.m4s\n#EXT-X-MEDIA-SEQUENCE:5\n", .repeatedTag),
            ("#EXT-X-DISCONTINUITY-SEQUENCE:1\n", "#EXT-X-DISCONTINUITY\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n", .discontinuitySequenceOrder),
            ("#EXT-X-MAP:URI=\"i.mp4\"\n", "", .initializationMap),
            ("#EXT-X-MAP:URI=\"i.mp4\"", "#EXT-X-MAP:URL=\"i.mp4\"", .requiredAttribute),
            ("2026-11-21T16:45:42.000Z", "2026-13-21T16:45:42.000Z", .dateFormat), ("2026-11-21T16:45:42.000Z", "today", .dateFormat),
            ("2026-11-21T16:45:42.000Z", "2026-11-21T16:45:39.000Z", .dateAmbiguous),
            ("#EXT-X-PROGRAM-DATE-TIME:2026-11-21T16:45:42.000Z\n", "", .dateAtDiscontinuity),
            ("#EXT-X-MEDIA-SEQUENCE", "#EXT-X-PLAYLIST-TYPE:EVENT\n#EXT-X-MEDIA-SEQUENCE", .playlistType),
            ("s6.m4s", "s5.m4s", .ambiguousURI),
            ("PART-HOLD-BACK=3.0,", "", .partHoldBack), ("PART-HOLD-BACK=3.0", "PART-HOLD-BACK=1.9", .partHoldBack),
            ("PART-HOLD-BACK=3.0", "PART-HOLD-BACK=2.9", .partHoldBackAdvice),
            ("CAN-SKIP-UNTIL=12.0", "CAN-SKIP-UNTIL=11.9", .skipBoundary),
            (",HOLD-BACK=6.0", ",HOLD-BACK=5.9", .holdBack), ("CAN-BLOCK-RELOAD=YES", "CAN-BLOCK-RELOAD=NO", .serverControl),
            ("CAN-BLOCK-RELOAD=YES", "CAN-BLOCK=YES", .serverControl), ("CAN-BLOCK-RELOAD=YES", "CAN-BLOCK-RELOAD = YES", .attributeSyntax),
            ("CAN-BLOCK-RELOAD=YES,", "HOLD-BACK=6.0,", .attributeSyntax), ("#EXT-X-PART-INF:PART-TARGET=1.0\n", "", .partInformation),
            ("PART-TARGET=1.0", "PART-TARGET=2.5", .partInformation), ("DURATION=0.9", "DURATION=1.1", .partDuration),
            ("DURATION=0.9", "DURATION=0.84", .partDurationFloor), ("DURATION=0.9", "DURATION=0.96", .partsOfSegment),
            ("URI=\"p1.m4s\"", "URI=p1.m4s", .requiredAttribute), ("URI=\"p1.m4s\"", "URI=\"p1.m4s", .attributeSyntax),
            ("URI=\"p4.m4s\"", "URI=\"p3.m4s\"", .preloadHint), ("TYPE=PART", "TYPE=SEGMENT", .preloadHint),
            ("#EXT-X-PRELOAD-HINT", "#EXT-X-ENDLIST\n#EXT-X-PRELOAD-HINT", .preloadHintAfterEnd),
            ("#EXT-X-PRELOAD-HINT", "#EXT-X-ENDLIST\n#", .danglingTag),
            ("#EXT-X-MAP:URI=\"i", "#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n#EXT-X-MAP:URI=\"i", .version),
            ("#EXT-X-MAP:URI=\"i", "#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n#EXT-X-MAP:URI=\"i", .skippedTooMuch),
            ("#EXT-X-MAP:URI=\"i", "#EXT-X-SKIP:SKIPPED-SEGMENTS=0\n#EXT-X-MAP:URI=\"i", .skip),
            ("#EXTINF:2.0,\ns6", "#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n#EXTINF:2.0,\ns6", .skip),
            ("#EXT-X-VERSION", "#EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-VERSION", nil),
            (",INDEPENDENT=YES\n#EXT-X-PRE", "\n#EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-PRE", .independentSegment),
            ("#EXTINF:2.0,\ns7", "#EXT-X-DISCONTINUITY\n#EXTINF:2.0,\ns7", .tagSyntax), ("#EXT-X-MAP", "#EXT-X-MAPP", .knownTag),
            ("#EXT-X-VERSION", "#EXT-X-STREAM-INF:BANDWIDTH=1\n#EXT-X-VERSION", .mixedKinds),
            ("\ns6.m4s\n", "\ns6.m4s\n# a comment\n\n", nil),
        ] as [(String, String, Rule?)])
    func oneThingWrong(_ text: String, _ replacement: String, _ rule: Rule?) throws {
        let range = try #require(Self.good.firstRange(of: text))
        let changed = Self.good.replacingCharacters(in: range, with: replacement)
        let found = checkMediaPlaylist(changed)
        if let rule {
            #expect(found.contains { $0.rule == rule }, "\(found)")
        } else {
            #expect(found.isEmpty)
        }
    }

    @Test func partsThatOutliveTheirTime() {
        let segments = (8...10).map { "#EXTINF:2.0,\ns\($0).m4s\n" }.joined()
        let range = Self.good.firstRange(of: "#EXT-X-PART:DURATION=1.0,URI=\"p3")
        let late = range.map { Self.good[..<$0.lowerBound] + segments + Self.good[$0.lowerBound...] }
        #expect(checkMediaPlaylist(String(late ?? "")).map(\.rule) == [.partOutlived])
    }

    /// A replacement in `good` that makes the next playlist, and the rules which that breaks.
    @Test(
        arguments: [
            ("#EXT-X-PRE", "#EXT-X-PART:DURATION=1.0,URI=\"p4.m4s\"\n#EXT-X-PRE", [.preloadHint]),
            ("URI=\"p4.m4s\"", "URI=\"p4.m4s\"", []),
            ("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"p4.m4s\"", "#EXT-X-PART:DURATION=1.0,URI=\"p4.m4s\"", []),
            ("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"p4.m4s\"", "#EXT-X-PART:DURATION=1.0,URI=\"p5.m4s\"", [.hintBroken]),
            ("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"p4.m4s\"", "#EXTINF:1.0,\ns8.m4s", [.segmentNotHeld]),
            (
                "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"p4.m4s\"",
                "#EXTINF:1.0,\ns8.m4s\n#EXT-X-PART:DURATION=1.0,URI=\"p4.m4s\",INDEPENDENT=YES", []
            ),
            (
                "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"p4.m4s\"", "#EXTINF:1.0,\ns8.m4s\n#EXT-X-PART:DURATION=1.0,URI=\"p4.m4s\"",
                [.segmentNotIndependent]
            ),
            ("#EXT-X-MEDIA-SEQUENCE:5", "#EXT-X-START:TIME-OFFSET=0\n#EXT-X-MEDIA-SEQUENCE:5", [.headerChanged]),
            ("#EXT-X-TARGETDURATION:2", "#EXT-X-TARGETDURATION:3", [.skipBoundary, .holdBack, .targetDurationChanged]),
            ("PART-TARGET=1.0", "PART-TARGET=1.00001", [.partHoldBackAdvice, .headerChanged]),
            ("HOLD-BACK=6.0", "HOLD-BACK=7.0", [.headerChanged]),
            (
                "MEDIA-SEQUENCE:5", "MEDIA-SEQUENCE:4",
                [.sequenceDecreased, .sequenceDecreased, .segmentChanged, .segmentChanged, .partsRemovedOutOfOrder, .partChanged]
            ),
            (
                "DISCONTINUITY-SEQUENCE:1", "DISCONTINUITY-SEQUENCE:0",
                [.discontinuitySequenceDecreased, .segmentChanged, .segmentChanged, .segmentChanged]
            ),
            ("s6.m4s", "s6b.m4s", [.segmentChanged]), ("#EXTINF:2.0,\ns6", "#EXTINF:1.9,\ns6", [.segmentChanged]),
            ("p1.m4s", "p1b.m4s", [.partChanged]), ("p3.m4s\",INDEPENDENT=YES", "p3.m4s\"", [.partChanged]),
        ] as [(String, String, [Rule])])
    func later(_ text: String, _ replacement: String, _ rules: [Rule]) throws {
        var history = PlaylistHistory()
        #expect(history.check(Self.good) == [])
        let range = try #require(Self.good.firstRange(of: text))
        let found = history.check(Self.good.replacingCharacters(in: range, with: replacement))
        #expect(found.map(\.rule).sorted { $0.rawValue < $1.rawValue } == rules.sorted { $0.rawValue < $1.rawValue }, "\(found)")
    }

    /// Where players start that come now: a change of `good`, and whether it is right.
    @Test(
        arguments: [
            ("PART-HOLD-BACK=3.0", "PART-HOLD-BACK=3.0", true), ("p0.m4s\",INDEPENDENT=YES", "p0.m4s\"", false),
            ("#EXT-X-MEDIA-SEQUENCE", "#EXT-X-START:TIME-OFFSET=4.5,PRECISE=YES\n#EXT-X-MEDIA-SEQUENCE", true),
        ] as [(String, String, Bool)])
    func start(_ text: String, _ replacement: String, _ isRight: Bool) throws {
        var history = PlaylistHistory()
        let range = try #require(Self.good.firstRange(of: text))
        let found = history.check(Self.good.replacingCharacters(in: range, with: replacement))
        #expect(found.map(\.rule) == (isRight ? [] : [.startNotIndependent]), "\(found)")
        // EXT-X-START leads past a segment without a keyframe.
        var early = PlaylistHistory()
        let dependent = Self.good.replacing("p0.m4s\",INDEPENDENT=YES", with: "p0.m4s\"")
        #expect(early.check(dependent.replacing("#EXT-X-PART-INF", with: "#EXT-X-START:TIME-OFFSET=3.5\n#EXT-X-PART-INF")).isEmpty)
    }

    /// A part that lasts longer than the part target is listed with the target.
    @Test func cappedParts() {
        let long = Self.good.replacing("#EXTINF:2.0,\ns7", with: "#EXTINF:2.4,\ns7")
        #expect(checkMediaPlaylist(long).isEmpty)
        let wrong = long.replacing("DURATION=1.0,URI=\"p0", with: "DURATION=0.99,URI=\"p0")
        #expect(checkMediaPlaylist(wrong).map(\.rule) == [.partsOfSegment])
    }

    private static func plain(_ range: ClosedRange<Int>, discontinuity: Int = 0, end: Bool = false) -> String {
        "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=12.0\n"
            + "#EXT-X-MEDIA-SEQUENCE:\(range.lowerBound)\n#EXT-X-DISCONTINUITY-SEQUENCE:\(discontinuity)\n"
            + range.map { "#EXTINF:2.0,\n\($0).ts\n" }.joined() + (end ? "#EXT-X-ENDLIST\n" : "")
    }

    @Test func removal() {
        var history = PlaylistHistory()
        #expect(history.check(Self.plain(1...3)) == [])
        #expect(history.check(Self.plain(1...4)) == [])
        #expect(history.check(Self.plain(2...4)) == [])
        #expect(history.check(Self.plain(3...4)).map(\.rule) == [.removedTooMuch])
        #expect(history.check(Self.plain(3...9, end: true)) == [])
        #expect(history.check(Self.plain(3...9, end: true)) == [])
        #expect(history.check(Self.plain(4...9, end: true)).map(\.rule) == [.changedAfterEnd])
    }

    @Test func times() {
        var history = PlaylistHistory(cadenceSlackMs: 500)
        #expect(history.check(Self.plain(1...3), atMs: 0) == [])
        #expect(history.check(Self.plain(1...3), atMs: 3_000) == [])
        #expect(history.check(Self.plain(1...4), atMs: 3_500) == [])
        #expect(history.check(Self.plain(1...5), atMs: 7_001).map(\.rule) == [.segmentCadence])
    }

    @Test func deltas() {
        func delta(_ skipped: Int, _ range: ClosedRange<Int>) -> String {
            Self.plain(range).replacing("VERSION:3", with: "VERSION:9").replacing(
                "MEDIA-SEQUENCE:\(range.lowerBound)\n", with: "MEDIA-SEQUENCE:\(range.lowerBound - skipped)\n"
            ).replacing("SEQUENCE:0\n", with: "SEQUENCE:0\n#EXT-X-SKIP:SKIPPED-SEGMENTS=\(skipped)\n")
        }
        var history = PlaylistHistory()
        #expect(history.check(delta(4, 5...10)).map(\.rule) == [.deltaWithoutBase])
        #expect(history.check(Self.plain(1...9)) == [])
        #expect(history.check(delta(4, 5...10)) == [])
        #expect(history.latest?.content == readMediaPlaylist(Self.plain(1...10)).playlist.content)
        #expect(history.check(delta(4, 6...11)) == [])
        #expect(history.latest?.content == readMediaPlaylist(Self.plain(2...11)).playlist.content)
        #expect(history.check(delta(20, 30...40)).map(\.rule) == [.deltaWithoutBase])
        #expect(history.check(delta(4, 7...9)).contains { $0.rule == .skippedTooMuch })
    }

    @Test(
        arguments: [
            ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000,AVERAGE-BANDWIDTH=900,CODECS=\"a\"\nx\n", nil),
            ("#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS=\"a\"\nx\n", .firstLine), ("#EXTM3U\n", .variant), ("#EXTM3U\nx\n", .variant),
            ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS=\"a\"\n#EXT-X-INDEPENDENT-SEGMENTS\nx\n", .variant),
            ("#EXTM3U\n#EXT-X-STREAM-INF:CODECS=\"a\"\nx\n", .bandwidth),
            ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=0,CODECS=\"a\"\nx\n", .bandwidth),
            ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=5,AVERAGE-BANDWIDTH=6,CODECS=\"a\"\nx\n", .bandwidth),
            ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=5\nx\n", .requiredAttribute),
            ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=5,CODECS=\"a\",RESOLUTION=1280\nx\n", .attributeSyntax),
            ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=5,CODECS=\"a\"\nx\n#EXT-X-TARGETDURATION:3\n", .mixedKinds),
            ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=5 ,CODECS=\"a\"\nx\n", .attributeSyntax),
        ] as [(String, Rule?)])
    func multivariant(_ text: String, _ rule: Rule?) {
        let found = checkMultivariantPlaylist(text)
        #expect(rule.map { rule in found.contains { $0.rule == rule } } ?? found.isEmpty, "\(found)")
    }

    /// The checker reads any text to its end.
    @Test func garbage() {
        var random = Seeded(seed: 3)
        let pieces =
            Self.good.split(separator: "\n").map(String.init) + [
                "\u{0}", ",", "=\"", "#EXTINF:", "#EXT-X-PART:", "99999999999999999999", "é", "\r",
            ]
        for _ in 0..<2_000 {
            let text = (0..<Int.random(in: 0...20, using: &random)).map { _ in
                var piece = pieces.randomElement(using: &random) ?? ""
                if random.chance(0.3) { piece = String(piece.dropLast(Int.random(in: 0...5, using: &random))) }
                return piece + (random.chance(0.8) ? "\n" : "")
            }.joined()
            var history = PlaylistHistory()
            _ = history.check(text)
            _ = history.check(text)
            _ = checkMultivariantPlaylist(text)
        }
    }
}

extension String {
    /// This text with `range` replaced.
    fileprivate func replacingCharacters(in range: Range<String.Index>, with replacement: String) -> String {
        String(self[..<range.lowerBound]) + replacement + String(self[range.upperBound...])
    }
}
