import NIOCore

/// The media of one stream that HLS clients can get now, and the playlists that tell them of it.
///
/// Owned by whoever muxes the stream, on that owner's thread; a plain value with no clock: `nowMs` is any monotonic number of
/// milliseconds, the same one in all calls. RFC 8216bis (draft-pantos-hls-rfc8216bis).
///
///     begin → append … append → interrupt → begin → append … → end
///             └ begin with another format: EXT-X-DISCONTINUITY ┘
///
/// A segment starts at the first keyframe after `segmentMs`; without a keyframe it ends at `maxSegmentMs` all the same. The target
/// duration is learnt from the first segment, before any playlist is given out, and holds. When keyframes become rarer later the choice is
/// between segments that start with no keyframe and a target duration that grows: it grows, by doubling, at most up to
/// `maxSegmentMs`, and `Statistics.targetRaises` says so. Everything listed before stays valid under a longer target.
package struct MediaWindow: Sendable {
    package let configuration: Configuration
    let epoch: String
    let firstSequence: Int

    /// Ended segments, oldest first, numbers without gaps: `retiredCount` that are only kept for clients with an older playlist, then
    /// the listed ones.
    var segments = CircularBuffer<Segment>()
    var retiredCount = 0
    var open: Segment?
    /// Oldest first. The last is the current one.
    var initializations: [Initialization] = []
    var format: MediaFormat?

    /// Media Sequence Number of the next segment to open.
    var nextSequence: Int
    /// EXT-X-DISCONTINUITY-SEQUENCE.
    var discontinuitySequence: Int
    var nextPart = 0
    var nextInitialization = 0
    /// The next segment does not go on where the last one ended.
    var breaksNext = false
    /// Segments before this Media Sequence Number have their parts listed no more.
    var partsFrom: Int
    /// Microseconds of the listed segments.
    var listedMicros: Int64 = 0
    /// Microseconds of the longest playlist so far.
    var longestMicros: Int64 = 0
    /// Microseconds since 1970 at which the next segment starts if nothing is amiss.
    var nextDateMicros: Int64?
    /// How much over-long parts are the rule.
    var longPartsWeight = 0
    var rates = RateMeter()
    var playlists: [PlaylistKind: CachedPlaylist] = [:]

    /// Changes with everything that a playlist shows.
    package internal(set) var version = 0
    /// The same for playlists without parts.
    var segmentVersion = 0
    /// Seconds: EXT-X-TARGETDURATION. 0 before there is a playlist.
    package internal(set) var targetDuration = 0
    /// Microseconds: PART-TARGET. 0 before there is a playlist.
    package internal(set) var partTargetMicros: Int64 = 0
    package internal(set) var hasEnded = false
    /// The publisher is away: `append` wants a `begin` first.
    package internal(set) var isInterrupted = false
    /// Bytes of memory that the media here holds.
    package internal(set) var heldBytes = 0
    /// Segments here that start with no keyframe, retired ones not among them.
    var dependentCount = 0
    /// The next segment starts in the middle of a group of pictures.
    var nextIsDependent = false
    /// Microseconds after which the next segment ends without a keyframe, see ``startEarly(nowMs:)``.
    var earlyCutMicros: Int64?
    /// Whether every segment that playlists list starts with a keyframe, and the one that follows as well.
    package var isIndependent: Bool { self.dependentCount == 0 && !self.nextIsDependent }
    package internal(set) var statistics = Statistics()
    /// Playlists that were put together: all other answers were copies of one.
    package internal(set) var playlistsWritten = 0

    /// What the window had to do that it would rather not.
    package struct Statistics: Sendable, Equatable {
        /// Times that the target duration or the part target grew while playlists were out.
        package var targetRaises = 0
        /// Segments that start with no keyframe.
        package var forcedCuts = 0
        /// Segments that left the playlist early, or lost their grace, for want of memory.
        package var starvedRemovals = 0
        /// Parts whose duration was not believed.
        package var clampedDurations = 0

        package init() {}
    }

    /// - Parameters:
    ///   - epoch: 1…32 ASCII letters and digits, in the name of everything here: another for each window, so that no name ever stands for
    ///     other bytes.
    ///   - firstSequence: what EXT-X-MEDIA-SEQUENCE and EXT-X-DISCONTINUITY-SEQUENCE start at. They must never go back at one URL, so
    ///     where a later window takes a URL over, seconds since 1970 are a good choice.
    package init(epoch: String, firstSequence: Int = 0, configuration: Configuration = Configuration()) throws(HLSError) {
        guard (1...32).contains(epoch.utf8.count), epoch.utf8.allSatisfy(\.isLetterOrDigit) else { throw .badEpoch }
        guard (0...Limits.firstSequence).contains(firstSequence) else { throw .badSequence(firstSequence) }
        self.epoch = epoch
        self.configuration = configuration.clamped()
        self.firstSequence = firstSequence
        self.nextSequence = firstSequence
        self.discontinuitySequence = firstSequence
        self.partsFrom = firstSequence
    }

    /// Whether there is a playlist to give out: one segment has ended.
    package var isReady: Bool { self.targetDuration > 0 }
    /// Segments that playlists list.
    package var listedCount: Int { self.segments.count - self.retiredCount }
    /// Media Sequence Number of the last ended segment; one less than the first when there is none.
    package var lastEnded: Int { self.nextSequence - (self.open == nil ? 1 : 2) }

    /// The first segment that playlists list.
    var oldestListed: Segment? { self.listedCount > 0 ? self.segments[offset: self.retiredCount] : nil }

    /// A publisher starts, returns, or changes its format. With the format that is already there it changes nothing.
    package mutating func begin(_ format: MediaFormat, nowMs: Int64) throws(HLSError) {
        guard !self.hasEnded else { throw .ended }
        guard format.codecs.utf8.count <= Limits.codecsLength, format.codecs.utf8.allSatisfy(\.isQuotable) else { throw .badCodecs }
        let bytes = format.initialization.readableBytes
        let most = min(Limits.initializationBytes, self.segmentBytes / 2)
        guard bytes <= most else { throw .tooLarge(field: "initialization section", found: bytes, max: most) }
        guard bytes > 0 || self.configuration.container == .mpegTS else { throw .missingInitialization }
        if !self.isInterrupted, let current = self.format, format.continues(current) {
            self.format = format
            return
        }
        self.endOpenSegment(nowMs: nowMs)
        self.breaksNext = self.nextSequence > self.firstSequence
        if self.configuration.container == .fragmentedMP4 { self.setInitialization(format.initialization) }
        if self.format.map({ !format.continues($0) }) ?? true { self.rates.restart() }
        self.format = format
        self.isInterrupted = false
        self.noteChange(segments: true)
        self.evict(nowMs: nowMs)
    }

    /// Takes the next piece of media.
    package mutating func append(_ part: MediaPart, nowMs: Int64) throws(HLSError) {
        guard !self.hasEnded else { throw .ended }
        guard self.format != nil, !self.isInterrupted else { throw .notBegun }
        guard part.bytes.readableBytes > 0 else { throw .emptyPart }
        let bytes = Segment.compacted(part.bytes)
        // Its own size, not that of the memory it lies in, which may be twice as large.
        guard bytes.readableBytes <= self.segmentBytes else {
            throw .tooLarge(field: "part", found: part.bytes.readableBytes, max: self.segmentBytes)
        }
        let duration = min(max(part.durationMicros, 1), self.maxSegmentMicros)
        if duration != part.durationMicros { self.statistics.clampedDurations += 1 }
        if self.endsSegment(before: part, durationMicros: duration, heldBytes: Segment.cost(bytes)) { self.endOpenSegment(nowMs: nowMs) }

        let targetBefore = self.targetDuration
        // A part that is too long cannot be listed as one: it becomes a segment of its own, unless such parts are the rule.
        var standsAlone = false
        if self.isTooLong(duration) {
            self.endOpenSegment(nowMs: nowMs)
            standsAlone = !self.adoptsLongParts(duration)
        } else {
            self.longPartsWeight = max(0, self.longPartsWeight - 1)
        }
        var segment = self.open ?? self.makeSegment(startingWith: part)
        self.open = nil  // One owner, or the parts would be copied.
        segment.append(HeldPart(bytes: bytes, durationMicros: duration, isIndependent: part.isIndependent))
        self.nextPart += 1
        self.heldBytes += Segment.cost(bytes)
        if self.isReady { self.raiseTarget(for: segment.durationMicros) }
        if standsAlone { segment.listsParts = false }
        self.open = segment
        if standsAlone { self.endOpenSegment(nowMs: nowMs) }
        self.noteChange(segments: self.targetDuration != targetBefore)
        self.evict(nowMs: nowMs)
    }

    /// The publisher is gone and may return: the open segment ends, and what `begin` brings is another encoding (EXT-X-DISCONTINUITY).
    package mutating func interrupt(nowMs: Int64) {
        guard !self.hasEnded, !self.isInterrupted, self.format != nil else { return }
        self.endOpenSegment(nowMs: nowMs)
        self.isInterrupted = true
        // Nobody will ever get the part that was hinted: its name is spent, and who waits for it is told.
        self.nextPart += 1
        self.noteChange(segments: true)
        self.evict(nowMs: nowMs)
    }

    /// No more media will come: EXT-X-ENDLIST.
    package mutating func end(nowMs: Int64) {
        guard !self.hasEnded else { return }
        self.endOpenSegment(nowMs: nowMs)
        self.hasEnded = true
        self.noteChange(segments: true)
        self.evict(nowMs: nowMs)
    }

    private mutating func makeSegment(startingWith part: MediaPart) -> Segment {
        self.nextIsDependent = false
        if !part.beginsWithKeyframe {
            self.dependentCount += 1
            self.statistics.forcedCuts += 1
        }
        let segment = Segment(
            sequence: self.nextSequence, hasDiscontinuity: self.breaksNext, isIndependent: part.beginsWithKeyframe,
            initialization: self.initializations.last?.number ?? 0,
            firstPart: self.nextPart, programDateTimeMs: self.dateOfNextSegment(part.programDateTimeMs))
        self.nextSequence += 1
        self.breaksNext = false
        return segment
    }

    private mutating func setInitialization(_ bytes: ByteBuffer) {
        if let current = self.initializations.last {
            guard current.bytes != bytes else { return }
            if self.segments.last?.initialization != current.number {
                self.initializations.removeLast()
                self.heldBytes -= Segment.cost(current.bytes)
            }
        }
        let held = Segment.compacted(bytes)
        self.initializations.append(Initialization(number: self.nextInitialization, bytes: held))
        self.heldBytes += Segment.cost(held)
        self.nextInitialization += 1
    }

    /// The next part begins with a keyframe that starts a segment, so the open one is complete.
    package mutating func endSegment(nowMs: Int64) {
        guard self.open != nil else { return }
        self.endOpenSegment(nowMs: nowMs)
        self.evict(nowMs: nowMs)
    }

    /// Makes an ended segment of the open one, if there is one.
    mutating func endOpenSegment(nowMs: Int64) {
        guard var segment = self.open else { return }
        self.open = nil
        self.earlyCutMicros = nil
        if !self.isReady { self.learnTargets(from: &segment) }
        segment.listedMs = nowMs
        self.listedMicros += segment.durationMicros
        self.nextDateMicros = self.nextDateMicros.map { $0 + segment.durationMicros }
        self.rates.add(bytes: segment.byteCount, micros: segment.durationMicros, targetDuration: self.targetDuration)
        self.segments.append(segment)
        self.noteChange(segments: true)
    }

    mutating func noteChange(segments: Bool) {
        self.version += 1
        if segments { self.segmentVersion += 1 }
    }
}

extension UInt8 {
    /// ASCII letters and digits.
    var isLetterOrDigit: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        default: false
        }
    }

    /// Printable, and no double quote: what a quoted-string may hold (RFC 8216bis §4.2) and is safe in one.
    var isQuotable: Bool { (0x20...0x7E).contains(self) && self != UInt8(ascii: "\"") }
}
