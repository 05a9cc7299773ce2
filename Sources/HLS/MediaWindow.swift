import NIOCore

/// The media of one stream that HLS clients can get now, and its playlists.
///
/// Owned by the stream's muxer, on its thread. A plain value with no clock: `nowMs` is any monotonic number of milliseconds, from the same
/// clock in all calls. RFC 8216bis (draft-pantos-hls-rfc8216bis).
///
///     begin → append … append → interrupt → begin → append … → end
///             └ begin with another format: EXT-X-DISCONTINUITY ┘
///
/// A segment that has all its parts is listed as one (EXTINF) together with the first part of the next segment, which tells whether a discontinuity
/// lies between them. hls.js 1.6 takes a segment without a known follower as followed by more of the same, and gives up when it is not so.
///
/// A segment starts at the first keyframe after `segmentMs`; without a keyframe it ends at `maxSegmentMs`. The first segment sets the
/// target duration, before any playlist is served. If keyframes become rarer later, the target duration grows instead of segments starting
/// without a keyframe: it doubles, up to `maxSegmentMs`, and `Statistics.targetRaises` counts that. Everything listed before stays valid
/// under a longer target.
///
/// No part is listed with more than the part target. One that lasts longer, as a picture does when the camera falls silent, is listed with the
/// target as its duration; its segment's EXTINF is the true one.
package struct MediaWindow: Sendable {
    package let configuration: Configuration
    let epoch: String
    let firstSequence: Int

    /// Ended segments, oldest first, numbered without gaps. The first `retiredCount` are kept only for clients with an older playlist; the
    /// rest are listed.
    var segments = CircularBuffer<Segment>()
    var retiredCount = 0
    var open: Segment?
    /// Whether the open segment has all its parts, and waits for the first of the next to be listed as ended.
    package internal(set) var holdsSegment = false
    /// Oldest first. The last is the current one.
    var initializations: [Initialization] = []
    var format: MediaFormat?

    /// Media Sequence Number of the next segment to open.
    var nextSequence: Int
    /// EXT-X-DISCONTINUITY-SEQUENCE.
    var discontinuitySequence: Int
    var nextPart = 0
    var nextInitialization = 0
    /// Whether the next segment starts with a discontinuity.
    var breaksNext = false
    /// Parts of segments before this Media Sequence Number are no longer listed.
    var partsFrom: Int
    /// Microseconds of all listed segments.
    var listedMicros: Int64 = 0
    /// Microseconds of the longest playlist so far.
    var longestMicros: Int64 = 0
    /// Expected start of the next segment, in microseconds since 1970.
    var nextDateMicros: Int64?
    /// Grows with each over-long part, shrinks with every other; see `noteLength(of:)`.
    var longPartsWeight = 0
    /// Microseconds of over-long parts that have become the rule. The next segment raises the part target for them.
    var longPartMicros: Int64?
    var rates = RateMeter()
    var playlists: [PlaylistKind: CachedPlaylist] = [:]

    /// Increases with every change that a playlist shows.
    package internal(set) var version = 0
    /// The same for playlists without parts.
    var segmentVersion = 0
    /// EXT-X-TARGETDURATION in seconds. 0 before the first playlist.
    package internal(set) var targetDuration = 0
    /// PART-TARGET in microseconds. 0 before the first playlist.
    package internal(set) var partTargetMicros: Int64 = 0
    package internal(set) var hasEnded = false
    /// Whether the publisher is away: `append` needs a `begin` first.
    package internal(set) var isInterrupted = false
    /// Bytes of memory held by this media.
    package internal(set) var heldBytes = 0
    /// Number of segments that start without a keyframe, except retired ones.
    var dependentCount = 0
    /// A part that ended too soon, as the publisher stalled. The next one joins it.
    var shortPart: MediaPart?
    /// See ``startEarly(nowMs:)``.
    var earlyCuts: EarlyCuts?
    /// The segment with the keyframe of an early start; see ``startEarly(nowMs:)``.
    var earlySegment: (sequence: Int, durationMicros: Int64)?
    /// Whether every listed segment starts with a keyframe.
    package var isIndependent: Bool { self.dependentCount == 0 }
    package internal(set) var statistics = Statistics()
    /// Number of playlists written; all other answers shared one of them.
    package internal(set) var playlistsWritten = 0

    /// Counts of events that a window tries to avoid.
    package struct Statistics: Sendable, Equatable {
        /// Times the target duration or the part target grew after the first playlist.
        package var targetRaises = 0
        /// Segments that start without a keyframe.
        package var forcedCuts = 0
        /// Segments that left the playlist early, or lost their grace period, for lack of memory.
        package var starvedRemovals = 0
        /// Parts whose duration was out of range.
        package var clampedDurations = 0
    }

    /// - Parameters:
    ///   - epoch: 1…32 ASCII letters and digits, in every name here. Each window needs another one, so that no name is ever used for other bytes.
    ///   - firstSequence: the first EXT-X-MEDIA-SEQUENCE and EXT-X-DISCONTINUITY-SEQUENCE. They must never go back at one URL, so if a later window
    ///     takes over a URL, seconds since 1970 are a good choice.
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

    /// Whether there is a playlist to serve: one segment has ended.
    package var isReady: Bool { self.targetDuration > 0 }
    /// Number of listed segments.
    package var listedCount: Int { self.segments.count - self.retiredCount }
    /// Media Sequence Number of the last ended segment; `firstSequence - 1` if there is none.
    package var lastEnded: Int { self.nextSequence - (self.open == nil ? 1 : 2) }

    /// The oldest listed segment.
    var oldestListed: Segment? { self.listedCount > 0 ? self.segments[offset: self.retiredCount] : nil }

    /// Starts media in this format: a publisher starts, returns, or changes its format. If the format continues, only updates its frame
    /// rate and keyframe interval.
    ///
    /// - Parameter goesOn: the media's times follow those before an interruption. If its format does too, there is no discontinuity: players that
    ///   stop at one (VLC) play on.
    package mutating func begin(_ format: MediaFormat, goesOn: Bool = false, nowMs: Int64) throws(HLSError) {
        guard !self.hasEnded else { throw .ended }
        guard format.codecs.utf8.count <= Limits.codecsLength, format.codecs.utf8.allSatisfy(\.isQuotable) else { throw .badCodecs }
        let bytes = format.initialization.readableBytes
        let most = min(Limits.initializationBytes, self.segmentBytes / 2)
        guard bytes <= most else { throw .tooLarge(field: "initialization section", found: bytes, max: most) }
        guard bytes > 0 || self.configuration.container == .mpegTS else { throw .missingInitialization }
        if let current = self.format, format.continues(current), !self.isInterrupted || goesOn {
            self.format = format
            if self.isInterrupted { self.noteChange(segments: true) }
            self.isInterrupted = false
            return
        }
        self.listShortPart(nowMs: nowMs)
        self.completeOpenSegment(nowMs: nowMs)
        // The part hinted before an interruption will never exist.
        if self.isInterrupted { self.nextPart += 1 }
        self.breaksNext = self.nextSequence > self.firstSequence
        if self.configuration.container == .fragmentedMP4 { self.setInitialization(format.initialization) }
        if self.format.map({ !format.continues($0) }) ?? true { self.rates.restart() }
        self.format = format
        self.isInterrupted = false
        self.noteChange(segments: true)
        self.evict(nowMs: nowMs)
    }

    /// Appends the next piece of media.
    package mutating func append(_ part: MediaPart, nowMs: Int64) throws(HLSError) {
        guard !self.hasEnded else { throw .ended }
        guard self.format != nil, !self.isInterrupted else { throw .notBegun }
        guard part.bytes.readableBytes > 0 else { throw .emptyPart }
        let bytes = Segment.compacted(part.bytes)
        // Check its own size, not that of its storage, which may be twice as large.
        guard bytes.readableBytes <= self.segmentBytes else {
            throw .tooLarge(field: "part", found: part.bytes.readableBytes, max: self.segmentBytes)
        }
        var part = part
        part.bytes = bytes
        let duration = min(max(part.durationMicros, 1), self.maxSegmentMicros)
        if duration != part.durationMicros { self.statistics.clampedDurations += 1 }
        part.durationMicros = duration
        part = self.joined(part, nowMs: nowMs)
        guard !self.isTooShort(part) else {
            self.heldBytes += Segment.cost(part.bytes)
            self.shortPart = part
            return self.evict(nowMs: nowMs)
        }
        self.list(part, nowMs: nowMs)
    }

    /// Adds a part to the open segment, or to a new one.
    mutating func list(_ part: MediaPart, nowMs: Int64) {
        let targetBefore = self.targetDuration
        if self.endsSegment(before: part) { self.endOpenSegment(nowMs: nowMs) }
        self.noteLength(of: part.durationMicros)
        var segment = self.open ?? self.makeSegment(startingWith: part)
        self.open = nil  // Keep one owner, or the parts would be copied.
        segment.append(HeldPart(bytes: part.bytes, durationMicros: part.durationMicros, isIndependent: part.isIndependent))
        self.nextPart += 1
        self.heldBytes += Segment.cost(part.bytes)
        if self.isReady { self.raiseTarget(for: segment.durationMicros) }
        self.open = segment
        self.noteChange(segments: self.targetDuration != targetBefore)
        self.evict(nowMs: nowMs)
    }

    /// Completes the open segment: the publisher is gone but may return. The next `begin` brings another encoding (EXT-X-DISCONTINUITY), or more of
    /// the same. Requests for the hinted part get an answer: it may never exist.
    package mutating func interrupt(nowMs: Int64) {
        guard !self.hasEnded, !self.isInterrupted, self.format != nil else { return }
        self.listShortPart(nowMs: nowMs)
        self.completeOpenSegment(nowMs: nowMs)
        self.isInterrupted = true
        self.noteChange(segments: true)
        self.evict(nowMs: nowMs)
    }

    /// Ends the window: no more media will come (EXT-X-ENDLIST).
    package mutating func end(nowMs: Int64) {
        guard !self.hasEnded else { return }
        self.listShortPart(nowMs: nowMs)
        self.endOpenSegment(nowMs: nowMs)
        self.hasEnded = true
        self.noteChange(segments: true)
        self.evict(nowMs: nowMs)
    }

    private mutating func makeSegment(startingWith part: MediaPart) -> Segment {
        self.adoptLongParts()
        if part.beginsWithKeyframe {
            self.earlyCuts = nil
        } else {
            self.dependentCount += 1
            self.statistics.forcedCuts += 1
            self.earlyCuts?.left -= 1
            if self.earlyCuts?.left == 0 { self.earlyCuts = nil }
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
            if (self.open ?? self.segments.last)?.initialization != current.number {
                self.initializations.removeLast()
                self.heldBytes -= Segment.cost(current.bytes)
            }
        }
        let held = Segment.compacted(bytes)
        self.initializations.append(Initialization(number: self.nextInitialization, bytes: held))
        self.heldBytes += Segment.cost(held)
        self.nextInitialization += 1
    }

    /// The open segment has all its parts: the next part starts another.
    package mutating func completeSegment(nowMs: Int64) {
        self.listShortPart(nowMs: nowMs)
        guard self.open != nil else { return }
        self.completeOpenSegment(nowMs: nowMs)
        self.evict(nowMs: nowMs)
    }

    /// Completes the open segment, if there is one. Without low latency it is listed at once: no part of it is listed yet.
    private mutating func completeOpenSegment(nowMs: Int64) {
        guard self.configuration.isLowLatency else { return self.endOpenSegment(nowMs: nowMs) }
        self.holdsSegment = self.open != nil
    }

    /// Ends and lists the open segment, if there is one.
    mutating func endOpenSegment(nowMs: Int64) {
        guard var segment = self.open else { return }
        self.open = nil
        self.holdsSegment = false
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

    /// Whether a quoted-string may hold this byte (RFC 8216bis §4.2): printable ASCII without the double quote.
    var isQuotable: Bool { (0x20...0x7E).contains(self) && self != UInt8(ascii: "\"") }
}
