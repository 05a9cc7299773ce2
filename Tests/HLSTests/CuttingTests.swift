@testable import HLS
import HLSCheck
import NIOCore
import Testing

/// The muxer's side of a window: cuts frames, at times in whole milliseconds, into parts as the window directs.
struct FrameFeeder {
    var pendingMicros: Int64 = 0
    var pendingIsIndependent = false
    var pendingBegins = false

    mutating func flush(into window: inout MediaWindow, nowMs: Int64 = 0, dateMs: Int64? = nil, bytes: String = "part") throws(HLSError) {
        guard self.pendingMicros > 0 else { return }
        let part = MediaPart(
            bytes: ByteBuffer(string: bytes), durationMicros: self.pendingMicros, isIndependent: self.pendingIsIndependent,
            beginsWithKeyframe: self.pendingBegins, programDateTimeMs: dateMs)
        self = FrameFeeder()
        try window.append(part, nowMs: nowMs)
    }

    mutating func add(
        micros: Int64, isKey: Bool, to window: inout MediaWindow, nowMs: Int64 = 0, dateMs: Int64? = nil, bytes: String = "part"
    ) throws(HLSError) {
        let isFull = window.longestPartMicros.map { self.pendingMicros + micros > $0 } ?? false
        if isFull || window.closesPart(pendingMicros: self.pendingMicros, frameMicros: micros)
            || (isKey && window.startsSegment(pendingMicros: self.pendingMicros))
        {
            try self.flush(into: &window, nowMs: nowMs, dateMs: dateMs, bytes: bytes)
        }
        if self.pendingMicros == 0 { self.pendingBegins = isKey }
        if isKey { self.pendingIsIndependent = true }
        self.pendingMicros += micros
    }
}

@Suite struct CuttingTests {
    /// Frame rate and group length in frames, then the resulting targets and segment durations.
    @Test(
        arguments: [
            (30.0, 60, 2, 0.216, [2.0, 2.0]), (29.97, 60, 2, 0.217, [2.002, 2.002]), (25, 50, 2, 0.216, [2.0, 2.0]),
            (24, 48, 2, 0.226, [2.0, 2.0]), (60, 120, 2, 0.217, [2.0, 2.0]), (30, 30, 2, 0.216, [2.0, 2.0]),
            (30, 75, 3, 0.217, [2.5, 2.5]),
            (30, 250, 9, 0.217, [8.333, 8.334]), (30, 10, 2, 0.216, [2.0, 2.0]), (15, 30, 2, 0.216, [2.0, 2.0]),
            (5, 10, 2, 0.216, [2.0, 2.0]), (1, 2, 2, 1.08, [2.0, 2.0]), (1, 5, 6, 1.08, [5.0, 5.0]), (59.94, 30, 2, 0.217, [2.002, 2.002]),
        ] as [(Double, Int, Int, Double, [Double])])
    func rates(_ rate: Double, _ group: Int, _ target: Int, _ partTarget: Double, _ lengths: [Double]) throws {
        var window = try MediaWindow(epoch: "e", configuration: .init(windowMs: 120_000))
        try window.begin(format(), nowMs: 0)
        var feeder = FrameFeeder()
        var history = PlaylistHistory()
        var version = 0
        for index in 0..<Int(rate * 60) {
            let start = Int64((Double(index) * 1_000 / rate).rounded(.down))
            let end = Int64((Double(index + 1) * 1_000 / rate).rounded(.down))
            try feeder.add(micros: (end - start) * 1_000, isKey: index % group == 0, to: &window)
            if window.isReady, window.version != version { #expect(history.check(window.text()).isEmpty) }
            version = window.version
        }
        #expect(window.statistics == MediaWindow.Statistics())
        #expect(window.targetDuration == target)
        #expect(abs(Double(window.partTargetMicros) / 1_000_000 - partTarget) < 0.0015, "\(window.partTargetMicros)")
        let segments = readMediaPlaylist(window.text()).playlist.segments
        for (segment, length) in zip(segments, lengths) { #expect(abs(Double(segment.durationMicros) / 1_000_000 - length) < 0.0015) }
        #expect(segments.count > 5)
    }

    /// The target duration grows when keyframes become rarer, at most to the longest segment. Until then cuts stay at keyframes.
    @Test func rarerKeyframes() throws {
        var window = try MediaWindow(epoch: "e", configuration: .init(windowMs: 60_000))
        try window.begin(format(), nowMs: 0)
        for _ in 0..<4 { try window.addGroup() }
        #expect(window.targetDuration == 2)
        try window.addGroup(parts: 12)
        #expect(window.targetDuration == 2 && window.statistics.targetRaises == 0, "2.4 s is 2 s when rounded")
        _ = window.text(lowLatency: false)
        try window.addGroup(parts: 13)
        #expect(readMediaPlaylist(window.text(lowLatency: false)).playlist.targetDuration == 4, "shown at once, in all kinds")
        #expect(window.targetDuration == 4 && window.statistics.targetRaises == 1)
        try window.addGroup(parts: 40)
        #expect(window.targetDuration == 8 && window.statistics.targetRaises == 2)
        #expect(checkMediaPlaylist(window.text()).isEmpty)
        // Without any more keyframes, segments are cut at 12 s.
        for _ in 0..<130 { try window.add() }
        #expect(window.targetDuration == 12 && window.statistics.targetRaises == 3)
        #expect(window.statistics.forcedCuts == 2 && !window.isIndependent)
        #expect(checkMediaPlaylist(window.text()).isEmpty)
        #expect(window.multivariantPlaylist(mediaURI: "m")?.contains("INDEPENDENT-SEGMENTS") == false)
    }

    @Test func knownKeyframeInterval() throws {
        var window = try MediaWindow(epoch: "e")
        try window.begin(format(keyframeIntervalMs: 4_000), nowMs: 0)
        // The publisher disconnects during its first group.
        try window.addGroup(parts: 3)
        window.interrupt(nowMs: 0)
        window.end(nowMs: 0)
        #expect(window.targetDuration == 4)
        for interval in [Int.max, 0, -5, 1] {
            var window = try MediaWindow(epoch: "e")
            try window.begin(format(keyframeIntervalMs: interval), nowMs: 0)
            try window.addGroup()
            window.end(nowMs: 0)
            #expect(window.targetDuration == (interval == .max ? 12 : 2))
        }
    }

    /// A frame that lasts seconds is listed with the part target. When all frames do, the part target grows with the next segment.
    @Test func longParts() throws {
        var window = try MediaWindow(epoch: "e", configuration: .init(windowMs: 60_000))
        try window.begin(format(), nowMs: 0)
        var history = PlaylistHistory()
        for _ in 0..<3 { try window.addGroup() }
        #expect(history.check(window.text()).isEmpty)
        try window.addGroup(parts: 4)
        try window.add(ms: 1_000)
        #expect(history.check(window.text()).isEmpty)
        try window.add()
        #expect(history.check(window.text()).isEmpty)
        try window.addGroup()
        #expect(history.check(window.text()).isEmpty)
        #expect(window.partTargetMicros == 216_000 && window.statistics.targetRaises == 0)
        let segments = readMediaPlaylist(window.text()).playlist.segments
        #expect(segments.map(\.durationMicros) == [2_000_000, 2_000_000, 2_000_000, 2_000_000])
        #expect(segments.last?.parts.map(\.durationMicros) == [200_000, 200_000, 200_000, 200_000, 216_000, 200_000])
        #expect(window.statistics.forcedCuts == 0)

        for _ in 0..<4 { try window.add(ms: 1_000) }
        #expect(window.partTargetMicros == 216_000)
        try window.add(ms: 1_000, key: true)
        #expect(window.partTargetMicros == 1_080_000)
        let rules = Set(history.check(window.text()).map(\.rule))
        #expect(rules == [.headerChanged, .targetDurationChanged])
        for _ in 0..<2 { try window.add(ms: 1_000, key: true) }
        #expect(history.check(window.text()).isEmpty && window.statistics.forcedCuts == 0)
    }

    /// Pictures at uneven times, as from phones and screens: segments begin with keyframes, and no listed part is longer than the part target.
    @Test(arguments: [(40.0, 10.0), (40, 25), (33, 33), (50, 8), (100, 40)] as [(Double, Double)])
    func unevenPictures(_ stepMs: Double, _ jitterMs: Double) throws {
        var random = Seeded(seed: UInt64(stepMs + jitterMs))
        var window = try MediaWindow(epoch: "e", configuration: .init(windowMs: 120_000))
        try window.begin(format(keyframeIntervalMs: 1_000), nowMs: 0)
        var feeder = FrameFeeder()
        var history = PlaylistHistory()
        var version = 0
        let group = Int(1_000 / stepMs)
        for index in 0..<(40 * group) {
            let ms = max(1, Int64(stepMs + Double.random(in: -jitterMs...jitterMs, using: &random)))
            try feeder.add(micros: ms * 1_000, isKey: index % group == 0, to: &window)
            guard window.isReady, window.version != version else { continue }
            version = window.version
            let violations = history.check(window.text()).filter { $0.rule != .partDurationFloor && $0.rule != .targetDurationChanged }
            #expect(violations.isEmpty)
        }
        #expect(window.statistics.forcedCuts == 0)
        let durations = readMediaPlaylist(window.text()).playlist.segments.map(\.durationMicros)
        #expect(durations.count > 10 && durations.allSatisfy { $0 > 1_500_000 }, "\(durations)")
    }

    /// Without keyframes, as with intra refresh, segments are as long as may be.
    @Test func onlyOneKeyframe() throws {
        var window = try MediaWindow(epoch: "e", configuration: .init(windowMs: 60_000))
        try window.begin(format(), nowMs: 0)
        try window.addGroup(parts: 200)
        #expect(readMediaPlaylist(window.text()).playlist.segments.map(\.durationMicros) == [12_000_000, 12_000_000, 12_000_000])
        #expect(checkMediaPlaylist(window.text()).isEmpty)
    }

    /// Absurd durations from a publisher's clock are clamped and counted.
    @Test func absurdDurations() throws {
        var window = try MediaWindow(epoch: "e", configuration: .init(maxSegmentMs: 5_000))
        try window.begin(format(), nowMs: 0)
        for duration in [Int64.min, -1, 0, .max, 90_000_000_000] {
            try window.append(
                MediaPart(bytes: ByteBuffer(string: "x"), durationMicros: duration, isIndependent: true, beginsWithKeyframe: false),
                nowMs: 0)
        }
        window.end(nowMs: 0)
        #expect(window.statistics.clampedDurations == 5)
        #expect(checkMediaPlaylist(window.text()).filter { $0.rule != .partDurationFloor }.isEmpty)
        #expect(window.closesPart(pendingMicros: 0, frameMicros: .max) == false)
        #expect(window.closesPart(pendingMicros: 1, frameMicros: .min) == false)
        #expect(window.startsSegment(pendingMicros: .min))
    }

    /// Frames without duration do not make a segment grow without bound.
    @Test func manyTinyParts() throws {
        var window = try MediaWindow(epoch: "e")
        try window.begin(format(), nowMs: 0)
        for index in 0..<5_000 { try window.add(ms: 0, key: index == 0) }
        let counts = readMediaPlaylist(window.text(lowLatency: false)).playlist.segments.count
        #expect(counts == 9)
    }

    /// The limit counts media bytes, not their storage, which may be twice as large.
    @Test func partsOfAnySizeUpToTheLimit() throws {
        var window = try MediaWindow(epoch: "e")
        try window.begin(format(), nowMs: 0)
        for bytes in [9 << 20, 16 << 20] {
            let part = MediaPart(
                bytes: ByteBuffer(repeating: 1, count: bytes), durationMicros: 200_000, isIndependent: true, beginsWithKeyframe: true)
            try window.append(part, nowMs: 0)
        }
        #expect(throws: HLSError.tooLarge(field: "part", found: (16 << 20) + 1, max: 16 << 20)) {
            let part = MediaPart(
                bytes: ByteBuffer(repeating: 1, count: (16 << 20) + 1), durationMicros: 200_000, isIndependent: true,
                beginsWithKeyframe: true)
            try window.append(part, nowMs: 0)
        }
    }
}
