import NIOCore

/// The Delivery Directives of a request for a media playlist. RFC 8216bis §6.2.5.
package struct PlaylistRequest: Sendable, Hashable {
    /// `_HLS_msn`: wait for this Media Sequence Number.
    package let mediaSequence: Int?
    /// `_HLS_part`: wait for this Part Index of that segment.
    package let part: Int?
    /// `_HLS_skip`: accept a delta update.
    package let skips: Bool

    /// Parses the URI's `_HLS_msn`, `_HLS_part` and `_HLS_skip`; nil for missing ones.
    ///
    /// Throws `badDirective` (answer 400) for a value that is not a decimal-integer (§4.2: digits only), or a part without a Media Sequence
    /// Number (§6.2.5.2). `_HLS_skip` accepts YES and v2, which differ only in date ranges (none here), and ignores other values.
    package static func parse(msn: String?, part: String?, skip: String?) throws(HLSError) -> PlaylistRequest {
        if part != nil, msn == nil { throw .badDirective("_HLS_part needs _HLS_msn") }
        return PlaylistRequest(
            mediaSequence: try Self.integer(msn, "_HLS_msn is not a decimal integer"),
            part: try Self.integer(part, "_HLS_part is not a decimal integer"), skips: skip == "YES" || skip == "v2")
    }

    /// Whether the request may have to wait for its playlist.
    package var isBlocking: Bool { self.mediaSequence != nil }

    /// Parses 0…2^64 - 1 in 1…20 digits (§4.2). Clamps to our largest number, which is too far ahead anyway.
    private static func integer(_ text: String?, _ complaint: String) throws(HLSError) -> Int? {
        guard let text else { return nil }
        let digits = text.utf8
        guard (1...20).contains(digits.count), digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let number = UInt64(text)
        else { throw .badDirective(complaint) }
        return Int(clamping: number)
    }
}

/// A point in a playlist's future that requests wait for. Requests with the same point get the same answer.
package struct WaitPoint: Sendable, Hashable {
    /// Media Sequence Number.
    package let sequence: Int
    /// Part Index; nil for the whole segment.
    package let part: Int?
}

/// The answer to a request for a media playlist.
package enum PlaylistAnswer: Sendable, Equatable {
    /// Answer with the current playlist.
    case now
    /// Answer with the first playlist that `isSatisfied` accepts, or 503 after `longestWaitMs`.
    case wait(WaitPoint)
    /// 400.
    case badRequest(String)
    /// 404: the stream ended before there was a playlist.
    case unavailable
}

extension MediaWindow {
    /// Longest wait of a blocked request, in milliseconds. Three target durations (RFC 8216bis §6.2.5.2); before the first playlist,
    /// `maxSegmentMs` plus a second.
    package var longestWaitMs: Int { self.isReady ? self.targetDuration * 3_000 : self.configuration.maxSegmentMs + 1_000 }

    /// Answers a request for the low-latency playlist. A plain playlist only waits to exist: pass a request without directives for it.
    package func answer(_ request: PlaylistRequest) -> PlaylistAnswer {
        guard self.isReady else {
            return self.hasEnded ? .unavailable : .wait(WaitPoint(sequence: self.firstSequence, part: nil))
        }
        // §6.2.5.2: directives are ignored with EXT-X-ENDLIST, and where CAN-BLOCK-RELOAD is not offered.
        guard !self.hasEnded, self.configuration.isLowLatency, let sequence = request.mediaSequence else { return .now }
        let last = self.lastEnded
        // §6.2.5.2: not beyond the last Media Segment plus two. The last is the last ended one, as in plain playlists.
        if sequence > last + 2 { return .badRequest("_HLS_msn is too far ahead") }
        var point = WaitPoint(sequence: sequence, part: request.part)
        if let part = request.part {
            if sequence <= last {
                // §6.2.5.2: an index beyond the segment's last part means the first part of the next segment.
                if part >= self.partCount(of: sequence) { point = WaitPoint(sequence: sequence + 1, part: 0) }
            } else {
                let lastPart = sequence == self.open?.sequence ? (self.open?.parts.count ?? 0) - 1 : -1
                if part > lastPart + self.advancePartLimit { return .badRequest("_HLS_part is too far ahead") }
            }
        }
        return self.isSatisfied(point) ? .now : .wait(point)
    }

    /// Whether the current playlist answers a request that waits for `point`. Check again at each new `version`.
    package func isSatisfied(_ point: WaitPoint) -> Bool {
        guard self.isReady else { return false }
        if self.hasEnded { return true }
        let last = self.lastEnded
        guard let part = point.part else { return point.sequence <= last }
        if let open = self.open, point.sequence == open.sequence { return part < open.parts.count }
        guard point.sequence <= last else { return false }
        if point.sequence < last || part < self.partCount(of: point.sequence) { return true }
        // The index is past its segment: it means the first part of the next one.
        return self.open != nil
    }

    /// Advance Part Limit (§6.2.5.2): three seconds' worth of parts if the part target is below one second, else three.
    var advancePartLimit: Int {
        self.partTargetMicros < 1_000_000 ? Int(3_000_000 / max(self.partTargetMicros, 1)) : 3
    }

    /// The number of parts of an ended segment; `Int.max` if it is no longer held.
    private func partCount(of sequence: Int) -> Int {
        guard let first = self.segments.first?.sequence, sequence >= first else { return .max }
        guard sequence - first < self.segments.count else { return 0 }
        return self.segments[offset: sequence - first].parts.count
    }
}
