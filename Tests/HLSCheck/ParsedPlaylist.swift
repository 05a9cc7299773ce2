/// A media playlist as data. It holds what the tags state; the rules judge whether they may.
package struct ParsedPlaylist: Sendable, Equatable {
    package struct Part: Sendable, Equatable {
        package var uri: String
        package var durationMicros: Int64
        package var isIndependent: Bool
        package var isGap: Bool
    }

    package struct Segment: Sendable, Equatable {
        /// Media Sequence Number.
        package var sequence: Int
        package var uri: String
        package var durationMicros: Int64
        /// Discontinuity Sequence Number.
        package var discontinuity: Int
        /// Whether EXT-X-DISCONTINUITY precedes it.
        package var hasDiscontinuity: Bool
        /// The initialization section that applies to it.
        package var map: String?
        /// Whether EXT-X-MAP precedes it.
        package var hasMap: Bool
        /// Milliseconds since 1970 from its own EXT-X-PROGRAM-DATE-TIME.
        package var dateMs: Int64?
        package var isGap: Bool
        package var parts: [Part]
        /// The line of its URI, or of its first tag while it has no URI.
        package var line: Int

        /// Compares all but lines, the place of EXT-X-MAP, and parts, which the playlist may have dropped.
        func isSame(as other: Segment) -> Bool {
            self.sequence == other.sequence && self.uri == other.uri && self.durationMicros == other.durationMicros
                && self.discontinuity == other.discontinuity && self.map == other.map && self.dateMs == other.dateMs
                && self.isGap == other.isGap
        }
    }

    package struct Hint: Sendable, Equatable {
        package var type: String
        package var uri: String
    }

    package var version = 1
    /// Seconds.
    package var targetDuration: Int?
    package var serverControl: AttributeList?
    package var partTargetMicros: Int64?
    package var mediaSequence = 0
    package var discontinuitySequence = 0
    package var skippedSegments: Int?
    package var hasIndependentSegments = false
    /// TIME-OFFSET of EXT-X-START.
    package var startMicros: Int64?
    package var segments: [Segment] = []
    /// The segment that has parts (or other tags) but no URI yet.
    package var open: Segment?
    package var hints: [Hint] = []
    package var hasEnded = false

    package init() {}

    /// Media Sequence Number of the last segment with a URI; one less than the first when there is none.
    package var lastSequence: Int { self.mediaSequence + (self.skippedSegments ?? 0) + self.segments.count - 1 }
    /// The duration of all segments, in microseconds.
    package var segmentMicros: Int64 { self.segments.reduce(0) { $0 + $1.durationMicros } }
    package var openMicros: Int64 { self.open?.parts.reduce(0) { $0 + $1.durationMicros } ?? 0 }
    /// The URIs of all media, including initialization sections but not hints.
    package var uris: [String] {
        var uris: [String] = []
        for segment in self.segments + (self.open.map { [$0] } ?? []) {
            if let map = segment.map, !uris.contains(map) { uris.append(map) }
            uris += segment.parts.map(\.uri)
            if !segment.uri.isEmpty { uris.append(segment.uri) }
        }
        return uris
    }

    /// This delta update, completed from an earlier playlist (RFC 8216bis §6.3.7). Returns nil if `earlier` lacks a skipped segment.
    package func applied(to earlier: ParsedPlaylist) -> ParsedPlaylist? {
        guard let skipped = self.skippedSegments else { return self }
        let kept = earlier.segments.filter { (self.mediaSequence..<self.mediaSequence + skipped).contains($0.sequence) }
        guard kept.count == skipped, earlier.skippedSegments == nil else { return nil }
        var whole = self
        whole.skippedSegments = nil
        whole.version = earlier.version
        var map = kept.last?.map
        var discontinuity = kept.last?.discontinuity ?? self.discontinuitySequence
        func completed(_ segment: Segment) -> Segment {
            var segment = segment
            if segment.hasMap { map = segment.map } else { segment.map = map }
            if segment.hasDiscontinuity { discontinuity += 1 }
            segment.discontinuity = discontinuity
            return segment
        }
        // Skipped segments are no longer at the live edge and have lost their parts.
        whole.segments =
            kept.map {
                var segment = $0
                segment.parts = []
                return segment
            } + self.segments.map(completed)
        whole.open = self.open.map(completed)
        return whole
    }

    /// This playlist without line numbers, to compare playlists that are written differently.
    package var content: ParsedPlaylist {
        var content = self
        for index in content.segments.indices { content.segments[index].line = 0 }
        content.open?.line = 0
        // The place of EXT-X-MAP does not count, only the initialization section that applies.
        for index in content.segments.indices { content.segments[index].hasMap = false }
        content.open?.hasMap = false
        return content
    }
}
