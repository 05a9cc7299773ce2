/// Estimates how late a talker's audio arrives, and the delay for even playback. Owned by a ``JitterBuffer``; a plain value. All in
/// samples.
///
/// A run's transit is its arrival minus its position on the talker's timeline: the origin is unknown, only changes count. The least transit of
/// the last 4 s is the ``base``, that of undelayed audio; it follows the drift of the talker's clock. The largest lateness against it in
/// the last half minute gives the ``target``, which grows at once and shrinks slowly. A connection that held audio up will do so again, and
/// every underrun is heard, while 20 ms more are not.
struct ArrivalTiming: Sendable {
    /// Samples by which the target shrinks per tick: 30 ms per second.
    private static let shrink: Int64 = 30
    /// Added to the measured lateness. A tick takes its 1,024 samples at once, and the next run may be another 10 ms later.
    private static let margin = Int64(TalkFormat.blockSamples) + 480
    /// Samples (2 s) after its start in which a talker is held for at least ``JitterLimits/startMs``.
    private static let learning: Int64 = 96_000
    /// A delay beyond the maximum counts as a habit when it is repeated within 5 s. Then the buffer's delay is raised to its maximum, so that each
    /// repetition loses less.
    private static let habit: Int64 = 240_000

    private let least: Int64
    private let start: Int64
    private let most: Int64
    /// The least transit; nil before the first run.
    private(set) var base: Int64?
    /// How long after its earliest possible arrival audio is played.
    private(set) var target: Int64
    /// Interarrival jitter in sixteenths of a sample: RFC 3550 §6.4.1 and §A.8.
    private(set) var jitter: Int64 = 0
    private var begun: Int64?
    /// The base before a restart, until it is reached again. If it is, all the late audio had only been held up.
    private var baseBefore: Int64?
    /// Time of the last such hold-up.
    private var heldUp: Int64?
    private var last: Int64?
    private var transits = SlidingWindow(buckets: 16, width: 12_000)
    private var lateness = SlidingWindow(buckets: 30, width: 48_000)

    init(_ limits: JitterLimits) {
        self.least = Int64(TalkFormat.samples(ms: limits.minMs))
        self.start = Int64(TalkFormat.samples(ms: limits.startMs))
        self.most = Int64(TalkFormat.samples(ms: limits.maxMs))
        self.target = self.start
    }

    /// Largest delay: audio due later than this is not played at all.
    var latest: Int64 { self.most }

    /// The part of a hole before a run that its arrival makes credible. Audio cannot come before it was spoken.
    func credible(hole: Int64, next: Int64, arrival: Int64) -> Int64 {
        guard let base, arrival - next - hole < base - 2_880 else { return hole }
        return min(hole, max(0, arrival - base - next))
    }

    /// Records a run. Returns true when the run is so late that it counts as a restart; if it was only held up, the next runs show that at once.
    mutating func arrived(at arrival: Int64, start: Int64, isContiguous: Bool) -> Bool {
        let transit = arrival - start
        if let last, isContiguous { self.jitter += min(abs(transit - last), 48_000) - self.jitter / 16 }
        self.last = transit
        if self.begun == nil { self.begun = arrival }
        let late = self.base.map { transit - $0 } ?? 0
        let isRestart = late > self.most
        if isRestart {
            self.transits = SlidingWindow(buckets: self.transits.buckets, width: self.transits.width)
            self.target = max(self.target, self.start)
        }
        self.transits.add(-transit, at: arrival)
        guard let base = self.base, !isRestart else {
            self.baseBefore = self.base
            self.base = transit
            return isRestart
        }
        self.base = min(base, transit)
        self.noteBurst(min(base, transit), arrival)
        self.lateness.add(max(0, late), at: arrival)
        self.target = max(self.target, self.wanted)
        return false
    }

    private mutating func noteBurst(_ base: Int64, _ arrival: Int64) {
        guard let before = self.baseBefore, base - before < self.most / 2 else { return }
        if let heldUp, abs(arrival - heldUp) < Self.habit { self.lateness.add(self.most, at: arrival) }
        self.heldUp = arrival
        self.baseBefore = nil
    }

    /// Advances by a tick.
    mutating func tick(now: Int64) {
        if let base, let least = self.transits.largest.map(-), least > base {
            // Gradually, because a step would be audible in the playback rate of a drifting talker.
            let rise = max(1, (least - base) / 16)
            self.base = base + rise
            self.lateness.lower(by: rise)
        }
        var wanted = self.wanted
        if let begun, abs(now - begun) < Self.learning { wanted = max(wanted, self.start) }
        self.target = max(wanted, self.target - Self.shrink)
    }

    private var wanted: Int64 { min(self.most, max(self.least, (self.lateness.largest ?? 0) + Self.margin)) }
}

/// The largest value within a sliding window. A plain value of fixed size.
struct SlidingWindow: Sendable {
    let buckets: Int
    /// Width of a bucket, in samples.
    let width: Int64
    private var values: [Int64?]
    private(set) var largest: Int64?
    /// The newest bucket's number.
    private var newest: Int64?

    init(buckets: Int, width: Int64) {
        self.buckets = max(1, buckets)
        self.width = max(1, width)
        self.values = Array(repeating: nil, count: self.buckets)
    }

    /// Adds a value seen at a time. Times slightly in the past count as the newest one; a time further back clears the window.
    mutating func add(_ value: Int64, at time: Int64) {
        var number = time / self.width
        if let newest, newest - number > Int64(self.buckets) {
            self = SlidingWindow(buckets: self.buckets, width: self.width)
        }
        if let newest {
            number = max(number, newest)
            let passed = number - newest
            for step in 0..<min(passed, Int64(self.buckets)) { self.values[self.index(number - step)] = nil }
            if passed > 0 { self.largest = self.values.reduce(nil) { most, value in value.map { max(most ?? $0, $0) } ?? most } }
        }
        self.newest = number
        let index = self.index(number)
        self.values[index] = max(self.values[index] ?? value, value)
        self.largest = max(self.largest ?? value, value)
    }

    /// Lowers all values, but not below 0.
    mutating func lower(by amount: Int64) {
        for index in self.values.indices { self.values[index] = self.values[index].map { max(0, $0 - amount) } }
        self.largest = self.largest.map { max(0, $0 - amount) }
    }

    private func index(_ number: Int64) -> Int {
        let rest = Int(number % Int64(self.buckets))
        return rest < 0 ? rest + self.buckets : rest
    }
}
