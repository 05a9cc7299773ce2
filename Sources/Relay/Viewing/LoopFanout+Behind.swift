/// Finds viewers that are behind, decides whether that is their own fault, and skips video for them.
extension LoopFanout {
    /// A viewer over the age limit.
    struct SlowViewer {
        let viewer: Viewer
        /// Milliseconds behind live, for any reason.
        let behindMs: Int64
        /// The part of the delay that is the viewer's own fault.
        let ownMs: Int64
    }

    /// Cursor of the viewer that is furthest behind; the head when there is none.
    var slowestCursor: Int {
        var slowest = self.ring.head
        for index in 0..<self.viewers.count {
            let slot = self.slots.base[index]
            if slot.isSteady {
                slowest = min(slowest, slot.cursor)
            } else {
                let viewer = self.viewers[index]
                if !viewer.isDetached, !viewer.isPaused { slowest = min(slowest, viewer.cursor ?? slowest) }
            }
        }
        return slowest
    }

    /// Milliseconds that the slowest viewer's next message has waited; 0 when all have the newest.
    func slowestWaitMs(nowMs: Int64) -> Int64 {
        let cursor = max(self.slowestCursor, self.ring.base)
        return cursor < self.ring.head ? nowMs - self.ring[cursor].arrivalMs : 0
    }

    /// Watermark: bytes that a viewer's kernel may hold unsent. 0 while the stream's rate is unknown.
    var lowWater: Int {
        guard self.rate.bytesPerSecond > 0 else { return 0 }
        // Bytes in the kernel cannot be skipped, so an age limit for audio lowers the minimum.
        let least = self.maxQueueMs == nil ? 16 << 10 : 2 << 10
        return min(max(self.rate.bytesPerSecond / 4, least), 128 << 10)
    }

    /// Moves a viewer that is more than `skipBehindMs` behind to the newest keyframe. If there is none, a viewer beyond the midpoint of
    /// `skipBehindMs` and `maxBehindMs` skips its video until the next keyframe.
    func skipIfBehind(_ viewer: Viewer, cursor: Int, policy: RelayPolicy, nowMs: Int64) {
        guard viewer.gate.wantsVideo, !viewer.gate.waitsForKeyframe, self.ring.hasVideo, !viewer.stall.isClear else { return }
        viewer.cursor = cursor
        let ageMs = min(
            viewer.ageMs(in: self.ring, nowMs: nowMs) - viewer.headStart.ms,
            viewer.stall.ms(nowMs: nowMs, lateMs: self.lateness.ms(nowMs)))
        guard ageMs > policy.skipBehindMs else { return }
        if let keyframe = self.ring.lastKeyframe(from: cursor + 1) {
            viewer.gate.skipVideo(untilKeyframeFrom: keyframe)
            viewer.moveOn(to: keyframe, in: self.ring, nowMs: nowMs)
            viewer.noteSlow(nowMs: nowMs)
            viewer.sink.skipped(viewer, behindMs: ageMs)
        } else if ageMs > (policy.skipBehindMs + policy.maxBehindMs) / 2, self.ring.lastKeyframe(from: cursor) == nil {
            viewer.gate.skipVideo(untilKeyframeFrom: self.ring.head)
            viewer.moveOn(to: self.ring.head, in: self.ring, nowMs: nowMs)
            viewer.noteSlow(nowMs: nowMs)
            viewer.sink.skipped(viewer, behindMs: ageMs)
        }
    }

    /// Moves a viewer that is behind in an audio-only stream of pieces. Each piece is a keyframe; the newest is sent however old it is.
    func skipToNewestPiece(_ viewer: Viewer, from cursor: Int, nowMs: Int64) {
        guard !viewer.gate.waitsForKeyframe, let newest = self.ring.lastKeyframe(from: cursor + 1) else { return }
        viewer.gate.skipVideo(untilKeyframeFrom: newest)
        viewer.moveOn(to: newest, in: self.ring, nowMs: nowMs)
        viewer.noteSlow(nowMs: nowMs)
        viewer.sink.skipped(viewer, behindMs: nowMs - self.ring[cursor].arrivalMs)
    }

    /// Samples the kernel's queue of each viewer, and updates watermarks and head starts. Once a second.
    func sampleKernel(limitMs: Int64, nowMs: Int64) {
        // A quarter of a second of the stream may wait in the kernel unsent.
        let lowWater = self.lowWater
        for index in 0..<self.viewers.count {
            let viewer = self.viewers[index]
            guard !viewer.isDetached else { continue }
            viewer.unsentBytes = viewer.sink.unsentBytes()
            // Only for a marked change: it is a system call.
            if lowWater > 0, viewer.lowWater == 0 || lowWater > viewer.lowWater * 3 / 2 || lowWater < viewer.lowWater / 2 {
                viewer.lowWater = lowWater
                viewer.sink.setLowWater(lowWater)
            }
            viewer.judgeBurst(in: self, limitMs: limitMs, nowMs: nowMs)
        }
    }

    /// Viewers whose own delay exceeds `maxBehindMs`, slowest first, but at most as many as one sweep may cut. `bytesPerSecond` is 0 when there is no
    /// fresh sample of the kernel's queues. With `isSample` each viewer's delay is recorded for metrics.
    func tooSlow(bytesPerSecond: Int, maxBehindMs: Int64, isSample: Bool, nowMs: Int64) -> ArraySlice<SlowViewer> {
        var near: UInt64 = 0
        let lateMs = self.lateness.ms(nowMs)
        var slow: [SlowViewer] = []
        // Read once: a property's read copies the ring, with a reference counted for each of its parts.
        let (viewers, ring) = (self.viewers, self.ring)
        for viewer in viewers {
            guard !viewer.isDetached, !viewer.isPaused else { continue }
            // The cheaper check first. Nearly all are near live, and the own part never exceeds the whole.
            let behindMs = viewer.behindMs(in: ring, bytesPerSecond: bytesPerSecond, nowMs: nowMs)
            if behindMs > viewer.longestBehindMs { viewer.longestBehindMs = behindMs }
            if isSample {
                // Nearly all viewers are in the first range, so these are counted together.
                if behindMs < RelayFigures.nearMs { near += 1 } else { self.figures.noteBehind(ms: behindMs) }
            }
            guard behindMs > min(Viewer.slowMs, maxBehindMs) else { continue }
            let ownMs = viewer.ownDelayMs(in: ring, bytesPerSecond: bytesPerSecond, lateMs: lateMs, nowMs: nowMs)
            if ownMs > Viewer.slowMs { viewer.noteSlow(nowMs: nowMs) }
            if ownMs > maxBehindMs { slow.append(SlowViewer(viewer: viewer, behindMs: behindMs, ownMs: ownMs)) }
        }
        if near > 0 { self.figures.noteBehind(ms: 0, viewers: near) }
        slow.sort { $0.ownMs > $1.ownMs }
        return slow.prefix(max(Self.fewestCuts, viewers.count / 100))
    }

    /// One sweep may cut this many viewers even of a small audience. There are ten sweeps a second.
    private static let fewestCuts = 8

    /// All viewers with their delays, to rank the worst-served. By own delay first, then by total.
    func delayedViewers(nowMs: Int64) -> [SlowViewer] {
        let rate = self.rate.peak
        let lateMs = self.lateness.ms(nowMs)
        return self.viewers.compactMap { viewer in
            guard !viewer.isDetached, !viewer.isPaused else { return nil }
            return SlowViewer(
                viewer: viewer, behindMs: viewer.behindMs(in: self.ring, bytesPerSecond: rate, nowMs: nowMs),
                ownMs: viewer.ownDelayMs(in: self.ring, bytesPerSecond: rate, lateMs: lateMs, nowMs: nowMs))
        }
    }
}
