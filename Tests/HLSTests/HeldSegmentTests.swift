import HLS
import HLSCheck
import NIOCore
import Testing

/// A segment is listed together with the first part of the next, which tells what lies between them.
@Suite struct HeldSegmentTests {
    private func window(lowLatency: Bool = true) throws -> MediaWindow {
        var window = try MediaWindow(epoch: "e", configuration: .init(isLowLatency: lowLatency, windowMs: 60_000))
        try window.begin(format(), nowMs: 0)
        for _ in 0..<2 { try window.addGroup() }
        return window
    }

    private func segments(_ window: MediaWindow) -> [ParsedPlaylist.Segment] {
        var window = window
        return readMediaPlaylist(window.text()).playlist.segments
    }

    @Test func waitsForTheNextPart() throws {
        var window = try self.window()
        window.completeSegment(nowMs: 0)
        #expect(window.holdsSegment && window.lastEnded == 0 && self.segments(window).count == 1)
        #expect(readMediaPlaylist(window.text()).playlist.open?.parts.count == 10)
        #expect(window.resource(named: "e-s1.m4s") == .unknown)
        #expect(window.segmentDueMicros == 1_800_000)
        #expect(window.startsSegment(pendingMicros: 0) && !window.startsSegment(pendingMicros: 400_000))
        try window.add()
        #expect(!window.holdsSegment && window.lastEnded == 1 && self.segments(window).count == 2, "also without a keyframe")
        window.completeSegment(nowMs: 0)
        window.end(nowMs: 0)
        #expect(self.segments(window).count == 3 && window.text().hasSuffix("#EXT-X-ENDLIST\n"))
    }

    /// Another size, a return, and a return with other tracks: the discontinuity comes with the segment before it.
    @Test(arguments: [("init", true), ("other", true), ("other", false)])
    func discontinuities(_ initialization: String, _ returns: Bool) throws {
        var window = try self.window()
        var history = PlaylistHistory()
        #expect(history.check(window.text()).isEmpty)
        if returns {
            window.interrupt(nowMs: 0)
            #expect(history.check(window.text()).isEmpty)
        }
        try window.begin(format(initialization), nowMs: 0)
        #expect(history.check(window.text()).isEmpty)
        #expect(self.segments(window).count == 1)
        try window.add(key: true)
        #expect(history.check(window.text()).isEmpty)
        #expect(self.segments(window).count == 2)
        #expect(readMediaPlaylist(window.text()).playlist.open?.hasDiscontinuity == true)
        let map = initialization == "init" ? "e-i0.mp4" : "e-i1.mp4"
        #expect(readMediaPlaylist(window.text()).playlist.open?.map == map)
    }

    /// A device returns with the same encoding, and its times are closed up: there is no discontinuity, and the hinted part comes.
    @Test func aReturnThatGoesOn() throws {
        var window = try self.window()
        var history = PlaylistHistory()
        #expect(history.check(window.text()).isEmpty)
        window.interrupt(nowMs: 0)
        #expect(history.check(window.text()).isEmpty)
        #expect(window.resource(named: "e-p20.m4s") == .gone, "nobody waits for it meanwhile")
        try window.begin(format(), goesOn: true, nowMs: 9_000)
        #expect(window.resource(named: "e-p20.m4s") == .pending)
        try window.addGroup(nowMs: 9_200)
        #expect(history.check(window.text()).isEmpty)
        try window.add(key: true)
        #expect(history.check(window.text()).isEmpty)
        #expect(self.segments(window).map(\.durationMicros) == [2_000_000, 2_000_000, 2_000_000])
        #expect(!window.text().contains("#EXT-X-DISCONTINUITY\n") && window.resource(named: "e-p20.m4s").text != nil)
        // With other parameters it is one all the same.
        window.interrupt(nowMs: 0)
        try window.begin(format("other"), goesOn: true, nowMs: 0)
        try window.add(key: true)
        #expect(window.text().contains("#EXT-X-DISCONTINUITY\n"))
        #expect(history.check(window.text()).isEmpty)
    }

    /// Without parts there is nothing to wait for: players know of no segment that has begun.
    @Test func withoutLowLatency() throws {
        var window = try self.window(lowLatency: false)
        window.completeSegment(nowMs: 0)
        #expect(!window.holdsSegment && window.lastEnded == 1 && self.segments(window).count == 2)
    }
}
