import NIOCore

/// Makes the first playlist for a player that joins between two keyframes.
///
/// A window without a player cuts at keyframes. With a keyframe every eight seconds, its first player would wait for eight seconds. Instead the
/// pictures cached so far become segments at once, and the rest of their group becomes more of about `segmentMs`:
/// ```
/// keyframe ……………… player joins ……………………………………… keyframe
/// |       cached       |·|·| a third of the rest | a third | a third |  whole groups from here on
/// ```
/// Only the first of these segments starts with a keyframe, so a player has to start in it. Plain players do: they start with the oldest of three.
/// Players of low latency start a hold back before the end. Where that lies in, or near, a segment without a keyframe, they get EXT-X-START.
///
/// Why several, and no more than three: Chromium's native player, once it may play, discards its data unless another segment is listed, and VLC waits for a target duration
/// with fewer than three. hls.js takes parts only behind segments that are as long together (all seen with Chromium 156, VLC 3.0.20, hls.js 1.6.15).
extension MediaWindow {
    /// Milliseconds of media held before an early start. Players look at about twenty pictures before they show one.
    package static let earlyStartMs: Int64 = 800
    /// Segments of one part behind the cached one.
    private static let shortSegments = 2
    /// Shortest cached segment. hls.js takes the next segment from a quarter of a second before its start. Microseconds.
    private static let leastCachedMicros: Int64 = 300_000
    /// Milliseconds: a keyframe due within this time is waited for.
    private static let waitForKeyframeMs: Int64 = 500
    /// Microseconds before the end of the cached segment at which EXT-X-START lets players start.
    private static let startBeforeEndMicros: Int64 = 500_000
    /// Microseconds by which players miss the hold back, in both directions.
    private static let startSlackMicros: Int64 = 300_000

    /// Ends of segments without a keyframe that follow an early start.
    struct EarlyCuts: Sendable {
        /// Of each segment.
        var micros: Int64
        /// Number of them still to come.
        var left: Int
    }

    /// Whether a segment is listed sooner if the next part comes soon: one that is held for it, or one that ends without a keyframe.
    package var needsNextPart: Bool { self.holdsSegment || self.earlyCuts != nil }

    /// Whether VLC 3 plays on without pauses that starts now. It takes whole segments alone, starts with the last three, and when the next comes later
    /// than it had thought it shows fewer pictures a second from then on. Three whole groups, or as much without keyframes.
    package var suitsVLC: Bool {
        guard self.isReady, self.listedCount >= 3 else { return false }
        return self.segments.suffix(3).allSatisfy(\.isIndependent) || self.listedMicros >= self.maxSegmentMicros
    }

    /// Makes a playlist from the open segment if it holds enough to start a player. Call it while a player waits and ``isReady`` is false.
    /// Returns whether there is a playlist now.
    @discardableResult
    package mutating func startEarly(nowMs: Int64) -> Bool {
        // A segment that has all its parts is listed with the next part.
        guard !self.isReady, !self.hasEnded, !self.holdsSegment, let open = self.open, open.isIndependent, open.parts.count > 1 else {
            return self.isReady
        }
        let short = min(Self.shortSegments, open.parts.count - 2)
        let counts = [open.parts.count - short - 1] + Array(repeating: 1, count: short + 1)
        let heldMs = open.durationMicros / 1_000
        let cachedMicros = open.parts.prefix(counts[0]).reduce(0) { $0 + $1.durationMicros }
        guard heldMs >= Self.earlyStartMs, cachedMicros >= Self.leastCachedMicros else { return false }
        guard self.format?.hasVideo == true else {
            // Audio can be cut anywhere.
            self.list(open.split(into: counts, isIndependent: true), nowMs: nowMs)
            return true
        }
        var restMs: Int64?
        if let interval = self.format?.keyframeIntervalMs, interval > heldMs { restMs = Int64(interval) - heldMs }
        if let restMs, restMs <= Self.waitForKeyframeMs { return false }
        self.list(open.split(into: counts, isIndependent: false), nowMs: nowMs)
        self.earlySegment = (open.sequence, cachedMicros)
        let segmentMs = Int64(self.configuration.segmentMs)
        if let restMs {
            let count = min((restMs + segmentMs / 2) / segmentMs, Self.segmentsInTarget)
            let micros = restMs * 1_000 + (self.open?.durationMicros ?? 0)
            self.earlyCuts = count > 1 ? EarlyCuts(micros: micros / count, left: Int(count) - 1) : nil
        } else {
            self.earlyCuts = EarlyCuts(micros: segmentMs * 1_000, left: self.configuration.maxSegmentMs / self.configuration.segmentMs)
        }
        return true
    }

    /// Puts these segments in place of the open one. The last stays open, so that what follows a listed segment is known.
    private mutating func list(_ segments: [Segment], nowMs: Int64) {
        for (index, segment) in segments.enumerated() {
            if index > 0 {
                self.endOpenSegment(nowMs: nowMs)
                self.nextSequence += 1
                if !segment.isIndependent {
                    self.dependentCount += 1
                    self.statistics.forcedCuts += 1
                }
            }
            self.open = segment
        }
        self.evict(nowMs: nowMs)
    }

    /// Whether a player of low latency that comes now would start behind the cached segment's keyframe and before the next. It gets EXT-X-START then.
    package var needsStart: Bool {
        guard self.configuration.isLowLatency, let early = self.earlySegment, self.oldestListed?.sequence == early.sequence else {
            return false
        }
        let holdBack = self.partTargetMicros * 3
        let (near, far) = (holdBack - Self.startSlackMicros, holdBack + Self.startSlackMicros)
        // Microseconds before the playlist's end.
        var end: Int64 = 0
        for index in stride(from: self.segments.count, through: self.retiredCount, by: -1) {
            guard let segment = index == self.segments.count ? self.open : self.segments[offset: index] else { continue }
            let start = end + segment.durationMicros
            if !segment.isIndependent, start > near, end < far { return true }
            if start >= far { return false }
            end = start
        }
        return false
    }

    /// TIME-OFFSET of EXT-X-START, in milliseconds from the start of the cached segment; nil without one.
    var startOffsetMs: Int64? { self.earlySegment.map { max(0, $0.durationMicros - Self.startBeforeEndMicros) / 1_000 } }
}
