package import Media

/// A stream's own time, continuous across publishers and jumps of their clocks. A pure value of milliseconds.
///
/// The first publisher's timestamps stand as they are. After a return, the first coded frame continues at the last timestamp plus the time
/// the publisher was away; headers and metadata before it get that same time.
///
/// A coded frame has jumped when it lies
/// - more than ``backMs`` before the last frame of its kind. Small steps back are a device's jitter. Kinds are not compared with each
///   other: sound may lag behind pictures or come in large blocks.
/// - more than ``aheadMs`` beyond the stream's newest time plus the time passed since. A pause passes for everybody, and the pictures of a
///   slide show that come all at once from another server's cache are seconds apart.
///
/// A frame that jumped continues at the last time of its kind plus the time passed. The other kind follows by the same difference as soon
/// as it jumps too, so that sound and pictures stay together; its frames that are still on the old clock stay where they were.
package struct Timeline: Sendable, Equatable {
    /// The position of one kind of media.
    private struct Track: Sendable, Equatable {
        var offset: Int64
        var last: Int64
        var arrivalMs: Int64
        /// Time between the last two frames.
        var stepMs: Int64 = 1
        /// Its times may still lie before earlier output, until they have caught up.
        var isSettling = false

        /// How far `mapped` lies outside the range expected of the next frame.
        func distance(to mapped: Int64, nowMs: Int64) -> Int64 {
            let latest = self.last + max(self.stepMs, nowMs - self.arrivalMs)
            return mapped < self.last ? self.last - mapped : max(0, mapped - latest)
        }
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

    package static let backMs: Int64 = 1_000
    package static let aheadMs: Int64 = 10_000

    package init() {}

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
        let track = self.advance(kind == .video ? self.video : self.audio, timestamp, nowMs: nowMs)
        if kind == .video { self.video = track } else { self.audio = track }
        self.last = max(self.last ?? track.last, track.last)
        self.lastArrivalMs = nowMs
        return track.last
    }

    /// Returns the track with the frame at this time as its newest.
    private mutating func advance(_ kept: Track?, _ timestamp: Int64, nowMs: Int64) -> Track {
        guard var track = kept ?? self.laterTrack() else {
            return Track(offset: self.offset, last: timestamp &+ self.offset, arrivalMs: nowMs)
        }
        var mapped = timestamp &+ track.offset
        if track.offset != self.offset {
            // The other kind jumped before: this track follows with its first frame that is closer to the other clock.
            let other = timestamp &+ self.offset
            if track.distance(to: other, nowMs: nowMs) < track.distance(to: mapped, nowMs: nowMs) {
                mapped = other
                track.offset = self.offset
                track.isSettling = true
            }
        }
        if self.isJump(mapped, of: track, nowMs: nowMs) {
            mapped = track.last + max(track.stepMs, nowMs - track.arrivalMs)
            self.offset = mapped - timestamp
            track.offset = self.offset
            track.isSettling = true
        }
        if mapped < self.floor {
            mapped = self.floor
            track.isSettling = true
        }
        if track.isSettling {
            track.isSettling = mapped <= track.last
            mapped = max(mapped, track.last + 1)
        }
        if mapped > track.last { track.stepMs = min(mapped - track.last, Self.backMs) }
        track.last = mapped
        track.arrivalMs = nowMs
        return track
    }

    /// A stand-in for the track of the kind that comes second after a publisher's return: it is measured by the kind that came first.
    private func laterTrack() -> Track? {
        guard self.floor > .min, let last = self.last else { return nil }
        return Track(offset: self.offset, last: max(last, self.floor) - 1, arrivalMs: self.lastArrivalMs)
    }

    private func isJump(_ mapped: Int64, of track: Track, nowMs: Int64) -> Bool {
        mapped < track.last - Self.backMs || self.isFarAhead(mapped, nowMs: nowMs)
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
