import NIOCore

/// The Delivery Directives of a request for a media playlist. RFC 8216bis §6.2.5.
package struct PlaylistRequest: Sendable, Hashable {
    /// `_HLS_msn`: wait for this Media Sequence Number.
    package let mediaSequence: Int?
    /// `_HLS_part`: wait for this Part Index of it.
    package let part: Int?
    /// `_HLS_skip`: a delta update will do.
    package let skips: Bool

    /// Reads the values of `_HLS_msn`, `_HLS_part` and `_HLS_skip` as they stand in the URI; nil where one is missing.
    ///
    /// Throws `badDirective` (answer 400) for what is no decimal-integer (§4.2: digits only), or a part without a Media Sequence Number
    /// (§6.2.5.2). `_HLS_skip` knows YES and v2, which differ in date ranges, of which there are none here; it ignores other values.
    package static func parse(msn: String?, part: String?, skip: String?) throws(HLSError) -> PlaylistRequest {
        if part != nil, msn == nil { throw .badDirective("_HLS_part needs _HLS_msn") }
        return PlaylistRequest(
            mediaSequence: try Self.integer(msn, "_HLS_msn is not a decimal integer"),
            part: try Self.integer(part, "_HLS_part is not a decimal integer"), skips: skip == "YES" || skip == "v2")
    }

    /// Whether it asks for a playlist that may not be there yet.
    package var isBlocking: Bool { self.mediaSequence != nil }

    /// §4.2: from 0 to 2^64 - 1, in 1…20 digits. What is above our largest number is taken as that: it is too far ahead anyway.
    private static func integer(_ text: String?, _ complaint: String) throws(HLSError) -> Int? {
        guard let text else { return nil }
        let digits = text.utf8
        guard (1...20).contains(digits.count), digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let number = UInt64(text)
        else { throw .badDirective(complaint) }
        return Int(clamping: number)
    }
}

/// A point in a playlist's future that requests wait for. Requests that wait for the same one get the same answer.
package struct WaitPoint: Sendable, Hashable {
    /// Media Sequence Number.
    package let sequence: Int
    /// Part Index; nil: the whole segment.
    package let part: Int?
}

/// What a request for a media playlist gets.
package enum PlaylistAnswer: Sendable, Equatable {
    /// The playlist of now.
    case now
    /// The first playlist for which `isSatisfied` says so, or 503 after `longestWaitMs`.
    case wait(WaitPoint)
    /// 400.
    case badRequest(String)
    /// 404: the stream ended before there was a playlist.
    case unavailable
}

extension MediaWindow {
    /// Milliseconds that a blocked request waits at most: three target durations (RFC 8216bis §6.2.5.2), or the time in which the first
    /// segment ends at the latest while there is no playlist.
    package var longestWaitMs: Int { self.isReady ? self.targetDuration * 3_000 : self.configuration.maxSegmentMs + 1_000 }

    /// What to answer to a request for the low-latency playlist. (One without low latency knows no waiting but for the first playlist:
    /// ask with a request without directives.)
    package func answer(_ request: PlaylistRequest) -> PlaylistAnswer {
        guard self.isReady else {
            return self.hasEnded ? .unavailable : .wait(WaitPoint(sequence: self.firstSequence, part: nil))
        }
        // §6.2.5.2: directives are ignored with EXT-X-ENDLIST, and where CAN-BLOCK-RELOAD is not offered.
        guard !self.hasEnded, self.configuration.isLowLatency, let sequence = request.mediaSequence else { return .now }
        let last = self.lastEnded
        // §6.2.5.2: not beyond the last Media Segment plus two. What is told to a plain player too.
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

    /// Whether the playlist of now is what a request that waits for `point` gets. To be asked again at each new `version`.
    package func isSatisfied(_ point: WaitPoint) -> Bool {
        guard self.isReady else { return false }
        if self.hasEnded { return true }
        let last = self.lastEnded
        guard let part = point.part else { return point.sequence <= last }
        if let open = self.open, point.sequence == open.sequence { return part < open.parts.count }
        guard point.sequence <= last else { return false }
        if point.sequence < last || part < self.partCount(of: point.sequence) { return true }
        // It stands for the first part of the segment after the last ended one.
        return self.open != nil
    }

    /// §6.2.5.2: three over the part target below one second, else three.
    var advancePartLimit: Int {
        self.partTargetMicros < 1_000_000 ? Int(3_000_000 / max(self.partTargetMicros, 1)) : 3
    }

    /// Parts of an ended segment; of one that is long gone, more than anyone asks for.
    private func partCount(of sequence: Int) -> Int {
        guard let first = self.segments.first?.sequence, sequence >= first else { return .max }
        guard sequence - first < self.segments.count else { return 0 }
        return self.segments[offset: sequence - first].parts.count
    }
}
