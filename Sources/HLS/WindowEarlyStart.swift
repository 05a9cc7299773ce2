/// The first playlist for a player that comes in the middle of a group of pictures.
///
/// A window without a player cuts at keyframes, so a stream with a keyframe every eight seconds would let its first player wait for eight
/// seconds. Instead the pictures cached so far become two segments at once, and what is left of their group becomes one or two more:
/// ```
/// keyframe ……………… player comes ……………… …………… keyframe
/// | cached | pictures           | half the rest | the other half |  whole groups from here on
/// ```
/// Only the first of these segments starts with a keyframe; a player that starts three segments before the end, as FFmpeg does, begins
/// with it. There are two because Chromium's native player, once it may play, throws away what it has unless another segment is listed
/// already (seen with Chromium 156).
extension MediaWindow {
    /// Milliseconds of media that the first segment has at least. Players look at about twenty pictures before they show one.
    package static let earlyStartMs: Int64 = 800
    private static let earlySegments = 3
    /// A keyframe that is due within this time is waited for: milliseconds.
    private static let waitForKeyframeMs: Int64 = 1_000
    /// Milliseconds of media in a segment while nobody knows how long the group of pictures will be.
    private static let unknownRestMs: Int64 = 2_000

    /// Whether segments end without a keyframe for the sake of a first player.
    package var isStartingEarly: Bool { self.earlyCutMicros != nil }

    /// Ends the open segment, so that there is a playlist, if it has enough to start a player with. To be called while a player waits and
    /// ``isReady`` is false. Returns whether there is a playlist now.
    @discardableResult
    package mutating func startEarly(nowMs: Int64) -> Bool {
        guard !self.isReady, !self.hasEnded, let open = self.open, open.isIndependent, open.parts.count >= Self.earlySegments else {
            return self.isReady
        }
        let heldMs = open.durationMicros / 1_000
        guard heldMs >= Self.earlyStartMs else { return false }
        guard self.format?.hasVideo == true else {
            // Sound can be cut anywhere.
            self.splitOpenSegment(open, isIndependent: true, nowMs: nowMs)
            self.evict(nowMs: nowMs)
            return true
        }
        var restMs: Int64?
        if let interval = self.format?.keyframeIntervalMs, interval > heldMs { restMs = Int64(interval) - heldMs }
        if let restMs, restMs <= Self.waitForKeyframeMs { return false }
        self.splitOpenSegment(open, isIndependent: false, nowMs: nowMs)
        self.nextIsDependent = true
        if let restMs {
            self.earlyCutMicros = restMs >= 2 * Int64(self.configuration.segmentMs) ? restMs * 500 : nil
        } else {
            self.earlyCutMicros = Self.unknownRestMs * 1_000
        }
        self.evict(nowMs: nowMs)
        return true
    }

    /// Makes ended segments of the open one. `isIndependent`: whether all of them can be decoded by themselves.
    private mutating func splitOpenSegment(_ open: Segment, isIndependent: Bool, nowMs: Int64) {
        for (index, segment) in open.split(into: Self.earlySegments, isIndependent: isIndependent).enumerated() {
            if index > 0 {
                self.nextSequence += 1
                if !segment.isIndependent {
                    self.dependentCount += 1
                    self.statistics.forcedCuts += 1
                }
            }
            self.open = segment
            self.endOpenSegment(nowMs: nowMs)
        }
    }
}
