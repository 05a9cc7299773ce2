import HLS
import HLSCheck
import NIOCore
import Testing

/// The first playlist for a player that joins between two keyframes.
@Suite struct EarlyStartTests {
    private func window(keyframeIntervalMs: Int?, hasVideo: Bool = true) throws -> MediaWindow {
        var window = try MediaWindow(epoch: "e", configuration: .init(windowMs: 60_000))
        try window.begin(format(hasVideo: hasVideo, keyframeIntervalMs: keyframeIntervalMs), nowMs: 0)
        return window
    }

    /// Requests an early start and returns whether there is a playlist.
    private func starts(_ window: inout MediaWindow) -> Bool {
        window.startEarly(nowMs: 0)
        return window.isReady
    }

    private func durations(_ window: MediaWindow) -> [Double] {
        var window = window
        return readMediaPlaylist(window.text()).playlist.segments.map { Double($0.durationMicros) / 1_000_000 }
    }

    /// The cached group becomes three segments, the first with the keyframe. The target duration is that of whole groups.
    @Test func listsTheCachedGroup() throws {
        var window = try self.window(keyframeIntervalMs: 8_000)
        var history = PlaylistHistory()
        try window.addGroup(parts: 15)
        #expect(!window.isReady)
        let starts1 = self.starts(&window)
        #expect(starts1 && window.isReady)
        #expect(window.targetDuration == 9)
        #expect(self.durations(window) == [1, 1, 1])
        let text2 = window.text()
        #expect(history.check(text2).isEmpty)
        #expect(window.multivariantPlaylist(mediaURI: "m")?.contains("INDEPENDENT-SEGMENTS") == false)
        // Five seconds of the group remain: one more cut in their middle, and the next at the keyframe.
        for _ in 0..<25 { try window.add() }
        let text3 = window.text()
        #expect(history.check(text3).isEmpty)
        for _ in 0..<2 { try window.addGroup(parts: 40) }
        let text4 = window.text()
        #expect(history.check(text4).isEmpty)
        #expect(self.durations(window) == [1, 1, 1, 2.6, 2.4, 8])
        #expect(window.statistics.forcedCuts == 4 && window.statistics.targetRaises == 0 && window.targetDuration == 9)
        // The playlist is independent again once the last segment without a keyframe has left.
        for _ in 0..<9 { try window.addGroup(parts: 40) }
        #expect(window.isIndependent)
        #expect(window.multivariantPlaylist(mediaURI: "m")?.contains("INDEPENDENT-SEGMENTS") == true)
    }

    /// An early start needs enough media for players to show a picture. It is put off if a keyframe is due soon.
    @Test func waitsForEnoughAndForANearKeyframe() throws {
        var window = try self.window(keyframeIntervalMs: 8_000)
        try window.addGroup(parts: 3)
        let starts5 = self.starts(&window)
        #expect(!starts5 && !window.isReady)
        try window.add()
        let starts6 = self.starts(&window)
        #expect(starts6)
        var near = try self.window(keyframeIntervalMs: 2_000)
        try near.addGroup(parts: 5)
        let starts7 = self.starts(&near)
        #expect(!starts7)
        for _ in 0..<5 { try near.add() }
        near.endSegment(nowMs: 0)
        #expect(near.isReady && near.isIndependent)
    }

    /// The keyframe interval is unknown: the next segment ends after two seconds, and the one after it at the keyframe.
    @Test func unknownInterval() throws {
        var window = try self.window(keyframeIntervalMs: nil)
        try window.addGroup(parts: 6)
        let starts8 = self.starts(&window)
        #expect(starts8)
        for _ in 0..<24 { try window.add() }
        try window.addGroup()
        #expect(self.durations(window) == [0.4, 0.4, 0.4, 2, 2.8])
        let text9 = window.text()
        #expect(checkMediaPlaylist(text9).isEmpty)
    }

    /// Only the first playlist can start early: segments cut at keyframes stay as they are. An early start needs a keyframe.
    @Test func onlyAtTheBeginning() throws {
        var window = try self.window(keyframeIntervalMs: nil)
        for _ in 0..<10 { try window.add() }
        let starts10 = self.starts(&window)
        #expect(!starts10)
        for _ in 0..<2 { try window.addGroup() }
        let listed = self.durations(window).count
        let stays = self.starts(&window)
        #expect(stays)
        #expect(self.durations(window).count == listed)
    }

    /// A keyframe right after an early cut still starts the next segment.
    @Test func aKeyframeRightBehindTheCut() throws {
        var window = try self.window(keyframeIntervalMs: nil)
        try window.addGroup(parts: 5)
        let starts11 = self.starts(&window)
        #expect(starts11)
        #expect(window.startsSegment(pendingMicros: 80_000) && window.segmentDueMicros == 0)
        try window.add(ms: 80)
        window.endSegment(nowMs: 0)
        try window.addGroup()
        try window.add(key: true)
        #expect(self.durations(window).suffix(2) == [0.08, 2])
        let text12 = window.text()
        #expect(checkMediaPlaylist(text12).isEmpty)
    }

    /// Audio can be cut anywhere.
    @Test func soundAlone() throws {
        var window = try self.window(keyframeIntervalMs: nil, hasVideo: false)
        for _ in 0..<6 { try window.add(key: true) }
        let starts13 = self.starts(&window)
        #expect(starts13 && window.isIndependent)
        #expect(self.durations(window) == [0.4, 0.4, 0.4])
        let text14 = window.text()
        #expect(checkMediaPlaylist(text14).isEmpty)
    }

    /// `endSegment` lists a complete segment before the next one begins.
    @Test func endsWithItsLastPart() throws {
        var window = try self.window(keyframeIntervalMs: nil)
        try window.addGroup()
        #expect(!window.isReady)
        window.endSegment(nowMs: 0)
        #expect(window.isReady && window.lastEnded == 0)
        window.endSegment(nowMs: 0)
        #expect(window.lastEnded == 0)
        try window.addGroup()
        window.endSegment(nowMs: 0)
        #expect(self.durations(window) == [2, 2])
        let text15 = window.text()
        #expect(checkMediaPlaylist(text15).isEmpty)
    }
}
