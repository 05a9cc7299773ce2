/// Turns whole milliseconds into sample-exact audio times, so that players hear no gaps.
///
/// A plain value; one per track. It counts samples. One timestamp alone proves nothing: encoders stamp by wall clock, or several frames alike. So the
/// timestamps are judged together:
/// - A timestamp further from the one before than timestamps usually are shows at once that audio is missing: the count jumps to it.
/// - When all timestamps of ``spanSeconds`` lie on one side of the count, the count follows: at once if over five runs are missing, otherwise by a
///   sixteenth of a run at a time, which is inaudible.
/// - It never steps back. A count that is over ``mostAheadMs`` ahead of the timestamps, or ``mostBehindMs`` behind, has a wrong sample rate, and jumps to
///   them.
package struct AudioClock: Sendable, Equatable {
    /// How the timestamps of a span lay. Samples.
    private struct Span: Sendable, Equatable {
        /// The count at which it ends.
        var end: Int64
        /// The timestamps' least and greatest distance ahead of the count.
        var least = Int64.max
        var most = Int64.min
        /// The greatest excess of a step over the run before it.
        var widest: Int64 = 0
    }

    package static let spanSeconds: Int64 = 2
    package static let mostAheadMs: Int64 = 500
    package static let mostBehindMs: Int64 = 250
    /// Assumed of timestamps that are not known yet: blocks of eight frames.
    private static let unknownMs: Int64 = 200

    /// Hz.
    private let sampleRate: Int64
    /// Samples by which all timestamps may differ from the count.
    private let tolerance: Int64
    /// Samples beyond the usual by which one step shows missing audio.
    private let leap: Int64
    private var last: Int64?
    private var next: Int64 = 0
    private var lastGiven: Int64 = 0
    private var lastLength: Int64 = 0
    private var span = Span(end: 0)
    /// The width of the timestamps in the span before.
    private var usual: Int64
    /// Samples by which the count still has to move.
    private var owed: Int64 = 0

    /// `toleranceMs` covers rounding to milliseconds.
    package init(sampleRate: Int, toleranceMs: Int = 5) {
        self.sampleRate = Int64(max(1, sampleRate))
        self.tolerance = Int64(max(1, toleranceMs)) * self.sampleRate / 1_000
        self.leap = Int64(max(60, toleranceMs)) * self.sampleRate / 1_000
        self.usual = Self.unknownMs * self.sampleRate / 1_000
    }

    /// The start of a run of `samples` stamped `ms`, in samples from the timeline's 0. Always above earlier results.
    package mutating func time(ms: Int64, samples: Int) -> Int64 {
        let length = Int64(max(1, min(samples, 1 << 20)))
        let given = Self.scale(Self.bounded(ms), self.sampleRate, 1_000)
        defer {
            self.lastGiven = given
            self.lastLength = length
        }
        guard let last = self.last else { return self.settle(at: given, length) }
        let ahead = given - self.next
        let excess = given - self.lastGiven - self.lastLength
        let isLeap = ahead > self.leap && excess > self.leap + max(self.usual, self.span.widest)
        if isLeap || ahead > Self.mostBehindMs * self.sampleRate / 1_000 { return self.settle(at: given, length) }
        if -ahead > Self.mostAheadMs * self.sampleRate / 1_000 { return self.settle(at: max(last + 1, given), length) }
        self.span.widest = max(self.span.widest, excess)
        self.span.least = min(self.span.least, ahead)
        self.span.most = max(self.span.most, ahead)
        let time = max(last + 1, self.next + self.step(length))
        if time >= self.span.end {
            self.usual = self.span.widest
            self.owed = self.span.least > self.tolerance ? self.span.least : self.span.most < -self.tolerance ? self.span.most : 0
            self.span = Span(end: time + Self.spanSeconds * self.sampleRate)
        }
        self.last = time
        self.next = time + length
        return time
    }

    /// The part of what the count owes that this run pays.
    private mutating func step(_ length: Int64) -> Int64 {
        guard self.owed != 0 else { return 0 }
        let most = max(1, length / 16)
        let step = self.owed > 5 * length ? self.owed : max(-most, min(most, self.owed))
        self.owed -= step
        // The span has been measured by the count as it was.
        self.span.least -= step
        self.span.most -= step
        return step
    }

    /// Places the count at a timestamp.
    private mutating func settle(at time: Int64, _ length: Int64) -> Int64 {
        self.last = time
        self.next = time + length
        self.owed = 0
        self.span = Span(end: time + Self.spanSeconds * self.sampleRate)
        return time
    }

    /// Clamps milliseconds to 35,000 years either way, which no clock's ticks overflow.
    package static func bounded(_ ms: Int64) -> Int64 { max(-(1 << 50), min(1 << 50, ms)) }

    /// `value` × `to` ÷ `from`, rounded to the nearest, without overflow.
    package static func scale(_ value: Int64, _ to: Int64, _ from: Int64) -> Int64 {
        let whole = value / from * to
        let rest = value % from * to
        return whole + (rest >= 0 ? rest + from / 2 : rest - from / 2) / from
    }
}
