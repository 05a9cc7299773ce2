/// Puts a track's RTP times on the timeline that it shares with the other track, in milliseconds from the push's first packet (RFC 3550 §6.4.1). A value.
///
/// Until sender reports of both tracks have come, a track begins when its first packet comes. From then on the reports say how the tracks lie to each
/// other: the reference goes on by its own clock, and the other moves to its place little by little, so that nothing leaps.
package struct TrackClock: Sendable {
    private let rate: Int64
    /// The last packet's time, roll-overs counted.
    private var last: Int64?
    /// The time of RTP's zero on the timeline, in thousandths of a millisecond.
    private var originUs: Int64 = 0
    /// What the newest sender report says: the sender's wall clock, at RTP's zero.
    private var wallOriginUs: Int64?

    /// The most that a track moves for each second of media, and what is too far off for that: it moves at once.
    private static let driftUsPerSecond: Int64 = 20_000
    private static let leapUs: Int64 = 500_000
    /// RFC 868: seconds from 1900 to 1970.
    private static let era: Int64 = 2_208_988_800

    /// `rate`: Hz.
    package init(rate: Int64) { self.rate = rate }

    private func us(_ ticks: Int64) -> Int64 {
        let (seconds, rest) = ticks.quotientAndRemainder(dividingBy: self.rate)
        return seconds * 1_000_000 + rest * 1_000_000 / self.rate
    }

    private func unwrapped(_ time: UInt32) -> Int64 {
        guard let last = self.last else { return Int64(time) }
        return last + Int64(Int32(bitPattern: time &- UInt32(truncatingIfNeeded: last)))
    }

    /// The place on the timeline of a packet with this RTP time, in ms. `arrivedMs`: when the first one came, on the timeline. `reference`: the other
    /// track's place of the sender's wall clock, if this track follows it.
    package mutating func place(_ time: UInt32, arrivedMs: Int64, following reference: Int64?) -> Int64 {
        let ticks = self.unwrapped(time)
        if let last = self.last {
            if let reference, let wallOriginUs = self.wallOriginUs {
                let target = wallOriginUs + reference
                let off = target - self.originUs
                let most = max(0, self.us(ticks - last)) * Self.driftUsPerSecond / 1_000_000
                self.originUs += abs(off) > Self.leapUs ? off : min(max(off, -most), most)
            }
        } else {
            self.originUs = arrivedMs * 1_000 - self.us(ticks)
        }
        self.last = ticks
        return (self.originUs + self.us(ticks)) / 1_000
    }

    /// A sender report: `ntp` is the sender's wall clock at `time`.
    package mutating func note(ntp: UInt64, time: UInt32) {
        guard ntp != 0, self.last != nil else { return }
        let seconds = Int64(ntp >> 32) - Self.era
        self.wallOriginUs = seconds * 1_000_000 + Int64((ntp & 0xFFFF_FFFF) * 1_000_000 >> 32) - self.us(self.unwrapped(time))
    }

    /// The time on the timeline, in thousandths of a millisecond, at which the sender's wall clock has its zero: what the other track follows. Nil before a
    /// sender report.
    package var reference: Int64? { self.wallOriginUs.map { self.originUs - $0 } }
}
