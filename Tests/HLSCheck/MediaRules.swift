/// Checks one media playlist by itself.
package func checkMediaPlaylist(_ text: String) -> [Violation] { readMediaPlaylist(text).violations }

/// Returns the playlist and its violations.
package func readMediaPlaylist(_ text: String) -> (playlist: ParsedPlaylist, violations: [Violation]) {
    let parser = PlaylistParser(text)
    var rules = MediaRules(playlist: parser.playlist, seen: parser.seen)
    rules.check()
    return (parser.playlist, parser.violations + rules.violations)
}

/// The rules for one media playlist, regardless of earlier ones.
private struct MediaRules {
    let playlist: ParsedPlaylist
    /// The number of times each tag occurs.
    let seen: [String: Int]
    var violations: [Violation] = []

    private var all: [ParsedPlaylist.Segment] { self.playlist.segments + (self.playlist.open.map { [$0] } ?? []) }
    /// Microseconds.
    private var target: Int64 { Int64(self.playlist.targetDuration ?? 0) * 1_000_000 }

    mutating func note(_ rule: Rule, line: Int? = nil, _ detail: String) {
        self.violations.append(Violation(rule, line: line, detail))
    }

    mutating func check() {
        self.checkVersion()
        self.checkDurations()
        self.checkServerControl()
        self.checkParts()
        self.checkDates()
        self.checkMaps()
        self.checkEnd()
        var uris = Set<String>()
        for segment in self.all {
            for uri in segment.parts.map(\.uri) + (segment.uri.isEmpty ? [] : [segment.uri]) where !uris.insert(uri).inserted {
                self.note(.ambiguousURI, line: segment.line, uri)
            }
        }
    }

    private mutating func checkVersion() {
        var needed = 1
        if self.all.contains(where: { $0.durationMicros % 1_000_000 != 0 }) { needed = 3 }
        if self.seen["EXT-X-BYTERANGE"] != nil { needed = max(needed, 4) }
        if self.seen["EXT-X-MAP"] != nil { needed = max(needed, self.seen["EXT-X-I-FRAMES-ONLY"] == nil ? 6 : 5) }
        if self.seen["EXT-X-DEFINE"] != nil { needed = max(needed, 8) }
        if self.playlist.skippedSegments != nil { needed = max(needed, 9) }
        let version = self.playlist.version
        if version < needed { self.note(.version, "\(version), needs \(needed)") }
        // A live playlist keeps its version even while it lists no fractional duration.
        if version > max(needed, self.seen["EXTINF"] == nil ? 6 : 3) { self.note(.versionHigherThanNeeded, "\(version), needs \(needed)") }
    }

    private mutating func checkDurations() {
        guard let target = self.playlist.targetDuration else { return self.note(.targetDuration, "missing") }
        for segment in self.playlist.segments where (segment.durationMicros + 500_000) / 1_000_000 > target {
            self.note(.segmentDuration, line: segment.line, "\(segment.durationMicros) µs, target duration \(target) s")
        }
        if let open = self.playlist.open, (self.playlist.openMicros + 500_000) / 1_000_000 > target {
            self.note(.segmentDuration, line: open.line, "parts of \(self.playlist.openMicros) µs, target duration \(target) s")
        }
    }

    private mutating func checkServerControl() {
        if let skipped = self.playlist.skippedSegments {
            if skipped < 1 { self.note(.skip, "no segments skipped") }
            if self.playlist.hasEnded { self.note(.skip, "in a playlist with EXT-X-ENDLIST") }
            if let boundary = self.playlist.serverControl?.seconds("CAN-SKIP-UNTIL") {
                let rest = self.playlist.segmentMicros + self.playlist.openMicros
                if rest < boundary { self.note(.skippedTooMuch, "\(rest) µs left, Skip Boundary \(boundary) µs") }
            } else {
                self.note(.skip, "without CAN-SKIP-UNTIL")
            }
        }
        guard let control = self.playlist.serverControl else {
            if self.playlist.partTargetMicros != nil { self.note(.partHoldBack, "missing") }
            return
        }
        for name in control.values.keys
        where !["CAN-SKIP-UNTIL", "CAN-SKIP-DATERANGES", "HOLD-BACK", "PART-HOLD-BACK", "CAN-BLOCK-RELOAD"].contains(name) {
            self.note(.serverControl, name)
        }
        for name in ["CAN-BLOCK-RELOAD", "CAN-SKIP-DATERANGES"] where control.values[name] != nil && control.bare(name) != "YES" {
            self.note(.serverControl, "\(name) is not YES")
        }
        if control.values["CAN-SKIP-DATERANGES"] != nil, control.values["CAN-SKIP-UNTIL"] == nil {
            self.note(.serverControl, "CAN-SKIP-DATERANGES without CAN-SKIP-UNTIL")
        }
        if control.values["CAN-SKIP-UNTIL"] != nil, control.seconds("CAN-SKIP-UNTIL").map({ $0 < 6 * self.target }) ?? true {
            self.note(.skipBoundary, "less than six target durations")
        }
        if control.values["HOLD-BACK"] != nil, control.seconds("HOLD-BACK").map({ $0 < 3 * self.target }) ?? true {
            self.note(.holdBack, "less than three target durations")
        }
        guard let partTarget = self.playlist.partTargetMicros else { return }
        guard let partHoldBack = control.seconds("PART-HOLD-BACK") else { return self.note(.partHoldBack, "missing") }
        if partHoldBack < 2 * partTarget { self.note(.partHoldBack, "less than two part targets") }
        if partHoldBack < 3 * partTarget { self.note(.partHoldBackAdvice, "less than three part targets") }
    }

    private mutating func checkParts() {
        let hasParts = self.all.contains { !$0.parts.isEmpty }
        guard let target = self.playlist.partTargetMicros else {
            if hasParts { self.note(.partInformation, "EXT-X-PART without EXT-X-PART-INF") }
            return
        }
        if target > self.target { self.note(.partInformation, "a part target above the target duration") }
        var afterMicros = self.playlist.openMicros
        for segment in self.all.reversed() {
            let isOpen = segment.uri.isEmpty
            for (index, part) in segment.parts.enumerated() {
                if part.durationMicros > target { self.note(.partDuration, line: segment.line, "\(part.uri): \(part.durationMicros) µs") }
                // The newest part of an open segment may turn out to be its last.
                let isLast = index == segment.parts.count - 1
                let isExempt = isLast || part.isIndependent || part.isGap || segment.parts[index + 1].isGap
                if !isExempt, part.durationMicros * 100 < target * 85 {
                    self.note(.partDurationFloor, line: segment.line, "\(part.uri): \(part.durationMicros) µs of \(target)")
                }
            }
            if self.playlist.hasIndependentSegments, segment.parts.first?.isIndependent == false {
                self.note(.independentSegment, line: segment.line, "the first part is not independent")
            }
            guard !isOpen else { continue }
            if !segment.parts.isEmpty {
                let sum = segment.parts.reduce(0) { $0 + $1.durationMicros }
                // A part that is longer than the part target is listed with the target.
                let isCapped = segment.parts.contains { $0.durationMicros == target } && sum < segment.durationMicros
                if !isCapped, abs(sum - segment.durationMicros) > 1_000 * Int64(segment.parts.count) {
                    self.note(.partsOfSegment, line: segment.line, "parts of \(sum) µs, EXTINF of \(segment.durationMicros) µs")
                }
                if afterMicros > 3 * self.target, !self.playlist.hasEnded {
                    self.note(.partOutlived, line: segment.line, "\(afterMicros) µs from the end")
                }
            }
            afterMicros += segment.durationMicros
        }
    }

    private mutating func checkDates() {
        let hasDates = self.all.contains { $0.dateMs != nil }
        /// Milliseconds since 1970 at which the next segment starts.
        var expected: Int64?
        for segment in self.all {
            if let date = segment.dateMs {
                if let end = expected, date < end - 1_000 {
                    self.note(.dateAmbiguous, line: segment.line, "\(end - date) ms before the end of the segment before")
                }
                expected = date
            } else if hasDates, segment.hasDiscontinuity {
                self.note(.dateAtDiscontinuity, line: segment.line, "none")
            }
            expected = expected.map { $0 + segment.durationMicros / 1_000 }
        }
    }

    private mutating func checkMaps() {
        for segment in self.all where self.playlist.skippedSegments == nil && segment.map == nil {
            let uri = (segment.uri.isEmpty ? segment.parts.first?.uri ?? "" : segment.uri).prefix { $0 != "?" }
            if uri.hasSuffix(".m4s") || uri.hasSuffix(".mp4") {
                self.note(.initializationMap, line: segment.line, "none applies to \(uri)")
            }
        }
    }

    private mutating func checkEnd() {
        if self.playlist.hasEnded {
            if !self.playlist.hints.isEmpty { self.note(.preloadHintAfterEnd, "") }
            if self.playlist.open != nil { self.note(.danglingTag, "parts of a segment that never ends") }
        } else if self.playlist.partTargetMicros != nil, self.playlist.open == nil, let last = self.playlist.segments.last {
            self.note(.segmentNotHeld, line: last.line, "no part follows \(last.uri), and none tells whether a discontinuity does")
        }
        if Set(self.playlist.hints.map(\.type)).count < self.playlist.hints.count { self.note(.preloadHint, "two of one type") }
        let uris = Set(self.playlist.uris)
        for hint in self.playlist.hints {
            if hint.type != "PART", hint.type != "MAP" { self.note(.preloadHint, "type \(hint.type)") }
            if uris.contains(hint.uri) { self.note(.preloadHint, "\(hint.uri) is there already") }
        }
    }
}
