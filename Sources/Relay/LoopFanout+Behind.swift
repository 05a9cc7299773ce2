/// Viewers that are behind: which of them are to blame for it, and what follows.
extension LoopFanout {
    /// A viewer over the age limit.
    struct SlowViewer {
        let viewer: Viewer
        /// Behind live.
        let behindMs: Int64
        /// By its own doing.
        let ownMs: Int64
    }

    /// Where the viewer stands that is furthest behind; the head when none is.
    var slowestCursor: Int {
        var slowest = self.ring.head
        for index in 0..<self.viewers.count {
            let lane = self.lanes.base[index]
            if lane.isSteady {
                slowest = min(slowest, lane.cursor)
            } else {
                let viewer = self.viewers[index]
                if !viewer.isDetached, !viewer.isPaused { slowest = min(slowest, viewer.cursor ?? slowest) }
            }
        }
        return slowest
    }

    /// Milliseconds that the next message has waited for the viewer that is furthest behind; 0 when all have the newest.
    func slowestWaitMs(nowMs: Int64) -> Int64 {
        let cursor = max(self.slowestCursor, self.ring.base)
        return cursor < self.ring.head ? nowMs - self.ring[cursor].arrivalMs : 0
    }

    /// Bytes that a viewer's kernel may hold unsent; 0 while the stream's rate is not known.
    var lowWater: Int {
        guard self.rate.bytesPerSecond > 0 else { return 0 }
        // What the kernel has cannot be left out any more.
        let least = self.maxQueueMs == nil ? 16 << 10 : 2 << 10
        return min(max(self.rate.bytesPerSecond / 4, least), 128 << 10)
    }

    /// Behind by more than `skipBehindMs`: on to the newest keyframe. By much more and none newer: video waits for the next one.
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
        } else if ageMs > (policy.skipBehindMs + policy.maxBehindMs) / 2, self.ring.lastKeyframe(from: cursor) == nil {
            viewer.gate.skipVideo(untilKeyframeFrom: self.ring.head)
            viewer.moveOn(to: self.ring.head, in: self.ring, nowMs: nowMs)
        }
    }

    /// A look into the kernel, and what follows from it. Once a second.
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

    /// Viewers that are further behind than `maxBehindMs` by their own doing, slowest first; at most as many as may go in one sweep.
    /// `bytesPerSecond`: 0 when what the kernel holds is not known afresh.
    func tooSlow(bytesPerSecond: Int, maxBehindMs: Int64, nowMs: Int64) -> ArraySlice<SlowViewer> {
        let lateMs = self.lateness.ms(nowMs)
        var slow: [SlowViewer] = []
        for index in 0..<self.viewers.count {
            let viewer = self.viewers[index]
            guard !viewer.isDetached, !viewer.isPaused else { continue }
            // Nearly all are near the live edge, and their own part is no more than the whole.
            let behindMs = viewer.behindMs(in: self.ring, bytesPerSecond: bytesPerSecond, nowMs: nowMs)
            guard behindMs > maxBehindMs else { continue }
            let ownMs = viewer.ownDelayMs(in: self.ring, bytesPerSecond: bytesPerSecond, lateMs: lateMs, nowMs: nowMs)
            if ownMs > maxBehindMs { slow.append(SlowViewer(viewer: viewer, behindMs: behindMs, ownMs: ownMs)) }
        }
        slow.sort { $0.ownMs > $1.ownMs }
        return slow.prefix(max(Self.fewestCuts, self.viewers.count / 100))
    }

    /// Cut in one sweep at least, where so many are too slow: ten times as many in a second.
    private static let fewestCuts = 8

    /// All viewers, with what tells who is served worst: its own delay, then its place.
    func standings(nowMs: Int64) -> [SlowViewer] {
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
