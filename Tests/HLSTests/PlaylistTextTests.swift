@testable import HLS
import HLSCheck
import NIOCore
import Testing

@Suite struct PlaylistTextTests {
    @Test func lowLatency() throws {
        var window = try MediaWindow(epoch: "e1")
        try window.begin(format(), nowMs: 0)
        #expect(!window.isReady && window.text() == "")
        try window.addGroup(dateMs: 1_795_279_542_123)
        #expect(!window.isReady)
        try window.add(key: true)
        try window.add()
        let head = """
            #EXTM3U
            #EXT-X-VERSION:6
            #EXT-X-TARGETDURATION:2
            #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=0.648,CAN-SKIP-UNTIL=12.0,HOLD-BACK=6.0
            #EXT-X-PART-INF:PART-TARGET=0.216
            #EXT-X-MEDIA-SEQUENCE:0
            #EXT-X-DISCONTINUITY-SEQUENCE:0
            #EXT-X-MAP:URI="e1-i0.mp4"
            #EXT-X-PROGRAM-DATE-TIME:2026-11-21T16:45:42.123Z
            #EXT-X-PART:DURATION=0.200000,URI="e1-p0.m4s",INDEPENDENT=YES

            """
        let parts = (1...9).map { "#EXT-X-PART:DURATION=0.200000,URI=\"e1-p\($0).m4s\"\n" }.joined()
        let tail = """
            #EXTINF:2.000000,
            e1-s0.m4s
            #EXT-X-PROGRAM-DATE-TIME:2026-11-21T16:45:44.123Z
            #EXT-X-PART:DURATION=0.200000,URI="e1-p10.m4s",INDEPENDENT=YES
            #EXT-X-PART:DURATION=0.200000,URI="e1-p11.m4s"
            #EXT-X-PRELOAD-HINT:TYPE=PART,URI="e1-p12.m4s"

            """
        #expect(window.text() == head + parts + tail)
        #expect(checkMediaPlaylist(window.text()).isEmpty)
    }

    @Test func plain() throws {
        var window = try MediaWindow(epoch: "e1", firstSequence: 7)
        try window.begin(format(), nowMs: 0)
        for _ in 0..<2 { try window.addGroup() }
        try window.add(key: true)
        #expect(
            window.text(lowLatency: false) == """
                #EXTM3U
                #EXT-X-VERSION:6
                #EXT-X-TARGETDURATION:2
                #EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=12.0,HOLD-BACK=6.0
                #EXT-X-MEDIA-SEQUENCE:7
                #EXT-X-DISCONTINUITY-SEQUENCE:7
                #EXT-X-MAP:URI="e1-i0.mp4"
                #EXTINF:2.000000,
                e1-s7.m4s
                #EXTINF:2.000000,
                e1-s8.m4s

                """)
    }

    @Test func transportStreamAfterAReturn() throws {
        var window = try MediaWindow(epoch: "e", configuration: .init(container: .mpegTS, isLowLatency: false))
        let format = MediaFormat(codecs: "avc1.64001f", hasVideo: true)
        try window.begin(format, nowMs: 0)
        try window.addGroup()
        window.interrupt(nowMs: 2_000)
        try window.begin(format, nowMs: 9_000)
        try window.addGroup()
        window.end(nowMs: 11_000)
        #expect(
            window.text() == """
                #EXTM3U
                #EXT-X-VERSION:3
                #EXT-X-TARGETDURATION:2
                #EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=12.0,HOLD-BACK=6.0
                #EXT-X-MEDIA-SEQUENCE:0
                #EXT-X-DISCONTINUITY-SEQUENCE:0
                #EXTINF:2.000000,
                e-s0.ts
                #EXT-X-DISCONTINUITY
                #EXTINF:2.000000,
                e-s1.ts
                #EXT-X-ENDLIST

                """)
    }

    @Test func codecChange() throws {
        var window = try MediaWindow(epoch: "e", configuration: .init(windowMs: 6_000))
        try window.begin(format("one"), nowMs: 0)
        try window.addGroup()
        try window.addGroup(parts: 3)
        try window.begin(format("two"), nowMs: 0)
        try window.addGroup()
        // The same format again is no change.
        try window.begin(format("two"), nowMs: 0)
        try window.addGroup()
        try window.add(key: true)
        #expect(
            window.text(lowLatency: false).split(separator: "\n").dropFirst(6) == [
                "#EXT-X-MAP:URI=\"e-i0.mp4\"", "#EXTINF:2.000000,", "e-s0.m4s", "#EXTINF:0.600000,", "e-s1.m4s", "#EXT-X-DISCONTINUITY",
                "#EXT-X-MAP:URI=\"e-i1.mp4\"", "#EXTINF:2.000000,", "e-s2.m4s", "#EXTINF:2.000000,", "e-s3.m4s",
            ])
        // The discontinuity leaves with its segment, and is counted.
        for _ in 0..<3 { try window.addGroup() }
        try window.add(key: true)
        #expect(window.text().contains("#EXT-X-MEDIA-SEQUENCE:4\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n#EXT-X-MAP:URI=\"e-i1.mp4\"\n"))
        #expect(!window.text().contains("#EXT-X-DISCONTINUITY\n"))
    }

    @Test func deltaUpdate() throws {
        var window = try MediaWindow(epoch: "e", configuration: .init(windowMs: 40_000))
        try window.begin(format(), nowMs: 0)
        for _ in 0..<7 { try window.addGroup() }
        try window.add(key: true)
        // The first segment ends 12.2 s from the end and is skipped.
        let text = window.text(skips: true)
        #expect(text.contains("#EXT-X-VERSION:9\n"))
        #expect(text.contains("#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-DISCONTINUITY-SEQUENCE:0\n#EXT-X-SKIP:SKIPPED-SEGMENTS=1\n#EXTINF"))
        #expect(checkMediaPlaylist(text).isEmpty)
        // Without parts it ends 12.0 s from the end: not beyond the Skip Boundary.
        #expect(!window.text(lowLatency: false, skips: true).contains("EXT-X-SKIP"))
        let whole = readMediaPlaylist(window.text()).playlist
        #expect(readMediaPlaylist(text).playlist.applied(to: whole)?.content == whole.content)
        window.end(nowMs: 0)
        #expect(!window.text(skips: true).contains("EXT-X-SKIP"))
    }

    @Test func multivariant() throws {
        var window = try MediaWindow(epoch: "e")
        try window.begin(format(), nowMs: 0)
        for index in 0..<10 { try window.add(String(repeating: "x", count: 12_500), key: index == 0) }
        #expect(window.multivariantPlaylist(mediaURI: "media.m3u8") == nil)
        for index in 0..<10 { try window.add(String(repeating: "x", count: 25_000), key: index == 0) }
        try window.add(key: true)
        let text = window.multivariantPlaylist(mediaURI: "media.m3u8?token=a&b=c")
        #expect(
            text == """
                #EXTM3U
                #EXT-X-INDEPENDENT-SEGMENTS
                #EXT-X-STREAM-INF:BANDWIDTH=1000000,AVERAGE-BANDWIDTH=750000,CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=1280x720,FRAME-RATE=30.000
                media.m3u8?token=a&b=c

                """)
        #expect(checkMultivariantPlaylist(text ?? "").isEmpty)
        #expect(window.multivariantPlaylist(mediaURI: "a\nb") == nil && window.multivariantPlaylist(mediaURI: "") == nil)
    }

    @Test func soundOnly() throws {
        var window = try MediaWindow(epoch: "e")
        try window.begin(format(hasVideo: false), nowMs: 0)
        // Nine AAC frames a part.
        for _ in 0..<24 { try window.add(ms: 192, key: true) }
        #expect(window.targetDuration == 2 && window.statistics == MediaWindow.Statistics())
        let playlist = readMediaPlaylist(window.text()).playlist
        #expect(playlist.segments.map(\.durationMicros) == [1_920_000, 1_920_000])
        #expect(checkMediaPlaylist(window.text()).isEmpty)
        let text = window.multivariantPlaylist(mediaURI: "m") ?? ""
        #expect(text.contains("CODECS=\"mp4a.40.2\"\nm\n") && checkMultivariantPlaylist(text).isEmpty)
    }

    /// Requests for the same state share one buffer. A query costs a copy but changes only the URIs.
    @Test func sharing() throws {
        var window = try MediaWindow(epoch: "e")
        try window.begin(format(), nowMs: 0)
        for _ in 0..<3 { try window.addGroup() }
        func playlist(lowLatency: Bool) throws -> PlaylistText {
            let text = window.mediaPlaylist(PlaylistKind(isLowLatency: lowLatency))
            return try #require(text)
        }
        func address(_ text: PlaylistText) -> UnsafeRawPointer? { text.bytes().withUnsafeReadableBytes { $0.baseAddress } }
        let first = try playlist(lowLatency: true)
        let second = try playlist(lowLatency: true)
        #expect(address(first) == address(second))
        let plain = try playlist(lowLatency: false)
        try window.add()
        let later = try playlist(lowLatency: true)
        #expect(address(later) != address(first))
        let laterPlain = try playlist(lowLatency: false)
        #expect(address(laterPlain) == address(plain), "a part does not change it")

        let asked = String(buffer: first.bytes(query: "token=a/b\"\n c&d=é"))
        #expect(readMediaPlaylist(asked).playlist.uris == readMediaPlaylist(first.text).playlist.uris.map { $0 + "?token=a/bc&d=" })
        #expect(asked.contains("URI=\"e-p30.m4s?token=a/bc&d=\"\n"), "the hint too")
        #expect(String(buffer: first.bytes()) == first.text)
        #expect(asked.replacing("?token=a/bc&d=", with: "") == first.text)
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (951_782_399_999, "2000-02-28T23:59:59.999Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"), (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"), (253_402_300_799_000, "9999-12-31T23:59:59.000Z"),
            (.max, "9999-12-31T23:59:59.000Z"), (.min, "1970-01-01T00:00:00.000Z"),
        ] as [(Int64, String)])
    func dates(_ millis: Int64, _ expected: String) throws {
        var window = try MediaWindow(epoch: "e")
        try window.begin(format(), nowMs: 0)
        try window.add(key: true, dateMs: millis)
        window.end(nowMs: 0)
        #expect(window.text().contains("#EXT-X-PROGRAM-DATE-TIME:\(expected)\n"))
        #expect(checkMediaPlaylist(window.text()).isEmpty)
    }
}
