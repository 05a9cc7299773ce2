import NIOCore
import Support

/// The kind of a window's media playlist.
package struct PlaylistKind: Sendable, Hashable {
    /// Whether parts are listed. Plain players accept such a playlist and skip unknown tags; one without parts is smaller.
    package var isLowLatency: Bool
    /// Whether it is a delta update (RFC 8216bis §6.2.5.1).
    package var skips: Bool
    /// Whether it has EXT-X-START; see ``MediaWindow/needsStart``. All playlists of one player are alike in this (§6.2.1).
    package var hasStart: Bool

    package init(isLowLatency: Bool, skips: Bool = false, hasStart: Bool = false) {
        self.isLowLatency = isLowLatency
        self.skips = skips
        self.hasStart = hasStart
    }
}

/// A playlist text and the version of the window it was written for.
struct CachedPlaylist: Sendable {
    let version: Int
    let text: PlaylistText
}

extension MediaWindow {
    /// The HTTP Content-Type of both kinds of playlists (RFC 8216bis §4).
    package static let playlistContentType = "application/vnd.apple.mpegurl"

    /// Returns the current media playlist; nil before `isReady`. Written once per state and kind, then shared by all requests.
    ///
    /// Lists no parts if the window is configured without low latency.
    package mutating func mediaPlaylist(_ kind: PlaylistKind) -> PlaylistText? {
        guard self.isReady else { return nil }
        var kind = kind
        kind.isLowLatency = kind.isLowLatency && self.configuration.isLowLatency
        kind.skips = kind.skips && self.skippableCount(isLowLatency: kind.isLowLatency) > 0
        let version = kind.isLowLatency ? self.version : self.segmentVersion
        if let cached = self.playlists[kind], cached.version == version { return cached.text }
        let text = self.writeMediaPlaylist(kind)
        self.playlistsWritten += 1
        self.playlists[kind] = CachedPlaylist(version: version, text: text)
        return text
    }

    /// CAN-SKIP-UNTIL in seconds: at least six target durations (RFC 8216bis §4.4.3.8).
    var skipBoundary: Int { self.targetDuration * 6 }

    /// The number of listed segments that a delta update skips. These lie entirely farther from the end than the Skip Boundary.
    func skippableCount(isLowLatency: Bool) -> Int {
        guard !self.hasEnded else { return 0 }  // §6.2.5.1: no delta updates of a playlist with EXT-X-ENDLIST.
        let boundary = Int64(self.skipBoundary) * 1_000_000
        var micros = isLowLatency ? self.openListedMicros : 0
        guard self.listedMicros + micros > boundary else { return 0 }
        var kept = 0
        for offset in stride(from: self.segments.count - 1, through: self.retiredCount, by: -1) {
            if micros > boundary { break }
            micros += self.segments[offset: offset].durationMicros
            kept += 1
        }
        return self.listedCount - kept
    }

    /// Microseconds of the open segment as its parts are listed.
    private var openListedMicros: Int64 { self.open?.parts.reduce(0) { $0 + min($1.durationMicros, self.partTargetMicros) } ?? 0 }

    private func writeMediaPlaylist(_ kind: PlaylistKind) -> PlaylistText {
        let skipped = kind.skips ? self.skippableCount(isLowLatency: kind.isLowLatency) : 0
        var writer = PlaylistWriter(capacity: 2_048 + (self.listedCount - skipped) * 192)
        self.writeHead(kind, skipped: skipped, to: &writer)
        // After EXT-X-SKIP, the tags that applied to the last skipped segment still apply.
        var initialization = skipped > 0 ? self.segments[offset: self.retiredCount + skipped - 1].initialization : nil
        for offset in self.retiredCount + skipped..<self.segments.count {
            let segment = self.segments[offset: offset]
            defer { initialization = segment.initialization }
            let listsParts = kind.isLowLatency && segment.listsParts && segment.sequence >= self.partsFrom
            self.writeTags(of: segment, previousInitialization: initialization, listsParts: listsParts, to: &writer)
            writer.write("#EXTINF:")
            writer.writeSeconds(micros: segment.durationMicros)
            writer.write(",\n")
            writer.writeURI(self.name(ofSegment: segment.sequence))
            writer.write("\n")
        }
        if kind.isLowLatency, let open = self.open {
            self.writeTags(of: open, previousInitialization: initialization, listsParts: true, to: &writer)
        }
        if self.hasEnded {
            writer.write("#EXT-X-ENDLIST\n")
        } else if kind.isLowLatency, let hinted = self.hintedPart {
            writer.write("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"")
            writer.writeURI(self.name(ofPart: hinted))
            writer.write("\"\n")
        }
        return writer.finish()
    }

    private func writeHead(_ kind: PlaylistKind, skipped: Int, to writer: inout PlaylistWriter) {
        writer.write("#EXTM3U\n#EXT-X-VERSION:")
        // RFC 8216bis §8: 9 for EXT-X-SKIP, 6 for EXT-X-MAP, 3 for fractions of a second; §6.2.1: no higher than needed.
        writer.write(skipped > 0 ? 9 : self.configuration.container == .fragmentedMP4 ? 6 : 3)
        writer.write("\n#EXT-X-TARGETDURATION:")
        writer.write(self.targetDuration)
        writer.write("\n#EXT-X-SERVER-CONTROL:")
        if kind.isLowLatency {
            // §4.4.3.8: PART-HOLD-BACK should be at least three part targets, HOLD-BACK must be at least three target durations.
            writer.write("CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=")
            writer.writeSeconds(millis: self.partTargetMicros * 3 / 1_000)
            writer.write(",")
        }
        writer.write("CAN-SKIP-UNTIL=")
        writer.write(self.skipBoundary)
        writer.write(".0,HOLD-BACK=")
        writer.write(self.targetDuration * 3)
        writer.write(".0\n")
        if kind.isLowLatency {
            writer.write("#EXT-X-PART-INF:PART-TARGET=")
            writer.writeSeconds(millis: self.partTargetMicros / 1_000)
            writer.write("\n")
        }
        if kind.hasStart, let startMs = self.startOffsetMs {
            writer.write("#EXT-X-START:TIME-OFFSET=")
            writer.writeSeconds(millis: startMs)
            writer.write("\n")
        }
        writer.write("#EXT-X-MEDIA-SEQUENCE:")
        writer.write(self.oldestListed?.sequence ?? self.open?.sequence ?? self.nextSequence)
        writer.write("\n#EXT-X-DISCONTINUITY-SEQUENCE:")
        writer.write(self.discontinuitySequence)
        writer.write("\n")
        if skipped > 0 {
            writer.write("#EXT-X-SKIP:SKIPPED-SEGMENTS=")
            writer.write(skipped)
            writer.write("\n")
        }
    }

    /// Writes the tags before a segment's EXTINF, or before its first part (§4.4.4.9).
    private func writeTags(of segment: Segment, previousInitialization: Int?, listsParts: Bool, to writer: inout PlaylistWriter) {
        if segment.hasDiscontinuity { writer.write("#EXT-X-DISCONTINUITY\n") }
        if self.configuration.container == .fragmentedMP4, segment.hasDiscontinuity || segment.initialization != previousInitialization {
            writer.write("#EXT-X-MAP:URI=\"")
            writer.writeURI(self.name(ofInitialization: segment.initialization))
            writer.write("\"\n")
        }
        if let date = segment.programDateTimeMs {
            // §4.4.4.6: ISO 8601, with the zone and milliseconds.
            writer.write("#EXT-X-PROGRAM-DATE-TIME:")
            writer.write(Instant.text(date))
            writer.write("\n")
        }
        guard listsParts else { return }
        for (index, part) in segment.parts.enumerated() {
            writer.write("#EXT-X-PART:DURATION=")
            // §4.4.3.7: never more than the part target. Apple's player refuses the whole playlist for it.
            writer.writeSeconds(micros: min(part.durationMicros, self.partTargetMicros))
            writer.write(",URI=\"")
            writer.writeURI(self.name(ofPart: segment.firstPart + index))
            writer.write(part.isIndependent ? "\",INDEPENDENT=YES\n" : "\"\n")
        }
    }
}
