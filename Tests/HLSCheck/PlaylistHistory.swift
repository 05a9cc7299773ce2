/// The answers of one media playlist's URI, fetched repeatedly. Checks each by itself and against all earlier ones.
///
/// A value owned by its test. Completes delta updates from earlier answers.
package struct PlaylistHistory: Sendable {
    /// The last answer, completed if it was a delta update.
    package private(set) var latest: ParsedPlaylist?
    /// Milliseconds by which a segment or part may be late; nil: times are not checked.
    private let cadenceSlackMs: Int64?
    private var segments: [Int: ParsedPlaylist.Segment] = [:]
    /// The parts of each segment by Media Sequence Number, as many as were ever seen.
    private var parts: [Int: [ParsedPlaylist.Part]] = [:]
    private var partsFrom = 0
    /// Media Sequence Numbers of the first two segments that begin with an independent part. A playlist may begin in the middle of a group of pictures
    /// for its first player, but once groups begin segments, all do.
    private var independent: [Int] = []
    private var lastSegmentMs: Int64?
    private var lastPartMs: Int64?
    private var violations: [Violation] = []

    package init(cadenceSlackMs: Int64? = nil) { self.cadenceSlackMs = cadenceSlackMs }

    /// Checks the next answer. `atMs`: the time of its arrival, on any clock.
    package mutating func check(_ text: String, atMs: Int64? = nil) -> [Violation] {
        let (playlist, violations) = readMediaPlaylist(text)
        self.violations = violations
        var whole = playlist
        if playlist.skippedSegments != nil {
            guard let completed = self.latest.flatMap(playlist.applied(to:)) else {
                return violations + [Violation(.deltaWithoutBase, "segments are skipped that were never seen")]
            }
            whole = completed
        }
        if let latest = self.latest { self.compare(whole, with: latest) } else { self.checkStart(whole) }
        self.checkIndependence(whole)
        self.checkTimes(whole, atMs: atMs)
        self.remember(whole)
        self.latest = whole
        return self.violations
    }

    private mutating func note(_ rule: Rule, line: Int? = nil, _ detail: String) {
        self.violations.append(Violation(rule, line: line, detail))
    }

    private mutating func compare(_ new: ParsedPlaylist, with old: ParsedPlaylist) {
        if new.targetDuration != old.targetDuration {
            self.note(.targetDurationChanged, "\(old.targetDuration ?? 0) to \(new.targetDuration ?? 0)")
        } else if new.serverControl != old.serverControl {
            self.note(.headerChanged, "EXT-X-SERVER-CONTROL")
        }
        if new.startMicros != old.startMicros { self.note(.headerChanged, "EXT-X-START") }
        if new.partTargetMicros != old.partTargetMicros { self.note(.headerChanged, "EXT-X-PART-INF") }
        if new.version != old.version { self.note(.headerChanged, "EXT-X-VERSION") }
        if new.mediaSequence < old.mediaSequence { self.note(.sequenceDecreased, "\(old.mediaSequence) to \(new.mediaSequence)") }
        if new.lastSequence < old.lastSequence { self.note(.sequenceDecreased, "the last segment is gone: \(old.lastSequence)") }
        if new.discontinuitySequence < old.discontinuitySequence {
            self.note(.discontinuitySequenceDecreased, "\(old.discontinuitySequence) to \(new.discontinuitySequence)")
        }
        if old.hasEnded, new.content != old.content { self.note(.changedAfterEnd, "") }
        // The last removal must leave at least three target durations; segments appended later only add to them.
        if new.mediaSequence > old.mediaSequence, !new.hasEnded,
            new.segmentMicros < Int64(min(new.targetDuration ?? 0, old.targetDuration ?? 0)) * 3_000_000
        {
            self.note(.removedTooMuch, "\(new.segmentMicros) µs left")
        }
        for segment in new.segments {
            if let known = self.segments[segment.sequence], !known.isSame(as: segment) {
                self.note(.segmentChanged, line: segment.line, "\(segment.sequence): was \(known), is \(segment)")
            }
        }
        self.compareParts(new, with: old)
    }

    private mutating func compareParts(_ new: ParsedPlaylist, with old: ParsedPlaylist) {
        for segment in new.segments + (new.open.map { [$0] } ?? []) where !segment.parts.isEmpty {
            if segment.sequence < self.partsFrom { self.note(.partsRemovedOutOfOrder, line: segment.line, "listed again") }
            guard let known = self.parts[segment.sequence] else { continue }
            if Array(segment.parts.prefix(known.count)) != known {
                self.note(.partChanged, line: segment.line, "\(segment.sequence): \(known) became \(segment.parts)")
            }
        }
        // A segment keeps the map, discontinuity and date that applied to its parts while it was open.
        if let open = old.open, let ended = new.segments.first(where: { $0.sequence == open.sequence }) {
            if ended.map != open.map || ended.discontinuity != open.discontinuity || ended.dateMs != open.dateMs {
                self.note(.segmentChanged, line: ended.line, "what applied to the parts of \(open.sequence) does not apply to it")
            }
        }
        guard let hint = old.hints.first(where: { $0.type == "PART" }) else { return }
        let seen = self.parts.reduce(into: Set<String>()) { $0.formUnion($1.value.map(\.uri)) }
        let all = new.segments + (new.open.map { [$0] } ?? [])
        guard
            let (segment, part) = all.lazy.flatMap({ segment in segment.parts.map { (segment, $0) } }).first(where: {
                !seen.contains($0.1.uri)
            })
        else { return }
        // A hint may be dropped at a discontinuity, or for a segment without parts.
        let isDirectlyNext =
            new.mediaSequence <= old.lastSequence + 1 && segment.sequence <= old.lastSequence + 2 && !segment.hasDiscontinuity
        let lacksParts = all.contains { $0.sequence > old.lastSequence && $0.sequence < segment.sequence && $0.parts.isEmpty }
        let wasOpen = old.open?.sequence == segment.sequence || segment.parts.first == part
        if isDirectlyNext, wasOpen, !lacksParts, part.uri != hint.uri {
            self.note(.hintBroken, line: segment.line, "\(hint.uri) was hinted, \(part.uri) came")
        }
    }

    /// Checks that a player of low latency that comes now starts in a segment that begins with an independent part, or that has no parts to choose from.
    private mutating func checkStart(_ playlist: ParsedPlaylist) {
        guard let holdBack = playlist.serverControl?.seconds("PART-HOLD-BACK"), !playlist.hasEnded else { return }
        let all = playlist.segments + (playlist.open.map { [$0] } ?? [])
        let start = playlist.startMicros ?? max(0, playlist.segmentMicros + playlist.openMicros - holdBack)
        var begin: Int64 = 0
        for segment in all {
            let end = begin + (segment.uri.isEmpty ? playlist.openMicros : segment.durationMicros)
            if start < end {
                var at = begin
                let isFound = segment.parts.contains { part in
                    defer { at += part.durationMicros }
                    return part.isIndependent && (at <= start || at == begin)
                }
                if !isFound, !segment.parts.isEmpty {
                    self.note(.startNotIndependent, line: segment.line, "players start at \(start) µs, in \(segment.sequence)")
                }
                return
            }
            begin = end
        }
    }

    private mutating func checkIndependence(_ playlist: ParsedPlaylist) {
        for segment in playlist.segments + (playlist.open.map { [$0] } ?? []) {
            guard let first = segment.parts.first, self.parts[segment.sequence] == nil else { continue }
            if !first.isIndependent {
                if self.independent.count == 2, segment.sequence > self.independent[1] {
                    self.note(.segmentNotIndependent, line: segment.line, "\(segment.sequence) begins without")
                }
            } else if self.independent.count < 2 {
                self.independent.append(segment.sequence)
            }
        }
    }

    private mutating func checkTimes(_ new: ParsedPlaylist, atMs: Int64?) {
        guard let slack = self.cadenceSlackMs, let atMs else { return }
        let isFirst = self.latest == nil
        if isFirst || new.lastSequence > self.latest?.lastSequence ?? -1 {
            if let last = self.lastSegmentMs, let target = new.targetDuration, atMs - last > Int64(target) * 1_500 + slack {
                self.note(.segmentCadence, "\(atMs - last) ms after the last")
            }
            self.lastSegmentMs = atMs
        }
        let newest = new.open?.parts.last?.uri ?? new.segments.last?.uri
        if isFirst || newest != self.latest.flatMap({ $0.open?.parts.last?.uri ?? $0.segments.last?.uri }) {
            if let last = self.lastPartMs, let target = new.partTargetMicros, atMs - last > target / 1_000 + slack {
                self.note(.partCadence, "\(atMs - last) ms after the last")
            }
            self.lastPartMs = atMs
        }
    }

    private mutating func remember(_ playlist: ParsedPlaylist) {
        for segment in playlist.segments { self.segments[segment.sequence] = segment }
        let all = playlist.segments + (playlist.open.map { [$0] } ?? [])
        for segment in all where !segment.parts.isEmpty { self.parts[segment.sequence] = segment.parts }
        if let first = all.first(where: { !$0.parts.isEmpty }) { self.partsFrom = max(self.partsFrom, first.sequence) }
        // A removed segment can return only with a decreasing sequence, which is noted.
        self.segments = self.segments.filter { $0.key >= playlist.mediaSequence }
        self.parts = self.parts.filter { $0.key >= playlist.mediaSequence }
    }
}
