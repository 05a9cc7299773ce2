/// Makes the first playlist for a player that joins between two keyframes.
///
/// A window without a player cuts at keyframes. With a keyframe every eight seconds, its first player would wait for eight seconds. Instead the
/// pictures cached so far become three segments at once, and the rest of their group becomes one or two more:
/// ```
/// keyframe ………………… player joins …………………………… keyframe
/// | 1/3 | 1/3 | 1/3 of cached | half the rest | the other half |  whole groups from here on
/// ```
/// Only the first of these segments starts with a keyframe. A player that starts three segments before the end, as FFmpeg does, begins with it.
/// Chromium's native player, once it may play, discards its data unless another segment is already listed (seen with Chromium 156).
extension MediaWindow {
    /// Milliseconds of media held before an early start. Players look at about twenty pictures before they show one.
    package static let earlyStartMs: Int64 = 800
    private static let earlySegments = 3
    /// Milliseconds: a keyframe due within this time is waited for.
    private static let waitForKeyframeMs: Int64 = 1_000
    /// Milliseconds of media in a segment while the keyframe interval is unknown.
    private static let unknownRestMs: Int64 = 2_000

    /// Whether segments end without a keyframe to start a first player.
    package var isStartingEarly: Bool { self.earlyCutMicros != nil }

    /// Makes a playlist from the open segment if it holds enough to start a player. Call it while a player waits and ``isReady`` is false.
    /// Returns whether there is a playlist now.
    @discardableResult
    package mutating func startEarly(nowMs: Int64) -> Bool {
        guard !self.isReady, !self.hasEnded, let open = self.open, open.isIndependent, open.parts.count >= Self.earlySegments else {
            return self.isReady
        }
        let heldMs = open.durationMicros / 1_000
        guard heldMs >= Self.earlyStartMs else { return false }
        guard self.format?.hasVideo == true else {
            // Audio can be cut anywhere.
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

    /// Splits the open segment into ended ones. `isIndependent`: whether all of them can be decoded on their own.
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
