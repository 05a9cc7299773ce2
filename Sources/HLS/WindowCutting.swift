import NIOCore

/// Decides where parts and segments end, and chooses the two targets in playlists.
extension MediaWindow {
    /// Weight that each over-long part adds; every other part subtracts one. From `weightOfRule` on, the part target follows over-long
    /// parts: four in a row, or among few others.
    private static let longPartWeight = 8
    private static let weightOfRule = 25

    /// Maximum duration of a segment, in microseconds.
    var maxSegmentMicros: Int64 { Int64(self.configuration.maxSegmentMs) * 1_000 }
    /// Maximum bytes of memory for a segment, and so for a part.
    var segmentBytes: Int { self.configuration.maxBytes / 4 }
    /// Segments that Chromium's native player takes of those listed since its last look, a target duration ago. It leaves out the ones before, and
    /// ends with an error at a gap of more than two seconds (Chromium 156).
    static let segmentsInTarget: Int64 = 3
    /// Microseconds by which that player looks late.
    private static let pollSlackMicros: Int64 = 500_000

    /// Microseconds after which a keyframe starts a segment: a tenth less than `segmentMs`. Otherwise, at 2 s, three groups of 0.999 s
    /// would make a segment of 3 s. With a longer target duration, enough for no more than ``segmentsInTarget``.
    var dueMicros: Int64 {
        let micros = Int64(self.configuration.segmentMs) * 900
        guard self.isReady else { return micros }
        let due = (Int64(self.targetDuration) * 1_000_000 + Self.pollSlackMicros) / Self.segmentsInTarget
        return max(micros, min(due, self.maxSegmentMicros))
    }

    /// Whether the pending part ends before a frame of `frameMicros`. Both in microseconds. Here and below, a part that ended too soon counts as the
    /// beginning of the pending one.
    ///
    /// The part ends as near to `partMs` as whole frames allow. Once a part target is published, it ends as near to the duration that the
    /// target was derived from, neither before 85 % of the target nor, if frames are even, beyond it. A part never ends empty.
    /// ``longestPartMicros`` is the bound for uneven frames.
    package func closesPart(pendingMicros: Int64, frameMicros: Int64) -> Bool {
        pendingMicros >= self.partDueMicros(frameMicros: frameMicros)
    }

    /// Microseconds at which a pending part ends before a frame of `frameMicros`.
    package func partDueMicros(frameMicros: Int64) -> Int64 {
        let frame = min(max(frameMicros, 0), self.maxSegmentMicros)
        guard self.isReady, self.configuration.isLowLatency else {
            return max(1, Int64(self.configuration.partMs) * 1_000 - frame / 2)
        }
        let due = max(self.shortestPartMicros, min(self.partTargetMicros - frame + 1, self.partTargetMicros * 100 / 108 - frame / 2))
        return max(1, due - self.shortMicros)
    }

    /// Microseconds that a part must have unless it is its segment's last (RFC 8216bis §4.4.4.9). 0 before the first playlist.
    private var shortestPartMicros: Int64 { (self.partTargetMicros * 85 + 99) / 100 }
    private var shortMicros: Int64 { self.shortPart?.durationMicros ?? 0 }

    /// Whether a part waits for the next one to join it.
    func isTooShort(_ part: MediaPart) -> Bool {
        part.isCutShort && !part.isIndependent && self.configuration.isLowLatency && part.durationMicros < self.shortestPartMicros
    }

    /// The part with the one before it, if that ended too soon. A keyframe that starts a segment stays at its beginning.
    mutating func joined(_ part: MediaPart, nowMs: Int64) -> MediaPart {
        guard let short = self.shortPart else { return part }
        let fits = short.bytes.readableBytes + part.bytes.readableBytes <= self.segmentBytes
        guard fits, !part.beginsWithKeyframe || !self.startsSegment(pendingMicros: 0) else {
            self.listShortPart(nowMs: nowMs)
            return part
        }
        self.forgetShortPart()
        var joined = part
        joined.bytes = ByteBuffer()
        joined.bytes.reserveCapacity(short.bytes.readableBytes + part.bytes.readableBytes)
        joined.bytes.writeImmutableBuffer(short.bytes)
        joined.bytes.writeImmutableBuffer(part.bytes)
        joined.durationMicros = min(short.durationMicros + part.durationMicros, self.maxSegmentMicros)
        joined.beginsWithKeyframe = part.beginsWithKeyframe && !short.holdsPictures
        joined.holdsPictures = short.holdsPictures || part.holdsPictures
        joined.programDateTimeMs = short.programDateTimeMs
        return joined
    }

    /// Lists the part that ended too soon as it is: it is its segment's last.
    mutating func listShortPart(nowMs: Int64) {
        guard let short = self.shortPart else { return }
        self.forgetShortPart()
        self.list(short, nowMs: nowMs)
    }

    private mutating func forgetShortPart() {
        guard let short = self.shortPart else { return }
        self.heldBytes -= Segment.cost(short.bytes)
        self.shortPart = nil
    }

    /// Microseconds that a part of several frames must not exceed; nil where no parts are listed. It ends before a frame that would exceed it.
    package var longestPartMicros: Int64? {
        guard self.configuration.isLowLatency else { return nil }
        return self.isReady ? max(1, self.partTargetMicros - self.shortMicros) : Int64(self.configuration.partMs) * 1_500
    }

    /// The open segment, if it takes more parts.
    private var growing: Segment? { self.holdsSegment ? nil : self.open }

    /// Microseconds at which a pending part ends before a keyframe.
    package var segmentDueMicros: Int64 {
        guard let open = self.growing else { return self.dueMicros }
        return open.isIndependent ? max(0, self.dueMicros - open.durationMicros - self.shortMicros) : 0
    }

    /// Whether a keyframe that just arrived starts a segment and ends the pending part. If not, the keyframe goes into the part of
    /// `pendingMicros`, which would otherwise be shorter than a part may be.
    package func startsSegment(pendingMicros: Int64) -> Bool {
        let pending = max(pendingMicros, 0) + self.shortMicros
        guard let open = self.growing else { return pending == 0 || pending >= self.dueMicros }
        return !open.isIndependent || open.durationMicros + pending >= self.dueMicros
    }

    /// Whether the open segment ends before this part.
    func endsSegment(before part: MediaPart) -> Bool {
        guard let open = self.growing else { return self.open != nil }
        // A segment that started without a keyframe ends at the next one, however soon.
        let isDue = open.durationMicros >= self.dueMicros || !open.isIndependent
        if part.beginsWithKeyframe && isDue { return true }
        if let earlyCuts, open.durationMicros >= earlyCuts.micros { return true }
        return open.durationMicros + part.durationMicros > self.maxSegmentMicros
            || open.heldBytes + Segment.cost(part.bytes) > self.segmentBytes || open.parts.count >= Limits.partsPerSegment
    }

    /// Chooses both targets from the first segment that ends.
    ///
    /// Target duration: a segment's rounded length must not exceed it (RFC 8216bis §4.4.3.1), so a tenth is added for keyframes at uneven
    /// times. Part target: the length of most parts plus a twelfth, since parts must be 85…100 % of it (§4.4.4.9) and RTMP's timestamps are
    /// whole milliseconds, or jitter. If frames are so uneven that some part is longer, that part's length. If the first segment's parts still
    /// violate it, that segment is listed without them.
    mutating func learnTargets(from segment: inout Segment) {
        var longest = max(segment.durationMicros, Int64(self.configuration.segmentMs) * 1_000)
        if let interval = self.format?.keyframeIntervalMs, interval > 0 {
            // Whole groups of pictures, enough to fill a segment.
            let micros = Int64(min(interval, self.configuration.maxSegmentMs)) * 1_000
            longest = max(longest, (self.dueMicros + micros - 1) / micros * micros)
        }
        self.targetDuration = min(max(Self.roundedSeconds(longest + longest / 10), 1), self.highestTarget)
        self.raiseTarget(for: segment.durationMicros)
        let lengths = (segment.parts.count > 1 ? segment.parts.dropLast() : segment.parts[...]).map(\.durationMicros).sorted()
        self.choosePartTarget(for: lengths.isEmpty ? 1 : lengths[lengths.count * 3 / 4])
        if let longest = lengths.last, longest > self.partTargetMicros, longest * 4 <= self.partTargetMicros * 5 {
            self.partTargetMicros = min((longest + 999) / 1_000 * 1_000, Int64(self.targetDuration) * 1_000_000)
        }
        segment.listsParts = segment.keepsParts(to: self.partTargetMicros)
        self.statistics.targetRaises = 0
    }

    /// Raises the target duration if a segment of `micros` needs it.
    mutating func raiseTarget(for micros: Int64) {
        guard Self.roundedSeconds(micros) > self.targetDuration else { return }
        let needed = Self.roundedSeconds(micros)
        self.targetDuration = max(needed, min(self.targetDuration * 2, self.highestTarget))
        self.statistics.targetRaises += 1
    }

    /// Counts over-long parts. Once such parts are the rule, the next segment raises the part target: one that lists parts of its own cannot.
    mutating func noteLength(of micros: Int64) {
        guard self.isReady, self.configuration.isLowLatency, micros > self.partTargetMicros else {
            self.longPartsWeight = max(0, self.longPartsWeight - 1)
            return
        }
        self.longPartsWeight += Self.longPartWeight
        if self.longPartsWeight >= Self.weightOfRule { self.longPartMicros = max(micros, self.longPartMicros ?? 0) }
    }

    /// Raises the part target if over-long parts are the rule, for the segment that opens now. Parts made under the old target are no longer listed.
    mutating func adoptLongParts() {
        guard let micros = self.longPartMicros else { return }
        self.choosePartTarget(for: micros)
        self.statistics.targetRaises += 1
        self.partsFrom = self.nextSequence
        self.longPartsWeight = 0
        self.longPartMicros = nil
    }

    private var highestTarget: Int { Self.roundedSeconds(self.maxSegmentMicros) }

    /// Rounds to the nearest whole second, as RFC 8216bis §4.4.3.1 compares them.
    static func roundedSeconds(_ micros: Int64) -> Int { Int((micros + 500_000) / 1_000_000) }

    /// Chooses a part target in whole milliseconds for parts of `micros`. It must not exceed the target duration, which grows if needed.
    private mutating func choosePartTarget(for micros: Int64) {
        let suited = (micros * 108 / 100 + 999) / 1_000 * 1_000
        while Int64(self.targetDuration) * 1_000_000 < micros { self.targetDuration += 1 }
        self.partTargetMicros = min(suited, Int64(self.targetDuration) * 1_000_000)
    }

    /// The date of the segment that now opens, in milliseconds since 1970. Follows the caller's clock when that runs half a second ahead,
    /// but never goes back: two segments must not claim the same date (RFC 8216bis §6.2.1).
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
