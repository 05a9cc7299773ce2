/// Turns RTMP's whole milliseconds into sample-exact audio times, so that players hear no gaps.
///
/// A plain value; one per track. It counts samples as long as the timestamps agree with the count, and jumps forward where they show that audio is
/// missing. If the count has run ahead of them, it slows down, and never steps back.
package struct AudioClock: Sendable, Equatable {
    /// Hz.
    private let sampleRate: Int64
    /// Samples by which the count may differ from the timestamps.
    private let tolerance: Int64
    private var last: Int64?
    private var next: Int64 = 0

    /// `toleranceMs` covers rounding to milliseconds and the jitter of encoders that stamp by wall clock.
    package init(sampleRate: Int, toleranceMs: Int = 25) {
        self.sampleRate = Int64(max(1, sampleRate))
        self.tolerance = Int64(max(1, toleranceMs)) * self.sampleRate / 1_000
    }

    /// The start of a run of `samples` stamped `ms`, in samples from the timeline's 0. Always above earlier results.
    package mutating func time(ms: Int64, samples: Int) -> Int64 {
        let length = Int64(max(1, min(samples, 1 << 20)))
        let given = Self.scale(Self.bounded(ms), self.sampleRate, 1_000)
        guard let last else {
            self.last = given
            self.next = given + length
            return given
        }
        var time = self.next
        if given - time > self.tolerance {
            time = given
        } else if time - given > self.tolerance {
            // A sixteenth of a run at a time is inaudible. The count returns to the timestamps.
            time = max(last + 1, given, time - max(1, length / 16))
        }
        self.last = time
        self.next = time + length
        return time
    }

    /// Clamps milliseconds to 35,000 years either way, which no clock's ticks overflow.
    static func bounded(_ ms: Int64) -> Int64 {
        max(-(1 << 50), min(1 << 50, ms))
    }

    /// `value` × `to` ÷ `from`, rounded to the nearest, without overflow.
    static func scale(_ value: Int64, _ to: Int64, _ from: Int64) -> Int64 {
        let whole = value / from * to
        let rest = value % from * to
        return whole + (rest >= 0 ? rest + from / 2 : rest - from / 2) / from
    }
}
