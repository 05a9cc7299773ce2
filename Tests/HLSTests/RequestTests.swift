import HLS
import HLSCheck
import NIOCore
import Testing

@Suite struct RequestTests {
    @Test(
        arguments: [
            (nil, nil, nil), ("0", nil, nil), ("12", "3", "YES"), ("12", nil, "v2"), ("007", "0", "no"), ("18446744073709551615", nil, nil),
        ] as [(String?, String?, String?)])
    func good(_ msn: String?, _ part: String?, _ skip: String?) throws {
        let request = try PlaylistRequest.parse(msn: msn, part: part, skip: skip)
        #expect(request.mediaSequence == msn.map { Int(clamping: UInt64($0) ?? 0) })
        #expect(request.part == part.flatMap { Int($0) })
        #expect(request.skips == (skip == "YES" || skip == "v2"))
        #expect(request.isBlocking == (msn != nil))
    }

    @Test(
        arguments: [
            (nil, "0"), ("", nil), ("-1", nil), ("+1", nil), ("1.0", nil), ("x", nil), (" 1", nil), ("1", ""), ("1", "-1"), ("1", "1 "),
            ("18446744073709551616", nil), ("000000000000000000001", nil), ("１", nil), ("1\u{0}", nil), ("1", "0x1"),
        ] as [(String?, String?)])
    func bad(_ msn: String?, _ part: String?) {
        #expect(throws: HLSError.self) { try PlaylistRequest.parse(msn: msn, part: part, skip: nil) }
    }

    /// Segments 10 and 11 have ended with ten parts each, 12 is open with three.
    private func window(lowLatency: Bool = true) throws -> MediaWindow {
        var window = try MediaWindow(epoch: "e", firstSequence: 10, configuration: .init(isLowLatency: lowLatency))
        try window.begin(format(), nowMs: 0)
        for _ in 0..<2 { try window.addGroup() }
        try window.addGroup(parts: 3)
        return window
    }

    enum Expected: Equatable {
        case now, bad
        case wait(Int, Int?)
    }

    @Test(
        arguments: [
            (nil, nil, .now), ("0", nil, .now), ("3", "99", .now), ("11", nil, .now), ("12", nil, .wait(12, nil)),
            ("13", nil, .wait(13, nil)),
            ("14", nil, .bad), ("99", nil, .bad), ("18446744073709551615", nil, .bad),
            ("18446744073709551615", "18446744073709551615", .bad),
            ("11", "9", .now), ("11", "10", .now), ("11", "5000", .now), ("10", "18446744073709551615", .now), ("12", "0", .now),
            ("12", "2", .now), ("12", "3", .wait(12, 3)), ("12", "15", .wait(12, 15)), ("12", "16", .bad),
            ("12", "18446744073709551615", .bad),
            ("13", "0", .wait(13, 0)), ("13", "12", .wait(13, 12)), ("13", "13", .bad), ("14", "0", .bad),
        ] as [(String?, String?, Expected)])
    func answers(_ msn: String?, _ part: String?, _ expected: Expected) throws {
        let window = try self.window()
        switch window.answer(try PlaylistRequest.parse(msn: msn, part: part, skip: nil)) {
        case .now: #expect(expected == .now)
        case .badRequest: #expect(expected == .bad)
        case .wait(let point): #expect(expected == .wait(point.sequence, point.part))
        case .unavailable: Issue.record("unavailable")
        }
    }

    /// A part beyond a segment's end means the start of the next. The segment may end before or after the request.
    @Test func rollover() throws {
        var window = try self.window()
        let request = try PlaylistRequest.parse(msn: "12", part: "12", skip: nil)
        guard case .wait(let point) = window.answer(request) else { return #expect(Bool(false)) }
        for _ in 3..<10 {
            #expect(!window.isSatisfied(point))
            try window.add()
        }
        // Segment 12 ends with ten parts, so its part 12 means part 0 of segment 13.
        #expect(!window.isSatisfied(point))
        try window.add(key: true)
        #expect(window.isSatisfied(point) && window.answer(request) == .now)

        var interrupted = try self.window()
        interrupted.interrupt(nowMs: 0)
        #expect(!interrupted.isSatisfied(point))
        let wholeSegment = try PlaylistRequest.parse(msn: "12", part: nil, skip: nil)
        // It is listed with the first part of the next.
        guard case .wait(let whole) = interrupted.answer(wholeSegment) else { return #expect(Bool(false)) }
        try interrupted.begin(format(), nowMs: 0)
        #expect(!interrupted.isSatisfied(point))
        try interrupted.add(key: true)
        #expect(interrupted.isSatisfied(point) && interrupted.isSatisfied(whole) && interrupted.answer(wholeSegment) == .now)
    }

    @Test func endReleasesEveryone() throws {
        var window = try self.window()
        let request = try PlaylistRequest.parse(msn: "13", part: "4", skip: "YES")
        guard case .wait(let point) = window.answer(request) else { return #expect(Bool(false)) }
        window.end(nowMs: 0)
        #expect(window.isSatisfied(point) && window.answer(request) == .now)
        #expect(window.answer(try PlaylistRequest.parse(msn: "99", part: nil, skip: nil)) == .now, "ignored with EXT-X-ENDLIST")
    }

    @Test func directivesThatAreNotOffered() throws {
        let window = try self.window(lowLatency: false)
        #expect(window.answer(try PlaylistRequest.parse(msn: "99", part: "1", skip: nil)) == .now)
    }

    @Test func beforeTheFirstPlaylist() throws {
        var window = try MediaWindow(epoch: "e", firstSequence: 5)
        let plain = try PlaylistRequest.parse(msn: nil, part: nil, skip: nil)
        let blocking = try PlaylistRequest.parse(msn: "900", part: "7", skip: nil)
        guard case .wait(let point) = window.answer(plain) else { return #expect(Bool(false)) }
        #expect(window.answer(blocking) == .wait(point))
        try window.begin(format(), nowMs: 0)
        try window.addGroup()
        #expect(!window.isSatisfied(point))
        try window.add(key: true)
        #expect(window.isSatisfied(point) && window.answer(plain) == .now)

        var empty = try MediaWindow(epoch: "e")
        empty.end(nowMs: 0)
        #expect(empty.answer(plain) == .unavailable && !empty.isReady)
    }

    /// Advice for caches between a low-latency server and its clients (RFC 8216bis, Appendix B).
    @Test func caching() throws {
        let window = try self.window()
        let plain = try PlaylistRequest.parse(msn: nil, part: nil, skip: nil)
        let blocking = try PlaylistRequest.parse(msn: "12", part: nil, skip: nil)
        #expect(window.cacheAdvice(for: blocking).directives == "max-age=12")
        #expect(window.cacheAdvice(for: blocking, succeeded: false).maxAgeSeconds == 8)
        #expect(window.cacheAdvice(for: plain).maxAgeSeconds == 1)
        #expect(window.cacheAdvice(for: plain, succeeded: false).maxAgeSeconds == 2)
        #expect(window.longestWaitMs == 6_000)
    }
}
