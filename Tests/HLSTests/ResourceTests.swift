import HLS
import HLSCheck
import NIOCore
import Testing

@Suite struct ResourceTests {
    @Test func names() throws {
        var window = try MediaWindow(epoch: "ep", firstSequence: 3)
        try window.begin(format("first"), nowMs: 0)
        #expect(window.resource(named: "ep-p0.m4s") == .pending)
        for index in 0..<10 { try window.add("a\(index)", key: index == 0) }
        for index in 0..<3 { try window.add("b\(index)", key: index == 0) }
        #expect(window.resource(named: "ep-i0.mp4").text == "first")
        #expect(window.resource(named: "ep-s3.m4s").text == "a0a1a2a3a4a5a6a7a8a9")
        #expect(window.resource(named: "ep-p0.m4s").text == "a0" && window.resource(named: "ep-p12.m4s").text == "b2")
        #expect(window.resource(named: "ep-p13.m4s") == .pending)
        for name in [
            "", "ep", "ep-", "ep-s", "ep-s.m4s", "ep-s4.m4s", "ep-s2.m4s", "ep-s03.m4s", "ep-s3.ts", "ep-s3.m4s ", "ep-s3.m4s?x",
            "ep-p14.m4s",
            "ep-p-1.m4s", "ep-p99999999999999999999.m4s", "ep-i1.mp4", "ep-i0.m4s", "ep-x0.m4s", "ex-s3.m4s", "s3.m4s", "../ep-s3.m4s",
            "ep-s3\u{301}.m4s", "ep-p٣.m4s", String(repeating: "ep-s3.m4s", count: 1_000),
        ] {
            #expect(window.resource(named: name) == .unknown, "\(name)")
        }
        guard case .found(let segment) = window.resource(named: "ep-s3.m4s") else { return #expect(Bool(false)) }
        #expect(segment.pieces.count == 10 && segment.byteCount == 20 && segment.contentType == "video/mp4")
        #expect(segment.cache.directives == "max-age=24, immutable")
    }

    /// The next part has the hinted name, whichever segment it is in, except after an interruption.
    @Test func hints() throws {
        var window = try MediaWindow(epoch: "e")
        try window.begin(format(), nowMs: 0)
        try window.addGroup()
        #expect(window.resource(named: "e-p10.m4s") == .pending)
        try window.add("next", key: true)
        #expect(window.resource(named: "e-p10.m4s").text == "next")
        window.interrupt(nowMs: 0)
        #expect(window.resource(named: "e-p11.m4s") == .gone)
        #expect(!window.text().contains("PRELOAD-HINT"))
        try window.begin(format(), nowMs: 0)
        #expect(window.resource(named: "e-p11.m4s") == .gone && window.resource(named: "e-p12.m4s") == .pending)
        try window.add("again", key: true)
        #expect(window.resource(named: "e-p12.m4s").text == "again")
        window.end(nowMs: 0)
        #expect(window.resource(named: "e-p13.m4s") == .unknown)
    }

    /// Segments leave the playlist by time, and memory some time later.
    @Test func eviction() throws {
        var window = try MediaWindow(epoch: "e", configuration: .init(windowMs: 8_000, lingerMs: 5_000))
        try window.begin(format(), nowMs: 0)
        var nowMs: Int64 = 0
        for _ in 0..<60 {
            nowMs += 200
            try window.add(key: nowMs % 2_000 == 200, nowMs: nowMs)
        }
        // Five segments ended at 10 s, and the window lists eight seconds.
        #expect(readMediaPlaylist(window.text()).playlist.segments.map(\.sequence) == [1, 2, 3, 4])
        #expect(window.listedCount == 4)
        #expect(window.resource(named: "e-s0.m4s").text != nil)
        // It was listed at 2.2 s, lasts 2 s in a playlist of at most 10.2 s, and left at 10.2 s: kept for 6 s more.
        window.expire(nowMs: 16_199)
        #expect(window.resource(named: "e-s0.m4s").text != nil && window.resource(named: "e-p0.m4s").text != nil)
        window.expire(nowMs: 16_200)
        #expect(window.resource(named: "e-s0.m4s") == .gone && window.resource(named: "e-p0.m4s") == .gone)
        #expect(window.resource(named: "e-i0.mp4").text == "init")
        window.expire(nowMs: .max)
        #expect(window.listedCount == 4 && window.resource(named: "e-s1.m4s").text != nil)
    }

    /// A segment stays available for as long as the longest playlist that listed it, with the parts of the segment that was still open.
    @Test func theOpenSegmentIsPartOfThePlaylist() throws {
        var window = try MediaWindow(epoch: "e", configuration: .init(windowMs: 8_000, lingerMs: 0))
        try window.begin(format(), nowMs: 0)
        // Twelve seconds at once: four segments of 2 s are listed, and the open one has up to 2 s.
        for index in 0..<60 { try window.add(key: index % 10 == 0, nowMs: 0) }
        #expect(readMediaPlaylist(window.text()).playlist.segments.map(\.sequence) == [1, 2, 3, 4])
        // Its own 2 s and the playlist's 10 s.
        window.expire(nowMs: 11_999)
        #expect(window.resource(named: "e-s0.m4s").text != nil)
        window.expire(nowMs: 12_200)
        #expect(window.resource(named: "e-s0.m4s") == .gone)
    }

    /// The time for which caches may keep immutable resources (RFC 8216bis §6.2.2).
    @Test func howLongCachesKeep() throws {
        func ages(_ windowMs: Int) throws -> [Int?] {
            var window = try MediaWindow(epoch: "e", configuration: .init(windowMs: windowMs, lingerMs: 4_000))
            try window.begin(format(), nowMs: 0)
            for index in 0..<20 { try window.add(key: index % 10 == 0, nowMs: Int64(index) * 200) }
            return try ["e-i0.mp4", "e-s0.m4s", "e-p0.m4s"].map { name in
                guard case .found(let resource) = window.resource(named: name) else { throw HLSError.badEpoch }
                #expect(resource.cache.isImmutable)
                return resource.cache.maxAgeSeconds
            }
        }
        #expect(try ages(10_000) == [3_600, 16, 12])
        #expect(try ages(7_200_000) == [7_200, 7_206, 12])
    }

    /// Memory never exceeds `maxBytes`, even if less than three target durations then stay available.
    @Test func memory() throws {
        var window = try MediaWindow(epoch: "e", configuration: .init(windowMs: 3_600_000, maxBytes: 1 << 20))
        try window.begin(format(), nowMs: 0)
        let large = String(repeating: "x", count: 100_000)
        for index in 0..<200 {
            try window.add(large, key: index % 10 == 0, nowMs: Int64(index) * 200)
            #expect(window.heldBytes <= 1 << 20)
        }
        #expect(window.statistics.starvedRemovals > 10)
        #expect(checkMediaPlaylist(window.text()).isEmpty)
        #expect(throws: HLSError.tooLarge(field: "part", found: 300_000, max: 1 << 18)) {
            try window.add(String(repeating: "x", count: 300_000))
        }
        try window.add("small", key: true)
        let codecs = MediaFormat(initialization: ByteBuffer(string: "i"), codecs: "a\"b", hasVideo: true)
        #expect(throws: HLSError.badCodecs) { try window.begin(codecs, nowMs: 0) }
        #expect(throws: HLSError.missingInitialization) { try window.begin(MediaFormat(codecs: "a", hasVideo: true), nowMs: 0) }
        window.end(nowMs: 0)
        #expect(throws: HLSError.ended) { try window.add("more") }
    }

    /// Format changes alone do not fill the memory either.
    @Test func manyFormats() throws {
        var window = try MediaWindow(epoch: "e", configuration: .init(windowMs: 12_000, maxBytes: 1 << 20))
        for index in 0..<1_000 {
            try window.begin(format("format \(index)" + String(repeating: "x", count: 20_000)), nowMs: Int64(index))
            if index % 3 == 0 { try window.add(key: true, nowMs: Int64(index)) }
            #expect(window.heldBytes <= (1 << 20) + 100_000)
        }
        #expect(window.resource(named: "e-i999.mp4").text?.hasPrefix("format 999") == true)
        #expect(checkMediaPlaylist(window.text()).isEmpty)
    }

    /// A small slice does not keep its large buffer alive.
    @Test func slices() throws {
        var window = try MediaWindow(epoch: "e")
        try window.begin(format(), nowMs: 0)
        let large = ByteBuffer(repeating: 0x61, count: 4 << 20)
        for index in 0..<20 {
            let slice = try #require(large.getSlice(at: index * 1_000, length: 500))
            try window.append(
                MediaPart(bytes: slice, durationMicros: 200_000, isIndependent: true, beginsWithKeyframe: true), nowMs: 0)
        }
        #expect(window.heldBytes < 50_000)
        #expect(window.resource(named: "e-p0.m4s").text == String(repeating: "a", count: 500))
    }

    @Test(arguments: ["", "a-b", "a/b", "ä", String(repeating: "a", count: 33), "a\"", "."])
    func badEpochs(_ epoch: String) {
        #expect(throws: HLSError.badEpoch) { try MediaWindow(epoch: epoch) }
    }

    @Test func misuse() throws {
        #expect(throws: HLSError.badSequence(-1)) { try MediaWindow(epoch: "e", firstSequence: -1) }
        #expect(throws: HLSError.badSequence(.max)) { try MediaWindow(epoch: "e", firstSequence: .max) }
        var window = try MediaWindow(epoch: "e")
        #expect(throws: HLSError.notBegun) { try window.add(key: true) }
        window.interrupt(nowMs: 0)
        try window.begin(format(), nowMs: 0)
        #expect(throws: HLSError.emptyPart) { try window.add("", key: true) }
        window.interrupt(nowMs: 0)
        window.interrupt(nowMs: 0)
        #expect(throws: HLSError.notBegun) { try window.add(key: true) }
        #expect(!window.isReady)
        window.end(nowMs: 0)
        window.end(nowMs: 0)
        window.interrupt(nowMs: 0)
        #expect(throws: HLSError.ended) { try window.begin(format(), nowMs: 0) }
    }
}
