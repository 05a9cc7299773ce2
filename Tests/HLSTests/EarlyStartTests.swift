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

    /// The text that a player gets first, with EXT-X-START if it needs that.
    private func first(_ window: inout MediaWindow) -> String {
        window.mediaPlaylist(PlaylistKind(isLowLatency: true, hasStart: window.needsStart))?.text ?? ""
    }

    /// The cached group becomes a segment, but for its last three parts. The target duration is that of whole groups.
    @Test func listsTheCachedGroup() throws {
        var window = try self.window(keyframeIntervalMs: 8_000)
        var history = PlaylistHistory()
        try window.addGroup(parts: 15)
        #expect(!window.isReady)
        let isReady = self.starts(&window)
        #expect(isReady && window.targetDuration == 9)
        #expect(self.durations(window) == [2.4, 0.2, 0.2] && !window.suitsVLC)
        let early = window.text()
        #expect(history.check(early).isEmpty)
        #expect(window.multivariantPlaylist(mediaURI: "m")?.contains("INDEPENDENT-SEGMENTS") == false)
        let playlist = readMediaPlaylist(early).playlist
        #expect(playlist.open?.parts.map(\.isIndependent) == [false] && playlist.segments[0].parts.count == 12)
        // Five seconds of the group remain: two more cuts, and the next at the keyframe.
        for _ in 0..<25 { try window.add() }
        let middle = window.text()
        #expect(history.check(middle).isEmpty)
        for _ in 0..<2 { try window.addGroup(parts: 40) }
        try window.add(key: true)
        let late = window.text()
        #expect(history.check(late).isEmpty)
        #expect(self.durations(window) == [2.4, 0.2, 0.2, 1.8, 1.8, 1.6, 8, 8])
        #expect(window.statistics.forcedCuts == 5 && window.statistics.targetRaises == 0 && window.targetDuration == 9)
        // The playlist is independent again once the last segment without a keyframe has left.
        for _ in 0..<9 { try window.addGroup(parts: 40) }
        #expect(window.isIndependent)
        #expect(window.multivariantPlaylist(mediaURI: "m")?.contains("INDEPENDENT-SEGMENTS") == true)
    }

    /// Chromium's native player looks once in a target duration and takes the last three segments that are new.
    @Test func noMoreThanThreeSegmentsAtALook() throws {
        var window = try self.window(keyframeIntervalMs: 8_400)
        try window.addGroup(parts: 5)
        let isReady = self.starts(&window)
        #expect(isReady && window.targetDuration == 9)
        for _ in 0..<37 { try window.add() }
        // Its group is over. Now a keyframe comes every two seconds.
        for _ in 0..<12 { try window.addGroup(parts: 10) }
        try window.add(key: true)
        #expect(self.durations(window) == [0.4, 0.2, 0.2, 2.6, 2.6, 2.4, 4, 4, 4, 4, 4, 4])
    }

    /// Three segments that begin with a keyframe, whatever stands before them.
    @Test(arguments: [true, false]) func vlcWaitsForThreeGroups(_ isEarly: Bool) throws {
        var window = try self.window(keyframeIntervalMs: 2_000)
        try window.addGroup(parts: 5)
        if isEarly { _ = self.starts(&window) }
        for _ in 0..<5 { try window.add() }
        for groups in 1...4 {
            // The first group is listed with the second's first part.
            try window.addGroup(parts: 10)
            #expect(window.suitsVLC == (groups >= (isEarly ? 4 : 3)), "\(groups) \(self.durations(window))")
        }
    }

    /// Whenever a player comes, it starts in a segment with a keyframe: EXT-X-START leads there while the end of the playlist has none.
    @Test(arguments: [nil, 2_000, 4_000, 8_300] as [Int?], [0, 700, 1_500, 3_900])
    func aPlayerStartsWithAKeyframe(_ intervalMs: Int?, _ joinMs: Int) throws {
        var window = try self.window(keyframeIntervalMs: intervalMs)
        let group = Int((Double(intervalMs ?? 5_000) / 200).rounded(.up))
        var withStart = 0
        for part in 0..<(4 * group) {
            try window.add(key: part % group == 0)
            if (part + 1) * 200 >= joinMs { window.startEarly(nowMs: 0) }
            guard window.isReady else { continue }
            let text = self.first(&window)
            if text.contains("#EXT-X-START:TIME-OFFSET=") { withStart += 1 }
            var player = PlaylistHistory()
            let violations = player.check(text)
            #expect(violations.isEmpty, "\(violations) \(text)")
        }
        #expect(withStart < group + 5, "only until a keyframe is near the end")
        let last = self.first(&window)
        #expect(!last.contains("EXT-X-START"))
    }

    /// All playlists of one player are alike.
    @Test func aPlayerKeepsItsStart() throws {
        var window = try self.window(keyframeIntervalMs: 8_000)
        var history = PlaylistHistory()
        try window.addGroup(parts: 10)
        window.startEarly(nowMs: 0)
        for _ in 0..<6 { try window.add() }
        #expect(window.needsStart)
        for part in 0..<60 {
            try window.add(key: part == 24)
            let text = window.mediaPlaylist(PlaylistKind(isLowLatency: true, hasStart: true))?.text ?? ""
            #expect(text.contains("#EXT-X-START:TIME-OFFSET=0.900\n"))
            #expect(history.check(text).isEmpty)
        }
        #expect(!window.needsStart)
    }

    /// An early start needs enough media for players to show a picture. It is put off if a keyframe is due soon.
    @Test func waitsForEnoughAndForANearKeyframe() throws {
        var window = try self.window(keyframeIntervalMs: 8_000)
        try window.addGroup(parts: 4)
        let tooSoon = self.starts(&window)
        #expect(!tooSoon && !window.isReady)
        try window.add()
        let isReady = self.starts(&window)
        #expect(isReady)
        var near = try self.window(keyframeIntervalMs: 2_000)
        try near.addGroup(parts: 8)
        let isNear = self.starts(&near)
        #expect(!isNear)
        for _ in 0..<2 { try near.add() }
        near.completeSegment(nowMs: 0)
        let isHeld = self.starts(&near)
        #expect(!isHeld, "what follows is not known")
        try near.add(key: true)
        #expect(near.isReady && near.isIndependent && self.durations(near) == [2])
    }

    /// The keyframe interval is unknown: segments end after two seconds, up to the keyframe or for twelve seconds.
    @Test func unknownInterval() throws {
        var window = try self.window(keyframeIntervalMs: nil)
        try window.addGroup(parts: 6)
        let isReady = self.starts(&window)
        #expect(isReady)
        for _ in 0..<24 { try window.add() }
        try window.addGroup()
        #expect(self.durations(window) == [0.6, 0.2, 0.2, 2, 2, 1])
        let text = window.text()
        #expect(checkMediaPlaylist(text).isEmpty)
        var refreshed = try self.window(keyframeIntervalMs: nil)
        try refreshed.addGroup(parts: 6)
        refreshed.startEarly(nowMs: 0)
        for _ in 0..<160 { try refreshed.add() }
        #expect(self.durations(refreshed) == [0.6, 0.2, 0.2, 2, 2, 2, 2, 2, 2, 12])
        #expect(!refreshed.needsNextPart)
    }

    /// Only the first playlist can start early: segments cut at keyframes stay as they are. An early start needs a keyframe.
    @Test func onlyAtTheBeginning() throws {
        var window = try self.window(keyframeIntervalMs: nil)
        for _ in 0..<10 { try window.add() }
        let isReady = self.starts(&window)
        #expect(!isReady)
        for _ in 0..<2 { try window.addGroup() }
        let listed = self.durations(window).count
        let stays = self.starts(&window)
        #expect(stays && self.durations(window).count == listed && !window.needsStart)
    }

    /// A keyframe right after an early cut still starts the next segment.
    @Test func aKeyframeRightBehindTheCut() throws {
        var window = try self.window(keyframeIntervalMs: nil)
        try window.addGroup(parts: 5)
        let isReady = self.starts(&window)
        #expect(isReady)
        #expect(window.startsSegment(pendingMicros: 80_000) && window.segmentDueMicros == 0)
        try window.add(ms: 80)
        window.completeSegment(nowMs: 0)
        try window.addGroup()
        try window.add(key: true)
        #expect(self.durations(window) == [0.4, 0.2, 0.2, 0.28, 2])
        let text = window.text()
        #expect(checkMediaPlaylist(text).isEmpty)
    }

    /// Audio can be cut anywhere.
    @Test func soundAlone() throws {
        var window = try self.window(keyframeIntervalMs: nil, hasVideo: false)
        for _ in 0..<6 { try window.add(key: true) }
        let isReady = self.starts(&window)
        #expect(isReady && window.isIndependent && !window.needsStart)
        #expect(self.durations(window) == [0.6, 0.2, 0.2])
        var history = PlaylistHistory()
        #expect(history.check(window.text()).isEmpty)
    }
}
