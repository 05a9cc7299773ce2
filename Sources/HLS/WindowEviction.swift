import NIOCore

/// Removes segments from the playlist, and later from memory.
extension MediaWindow {
    /// Removes retired segments whose time is up. Every change does so too; call it about once a second while no media arrives.
    package mutating func expire(nowMs: Int64) {
        while self.retiredCount > 0, let oldest = self.segments.first, oldest.keptUntilMs <= nowMs { self.forgetOldest() }
    }

    mutating func evict(nowMs: Int64) {
        self.retireByTime(nowMs: nowMs)
        self.expire(nowMs: nowMs)
        while self.heldBytes > self.configuration.maxBytes, !self.segments.isEmpty {
            if self.retiredCount == 0 { self.retireOldest(nowMs: nowMs) }
            self.forgetOldest()
            self.statistics.starvedRemovals += 1
        }
        self.retireParts()
        self.longestMicros = max(self.longestMicros, self.listedMicros + (self.open?.durationMicros ?? 0))
    }

    /// Retires segments beyond the window's duration or `Limits.listedSegments`. By duration, at least three target durations stay (RFC
    /// 8216bis §6.2.2); an ended playlist does not change.
    private mutating func retireByTime(nowMs: Int64) {
        guard !self.hasEnded else { return }
        let least = max(Int64(self.configuration.windowMs) * 1_000, self.threeTargetsMicros)
        while let oldest = self.oldestListed {
            let isOver = self.listedMicros - oldest.durationMicros >= least
            guard isOver || self.listedCount > Limits.listedSegments else { return }
            self.retireOldest(nowMs: nowMs)
        }
    }

    private mutating func retireOldest(nowMs: Int64) {
        guard var oldest = self.oldestListed else { return }
        // §6.2.2: keep it until the time it was first listed + its Availability Duration (its own and the longest playlist's), and its
        // parts for three target durations after their tags went.
        let availableMicros = oldest.durationMicros + self.longestMicros
        let linger = max(Int64(self.configuration.lingerMs), self.threeTargetsMicros / 1_000)
        oldest.keptUntilMs = max(oldest.listedMs &+ availableMicros / 1_000, nowMs &+ linger)
        self.segments[offset: self.retiredCount] = oldest
        self.retiredCount += 1
        self.listedMicros -= oldest.durationMicros
        if oldest.hasDiscontinuity { self.discontinuitySequence += 1 }
        if !oldest.isIndependent { self.dependentCount -= 1 }
        self.noteChange(segments: true)
    }

    private mutating func forgetOldest() {
        guard self.retiredCount > 0, let oldest = self.segments.popFirst() else { return }
        self.retiredCount -= 1
        self.heldBytes -= oldest.heldBytes
        let needed = self.segments.first?.initialization ?? self.open?.initialization
        while self.initializations.count > 1, let first = self.initializations.first, first.number < needed ?? .max {
            self.heldBytes -= Segment.cost(first.bytes)
            self.initializations.removeFirst()
        }
    }

    /// Stops listing parts farther than three target durations from the end (§6.2.2). They are never listed again, though targets may grow.
    private mutating func retireParts() {
        var micros = self.open?.durationMicros ?? 0
        for offset in stride(from: self.segments.count - 1, through: self.retiredCount, by: -1) {
            let segment = self.segments[offset: offset]
            guard segment.sequence >= self.partsFrom else { return }
            if micros > self.threeTargetsMicros {
                self.partsFrom = segment.sequence + 1
                return
            }
            micros += segment.durationMicros
        }
    }

    var threeTargetsMicros: Int64 { Int64(self.targetDuration) * 3_000_000 }
}
