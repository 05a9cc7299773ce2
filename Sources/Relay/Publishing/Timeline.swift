package import Media

/// A stream's own time, continuous across publishers and jumps of their clocks. A pure value of milliseconds.
///
/// The first publisher's timestamps stand as they are. After a return, the first coded frame continues at the last timestamp plus the time
/// the publisher was away; headers and metadata before it get that same time.
///
/// Timestamps of a kind never go back: a frame that would is put at the time of the one before. Kinds are not compared with each other: sound may
/// lag behind pictures or come in large blocks.
///
/// A coded frame has jumped when it lies
/// - more than ``backMs`` before the last frame of its kind, or more than ``jitterMs`` if it also lies further behind its arrival than the frames of
///   the last seconds. Otherwise the frames before were ahead: encoders that stamp by presentation do that.
/// - more than ``aheadMs`` beyond the stream's newest time plus the time passed since. A pause passes for everybody, and the pictures of a
///   slide show that come all at once from another server's cache are seconds apart.
///
/// A frame that jumped continues at the last time of its kind plus the time passed. The other kind follows by the same difference as soon
/// as it jumps too, so that sound and pictures stay together; its frames that are still on the old clock stay where they were.
///
/// Some devices' kinds have clocks that are hours apart. A kind that begins more than ``apartMs`` from where the other one is begins there instead, and
/// keeps that difference.
package struct Timeline: Sendable, Equatable {
    /// The position of one kind of media.
    private struct Track: Sendable, Equatable {
        var offset: Int64
        var last: Int64
        var arrivalMs: Int64
        /// Its clock's difference from the other kind's.
        var skew: Int64
        /// Time between the last two frames.
        var stepMs: Int64 = 1
        /// Its times may still lie before earlier output, until they have caught up.
        var isSettling = false
        /// The least lead of a timestamp over its arrival in the span until `spanEndMs`, and in the one before; nil before that.
        var leastLead = Int64.max
        var formerLead: Int64?
        var spanEndMs: Int64 = 0

        init(offset: Int64, last: Int64, arrivalMs: Int64, skew: Int64) {
            self.offset = offset
            self.last = last
            self.arrivalMs = arrivalMs
            self.skew = skew
            self.spanEndMs = arrivalMs + Timeline.spanMs
        }

        /// Whether a frame further back than jitter shows that the clock was set back.
        func isSetBack(to mapped: Int64, nowMs: Int64) -> Bool {
            guard mapped < self.last - Timeline.jitterMs, !self.isSettling, let former = self.formerLead else { return false }
            return mapped - nowMs < min(former, self.leastLead) - Timeline.jitterMs / 2
        }

        /// Whether a frame lies behind its arrival by most of a step back that the other kind has shown.
        func isSetBack(by stepMs: Int64, to mapped: Int64, nowMs: Int64) -> Bool {
            guard (1...2 * Timeline.backMs).contains(stepMs), let former = self.formerLead else { return false }
            return mapped - nowMs < former - stepMs / 2
        }

        mutating func noteLead(of mapped: Int64, nowMs: Int64) {
            if nowMs >= self.spanEndMs {
                self.formerLead = self.leastLead
                self.leastLead = .max
                self.spanEndMs = nowMs + Timeline.spanMs
            }
            self.leastLead = min(self.leastLead, mapped - nowMs)
        }

        /// How far `mapped` lies outside the range expected of the next frame.
        func distance(to mapped: Int64, nowMs: Int64) -> Int64 {
            mapped < self.last ? self.last - mapped : max(0, mapped - self.expected(nowMs: nowMs))
        }

        /// The time at which the next frame would continue.
        func expected(nowMs: Int64) -> Int64 { self.last + max(self.stepMs, nowMs - self.arrivalMs) }
    }

    private struct Beginning: Sendable, Equatable {
        var at: Int64
        var arrivalMs: Int64
    }

    private var audio: Track?
    private var video: Track?
    /// Offset of the newest clock, the present publisher's.
    private var offset: Int64 = 0
    /// Time at which the present publisher took over. A track that lags behind the first one must not go back before it.
    private var floor = Int64.min
    private var last: Int64?
    private var lastArrivalMs: Int64 = 0
    private var isResuming = false
    /// Time and arrival of the present publisher's first coded frame.
    private var began = Beginning(at: 0, arrivalMs: 0)

    package static let jitterMs: Int64 = 100
    package static let backMs: Int64 = 1_000
    package static let aheadMs: Int64 = 10_000
    package static let apartMs: Int64 = 10_000
    private static let spanMs: Int64 = 2_000

    /// The greatest timestamp given out.
    package var lastTimestamp: Int64? { self.last }

    /// A new publisher starts.
    package mutating func publisherChanged() {
        self.isResuming = self.last != nil
        self.audio = nil
        self.video = nil
    }

    /// Maps a publisher's timestamp to the stream's. `isCoded` is false for headers and data, whose time does not affect that of other frames.
    package mutating func map(_ timestamp: Int64, _ kind: Frame.Kind, isCoded: Bool, nowMs: Int64) -> Int64 {
        guard isCoded else { return self.between(timestamp, nowMs: nowMs) }
        if self.isResuming, let last = self.last {
            let resumed = last + max(1, nowMs - self.lastArrivalMs)
            self.offset = resumed - timestamp
            self.floor = resumed
            self.isResuming = false
        }
        let other = kind == .video ? self.audio : self.video
        let track = self.advance(kind == .video ? self.video : self.audio, beside: other, timestamp, nowMs: nowMs)
        if self.audio == nil, self.video == nil { self.began = Beginning(at: track.last, arrivalMs: nowMs) }
        if kind == .video { self.video = track } else { self.audio = track }
        self.last = max(self.last ?? track.last, track.last)
        self.lastArrivalMs = nowMs
        return track.last
    }

    /// Returns the track with the frame at this time as its newest.
    private mutating func advance(_ kept: Track?, beside other: Track?, _ timestamp: Int64, nowMs: Int64) -> Track {
        var track = kept ?? self.beginning(timestamp, beside: other, nowMs: nowMs)
        let own = timestamp &+ track.skew
        var mapped = own &+ track.offset
        if track.offset != self.offset {
            // The other kind jumped before: this track follows with its first frame that is closer to the other clock, or that shows the same step back
            // by its arrival, since a small one may hide in a block.
            let other = own &+ self.offset
            let isCloser = track.distance(to: other, nowMs: nowMs) < track.distance(to: mapped, nowMs: nowMs)
            if isCloser || track.isSetBack(by: self.offset - track.offset, to: mapped, nowMs: nowMs) {
                mapped = other
                track.offset = self.offset
                track.isSettling = true
            }
        }
        if self.isJump(mapped, of: track, nowMs: nowMs) {
            mapped = track.expected(nowMs: nowMs)
            self.offset = mapped - own
            track.offset = self.offset
            track.isSettling = true
        }
        track.noteLead(of: mapped, nowMs: nowMs)
        if mapped < self.floor {
            mapped = self.floor
            track.isSettling = true
        }
        if track.isSettling {
            track.isSettling = mapped <= track.last
            mapped = max(mapped, track.last + 1)
        }
        if kept != nil { mapped = max(mapped, track.last) }
        if mapped > track.last { track.stepMs = min(mapped - track.last, Self.backMs) }
        track.last = mapped
        track.arrivalMs = nowMs
        return track
    }

    private func isJump(_ mapped: Int64, of track: Track, nowMs: Int64) -> Bool {
        mapped < track.last - Self.backMs || track.isSetBack(to: mapped, nowMs: nowMs) && mapped >= self.floor
            || self.isFarAhead(mapped, nowMs: nowMs)
    }

    /// The track of a kind before its first frame.
    private func beginning(_ timestamp: Int64, beside other: Track?, nowMs: Int64) -> Track {
        let mapped = timestamp &+ self.offset
        var skew: Int64 = 0
        if let other {
            let expected = other.expected(nowMs: nowMs)
            let earliest = min(self.began.at + nowMs - self.began.arrivalMs, other.last) - Self.apartMs
            if mapped < earliest || mapped > expected + Self.apartMs { skew = expected &- mapped }
        }
        // After a return, a kind that comes second is measured by the one that came first.
        if self.floor > .min, let last = self.last {
            return Track(offset: self.offset, last: max(last, self.floor) - 1, arrivalMs: self.lastArrivalMs, skew: skew)
        }
        return Track(offset: self.offset, last: mapped &+ skew, arrivalMs: nowMs, skew: skew)
    }

    private func isFarAhead(_ mapped: Int64, nowMs: Int64) -> Bool {
        guard let last = self.last else { return false }
        return mapped > last + max(0, nowMs - self.lastArrivalMs) + Self.aheadMs
    }

    /// Maps headers and data. A header's timestamp of 0 in a stream that starts at hours is not the stream's time.
    private func between(_ timestamp: Int64, nowMs: Int64) -> Int64 {
        guard let last = self.last else { return timestamp &+ self.offset }
        if self.isResuming { return last + max(1, nowMs - self.lastArrivalMs) }
        let mapped = max(timestamp &+ self.offset, self.floor)
        return mapped < last - Self.backMs || self.isFarAhead(mapped, nowMs: nowMs) ? last : mapped
    }
}
