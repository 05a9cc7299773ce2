@testable import HLS
import NIOCore
import Testing

/// Parts must not exceed the part target. All but independent ones and the last must reach 85 % of it (RFC 8216bis §4.4.4.9).
@Suite struct PartRuleTests {
    private static func keeps(_ durations: [Int64], independent: Set<Int> = []) -> Bool {
        var segment = Segment(
            sequence: 0, hasDiscontinuity: false, isIndependent: true, initialization: 0, firstPart: 0, programDateTimeMs: nil)
        for (index, duration) in durations.enumerated() {
            segment.append(HeldPart(bytes: ByteBuffer(), durationMicros: duration, isIndependent: independent.contains(index)))
        }
        return segment.keepsParts(to: 200_000)
    }

    @Test func shortAndLongParts() {
        #expect(Self.keeps([200_000, 170_000, 200_000]) && !Self.keeps([200_000, 169_999, 200_000]))
        #expect(!Self.keeps([200_001, 200_000]) && !Self.keeps([200_000, 200_001]))
        // The last part may be short, but not the one before it.
        #expect(Self.keeps([200_000, 200_000, 1]) && !Self.keeps([200_000, 1, 200_000]) && !Self.keeps([1, 200_000, 200_000]))
        #expect(Self.keeps([200_000, 1, 200_000], independent: [1]) && !Self.keeps([200_000, 200_001], independent: [1]))
    }

    @Test func fixedLimits() {
        #expect(MediaWindow.Limits.partsPerSegment == 512 && MediaWindow.Limits.initializationBytes == 1 << 20)
        #expect(MediaWindow.Limits.codecsLength == 256 && MediaWindow.Limits.listedSegments == 1 << 18)
        #expect(MediaWindow.Limits.firstSequence == 1 << 60)
    }
}

@Suite struct BeforeReadyTests {
    /// No wait is satisfied while the first segment is open: its parts make no playlist yet.
    @Test func nobodyIsAnsweredBeforeThereIsAPlaylist() throws {
        var window = try MediaWindow(epoch: "e")
        try window.begin(format(), nowMs: 0)
        for _ in 0..<3 { try window.add() }
        #expect(!window.isReady)
        for sequence in [-1, 0, 1] {
            #expect(
                !window.isSatisfied(WaitPoint(sequence: sequence, part: 0)) && !window.isSatisfied(WaitPoint(sequence: sequence, part: nil))
            )
        }
    }
}

@Suite struct SegmentDueTests {
    /// A segment that begins with a keyframe is due after nine tenths of `segmentMs`. Any other ends before the next keyframe.
    @Test func whenAKeyframeStartsASegment() throws {
        var window = try MediaWindow(epoch: "e", configuration: .init(segmentMs: 1_000))
        try window.begin(format(), nowMs: 0)
        #expect(window.segmentDueMicros == 900_000)
        try window.add(key: true)
        #expect(window.segmentDueMicros == 700_000)
        for _ in 0..<4 { try window.add() }
        #expect(window.segmentDueMicros == 0)
        var dependent = try MediaWindow(epoch: "e", configuration: .init(segmentMs: 1_000))
        try dependent.begin(format(), nowMs: 0)
        try dependent.add()
        #expect(dependent.segmentDueMicros == 0)
    }
}

/// Parts that ended because no frame came.
@Suite struct ShortPartTests {
    private static func part(
        _ text: String, ms: Int64, key: Bool = false, holdsPictures: Bool = true, isCutShort: Bool = false
    ) -> MediaPart {
        MediaPart(
            bytes: ByteBuffer(string: text), durationMicros: ms * 1_000, isIndependent: key, beginsWithKeyframe: key,
            holdsPictures: holdsPictures, isCutShort: isCutShort)
    }

    /// What comes first after a publisher's return, in a window that has playlists; the segment that it begins.
    private static func segmentAfterReturn(_ parts: [MediaPart]) throws -> Segment {
        var window = try MediaWindow(epoch: "e", configuration: .init(segmentMs: 1_000))
        try window.begin(format(), nowMs: 0)
        for _ in 0..<3 { try window.addGroup(parts: 5) }
        window.interrupt(nowMs: 0)
        try window.begin(format("again"), nowMs: 0)
        for part in parts { try window.append(part, nowMs: 0) }
        return try #require(window.open)
    }

    /// A piece of sound that ended too soon waits for the next part. With a keyframe behind it, players can still begin there.
    @Test func soundBeforeAKeyframe() throws {
        let segment = try Self.segmentAfterReturn([
            Self.part("sound", ms: 40, holdsPictures: false, isCutShort: true), Self.part("key", ms: 200, key: true),
        ])
        #expect(segment.isIndependent && segment.parts.count == 1)
        #expect(segment.parts.first?.durationMicros == 240_000)
    }

    @Test func picturesBeforeAKeyframe() throws {
        let segment = try Self.segmentAfterReturn([
            Self.part("pictures", ms: 40, isCutShort: true), Self.part("key", ms: 200, key: true),
        ])
        #expect(!segment.isIndependent && segment.parts.count == 1)
    }
}
