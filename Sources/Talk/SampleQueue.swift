/// A talker's audio on its own line of time, with holes where the talker sent none. Owned by a ``JitterBuffer``; a plain value.
///
///     origin … read          end
///     | past | audio | hole | audio |
///
/// Positions are samples at 48 kHz. Memory: what lies before the reader is cut off now and then, what lies behind it is bounded by
/// its owner.
struct SampleQueue: Sendable {
    /// Samples that may lie ahead of the reader, unless its owner says otherwise: a second.
    static let capacity = 48_000
    /// Samples before the reader that stay, for interpolation.
    static let past = 64
    /// Of a hole that is laid out in memory; after a longer one the queue starts anew.
    private static let maxHole: Int64 = 24_000

    private var storage: [Float] = []
    private var origin: Int64 = 0
    /// Ordered, without overlap.
    private var holes: [Range<Int64>] = []

    /// Behind the last sample.
    var end: Int64 { self.origin + Int64(self.storage.count) }

    /// Adds audio at or after the end. False: the hole before it is so long that all else was dropped.
    mutating func append(_ samples: [Float], at start: Int64) -> Bool {
        let hole = start - self.end
        guard !self.storage.isEmpty, hole <= Self.maxHole else {
            let wasEmpty = self.storage.isEmpty
            self.storage = samples
            self.origin = start
            self.holes = []
            return wasEmpty
        }
        if hole > 0 {
            self.holes.append(self.end..<start)
            self.storage.append(contentsOf: repeatElement(0, count: Int(hole)))
        }
        self.storage.append(contentsOf: samples)
        return true
    }

    /// The first sample at or after a position; nil when there is none.
    func first(from position: Int64) -> Int64? {
        var first = max(position, self.origin)
        for hole in self.holes where hole.contains(first) { first = hole.upperBound }
        return first < self.end ? first : nil
    }

    /// What lies at a position, and how far: audio, a hole, or nothing more (nil).
    func piece(at position: Int64) -> (isAudio: Bool, end: Int64)? {
        guard position < self.end else { return nil }
        guard position >= self.origin else { return (false, self.origin) }
        for hole in self.holes {
            if hole.contains(position) { return (false, hole.upperBound) }
            if hole.lowerBound > position { return (true, hole.lowerBound) }
        }
        return (true, self.end)
    }

    /// Samples of audio within a range.
    func audio(in range: Range<Int64>) -> Int64 {
        let range = range.clamped(to: min(self.origin, self.end)..<self.end)
        return self.holes.reduce(Int64(range.count)) { $0 - Int64($1.clamped(to: range).count) }
    }

    /// Whether there is audio, without a hole, all over a range.
    func isWhole(_ range: Range<Int64>) -> Bool {
        range.lowerBound >= self.origin && range.upperBound <= self.end && !self.holes.contains { $0.overlaps(range) }
    }

    /// Lends the samples of a range that lies within the queue; an empty buffer for any other.
    func withSamples<Result>(_ range: Range<Int64>, _ body: (UnsafeBufferPointer<Float>) -> Result) -> Result {
        self.storage.withUnsafeBufferPointer { storage in
            guard range.lowerBound >= self.origin, range.upperBound <= self.end else {
                return body(UnsafeBufferPointer(start: nil, count: 0))
            }
            let start = Int(range.lowerBound - self.origin)
            return body(UnsafeBufferPointer(rebasing: storage[start..<(start + range.count)]))
        }
    }

    /// Forgets what lies before the reader, when that has become much.
    mutating func forget(before position: Int64) {
        let unused = min(Int64(self.storage.count), position - Int64(Self.past) - self.origin)
        guard unused > 4_096 else { return }
        self.storage.removeFirst(Int(unused))
        self.origin += unused
        self.holes.removeAll { $0.upperBound <= self.origin }
    }
}
