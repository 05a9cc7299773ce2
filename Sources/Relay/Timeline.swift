/// A stream's own time, which goes on evenly when publishers come and go. A pure value of milliseconds.
///
/// The first publisher's timestamps stand as they are. After a return, the first coded frame continues at the last timestamp plus the
/// time the publisher was away; what comes before it (headers, metadata) is stamped with that same moment.
package struct Timeline: Sendable, Equatable {
    private var offset: Int64 = 0
    /// Where the present publisher took over; a track that lags behind the one that came first must not go back before it.
    private var floor = Int64.min
    private var last: Int64?
    private var lastArrivalMs: Int64 = 0
    private var isResuming = false
    private static let leapMs: Int64 = 10_000

    package init() {}

    /// The greatest timestamp given out.
    package var lastTimestamp: Int64? { self.last }

    /// A new publisher starts.
    package mutating func publisherChanged() {
        self.isResuming = self.last != nil
    }

    /// The stream's timestamp for a publisher's. `isCoded` is false for headers and metadata.
    package mutating func map(_ timestamp: Int64, isCoded: Bool, nowMs: Int64) -> Int64 {
        // The floor is for a track that lags a little. A publisher that goes far back behind where it took over has started again.
        if isCoded, self.floor > .min, timestamp &+ self.offset < self.floor - Self.leapMs { self.isResuming = true }
        if self.isResuming, let last = self.last {
            let resumed = last + max(1, nowMs - self.lastArrivalMs)
            guard isCoded else { return resumed }
            self.offset = resumed - timestamp
            self.floor = resumed
            self.isResuming = false
        }
        let mapped = max(timestamp &+ self.offset, self.floor)
        // A header's timestamp of 0 in a stream that starts at hours is not the stream's time.
        if isCoded {
            self.last = max(self.last ?? mapped, mapped)
            self.lastArrivalMs = nowMs
        }
        return mapped
    }
}
