/// Where parts and segments end, and the two targets that playlists promise.
extension MediaWindow {
    /// What an over-long part weighs, against one of each other part since; and the weight from which over-long parts are the rule, so that
    /// the part target follows them: four in a row, or among few others.
    private static let longPartWeight = 8
    private static let weightOfRule = 25

    /// Microseconds that a segment is at most.
    var maxSegmentMicros: Int64 { Int64(self.configuration.maxSegmentMs) * 1_000 }
    /// Bytes of memory that a segment, and so a part, is at most.
    var segmentBytes: Int { self.configuration.maxBytes / 4 }
    /// Microseconds after which a keyframe starts a segment. A tenth early: three groups of 0.999 s would else make a segment of 3 s.
    var dueMicros: Int64 { Int64(self.configuration.segmentMs) * 900 }

    /// Whether the pending part is to end before a frame of `frameMicros` is added to it, in microseconds.
    ///
    /// As near to `partMs` as whole frames come; once the part target is told, as near to what it was learnt from, and never over it. A
    /// part never ends empty.
    package func closesPart(pendingMicros: Int64, frameMicros: Int64) -> Bool {
        pendingMicros >= self.partDueMicros(frameMicros: frameMicros)
    }

    /// Microseconds from which on a pending part ends before a frame of `frameMicros`.
    package func partDueMicros(frameMicros: Int64) -> Int64 {
        let frame = min(max(frameMicros, 0), self.maxSegmentMicros)
        guard self.isReady, self.configuration.isLowLatency else {
            return max(1, Int64(self.configuration.partMs) * 1_000 - frame / 2)
        }
        return max(1, min(self.partTargetMicros - frame + 1, self.partTargetMicros * 100 / 108 - frame / 2))
    }

    /// Microseconds from which on a pending part ends before a keyframe.
    package var segmentDueMicros: Int64 {
        guard let open = self.open else { return self.nextIsDependent ? 0 : self.dueMicros }
        return open.isIndependent ? max(0, self.dueMicros - open.durationMicros) : 0
    }

    /// Whether the pending part, of `pendingMicros`, is to end so that a part that begins with the keyframe which just came starts a
    /// segment. If not, the keyframe belongs inside the pending part: a part that ends early would be shorter than parts may be.
    package func startsSegment(pendingMicros: Int64) -> Bool {
        let pending = max(pendingMicros, 0)
        guard let open = self.open else { return pending == 0 || pending >= self.dueMicros || self.nextIsDependent }
        return !open.isIndependent || open.durationMicros + pending >= self.dueMicros
    }

    /// Whether the open segment ends before this part.
    func endsSegment(before part: MediaPart, durationMicros: Int64, heldBytes: Int) -> Bool {
        guard let open = self.open else { return false }
        // After a segment that had to start without a keyframe the next keyframe is taken, however soon it comes.
        let isDue = open.durationMicros >= self.dueMicros || !open.isIndependent
        if part.startsSegment || (part.beginsWithKeyframe && isDue) { return true }
        if let earlyCutMicros, open.durationMicros >= earlyCutMicros { return true }
        return open.durationMicros + durationMicros > self.maxSegmentMicros || open.heldBytes + heldBytes > self.segmentBytes
            || open.parts.count >= Limits.partsPerSegment
    }

    /// Whether the open segment's newest part is shorter than a part may be that has others of its segment behind it (RFC 8216bis §4.4.4.9).
    /// Then the next one has to start a segment.
    package var endsInShortPart: Bool {
        guard self.isReady, self.configuration.isLowLatency, let open = self.open, open.listsParts, let last = open.parts.last else {
            return false
        }
        return !last.isIndependent && last.durationMicros * 100 < self.partTargetMicros * 85
    }

    /// Chooses both targets, from the first segment to end.
    ///
    /// Target duration: a segment's length, rounded, must not be above it (RFC 8216bis §4.4.3.1), so some slack is told where keyframes come
    /// at uneven times. Part target: what most parts are and a twelfth more, since parts must be 85…100 % of it (§4.4.4.9) and
    /// RTMP's timestamps are whole milliseconds, or jitter. A first segment whose parts do not keep to it is listed without them.
    mutating func learnTargets(from segment: inout Segment) {
        var longest = max(segment.durationMicros, Int64(self.configuration.segmentMs) * 1_000)
        if let interval = self.format?.keyframeIntervalMs, interval > 0 {
            // Whole groups of pictures, as many as a segment takes.
            let micros = Int64(min(interval, self.configuration.maxSegmentMs)) * 1_000
            longest = max(longest, (self.dueMicros + micros - 1) / micros * micros)
        }
        self.targetDuration = min(max(Self.roundedSeconds(longest + longest / 10), 1), self.highestTarget)
        self.raiseTarget(for: segment.durationMicros)
        let lengths = (segment.parts.count > 1 ? segment.parts.dropLast() : segment.parts[...]).map(\.durationMicros).sorted()
        self.choosePartTarget(for: lengths.isEmpty ? 1 : lengths[lengths.count * 3 / 4])
        segment.listsParts = segment.keepsParts(to: self.partTargetMicros)
        self.statistics.targetRaises = 0
    }

    /// Makes the target duration long enough for a segment of so many microseconds.
    mutating func raiseTarget(for micros: Int64) {
        guard Self.roundedSeconds(micros) > self.targetDuration else { return }
        let needed = Self.roundedSeconds(micros)
        self.targetDuration = max(needed, min(self.targetDuration * 2, self.highestTarget))
        self.statistics.targetRaises += 1
    }

    /// Whether a part of so many microseconds is longer than parts may be.
    func isTooLong(_ micros: Int64) -> Bool {
        self.isReady && self.configuration.isLowLatency && micros > self.partTargetMicros
    }

    /// Whether over-long parts, of so many microseconds, are the rule by now. Then the part target is made long enough for them, and parts under
    /// the old one are listed no more.
    mutating func adoptsLongParts(_ micros: Int64) -> Bool {
        self.longPartsWeight += Self.longPartWeight
        guard self.longPartsWeight >= Self.weightOfRule else { return false }
        self.choosePartTarget(for: micros)
        self.statistics.targetRaises += 1
        self.partsFrom = self.nextSequence
        self.longPartsWeight = 0
        return true
    }

    private var highestTarget: Int { Self.roundedSeconds(self.maxSegmentMicros) }

    /// Whole seconds as RFC 8216bis §4.4.3.1 compares them: the nearest.
    static func roundedSeconds(_ micros: Int64) -> Int { Int((micros + 500_000) / 1_000_000) }

    /// A part target, of whole milliseconds, that suits parts of so many microseconds. It must not be above the target duration.
    private mutating func choosePartTarget(for micros: Int64) {
        let suited = (micros * 108 / 100 + 999) / 1_000 * 1_000
        while Int64(self.targetDuration) * 1_000_000 < micros { self.targetDuration += 1 }
        self.partTargetMicros = min(suited, Int64(self.targetDuration) * 1_000_000)
    }

    /// Milliseconds since 1970 of the segment that now opens; the caller's clock is followed where it runs off by half a second, but
    /// never back: two segments must not lay claim to one date (RFC 8216bis §6.2.1).
    mutating func dateOfNextSegment(_ givenMs: Int64?) -> Int64? {
        let earliest: Int64 = 0
        let latest: Int64 = 253_402_300_799_000  // The year 9999's last second.
        if let givenMs {
            let given = min(max(givenMs, earliest), latest) * 1_000
            if self.nextDateMicros.map({ given - $0 > 500_000 }) ?? true { self.nextDateMicros = given }
        }
        return self.nextDateMicros.map { min($0 / 1_000, latest) }
    }
}
