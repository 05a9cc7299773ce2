/// A talker's audio on its own timeline, with holes where the talker sent none. Owned by a ``JitterBuffer``; a plain value.
///
///     origin … read          end
///     | past | audio | hole | audio |
///
/// Positions are samples at 48 kHz. Memory: audio before the reader is removed from time to time; its owner bounds the audio ahead.
struct SampleQueue: Sendable {
    /// Samples that may lie ahead of the reader by default: a second.
    static let capacity = 48_000
    /// Samples kept before the reader, for interpolation.
    static let past = 64
    /// Longest hole laid out in memory; a longer one restarts the queue.
    private static let maxHole: Int64 = 24_000

    private var storage: [Float] = []
    private var origin: Int64 = 0
    /// Ordered, without overlap.
    private var holes: [Range<Int64>] = []

    /// Position after the last sample.
    var end: Int64 { self.origin + Int64(self.storage.count) }

    /// Appends audio at or after the end. Returns false when the hole before it was so long that all earlier audio was dropped.
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

    /// Position of the first sample at or after a position; nil when there is none.
    func first(from position: Int64) -> Int64? {
        var first = max(position, self.origin)
        for hole in self.holes where hole.contains(first) { first = hole.upperBound }
        return first < self.end ? first : nil
    }

    /// The audio or hole at a position, and where it ends; nil past the end.
    func piece(at position: Int64) -> (isAudio: Bool, end: Int64)? {
        guard position < self.end else { return nil }
        guard position >= self.origin else { return (false, self.origin) }
        for hole in self.holes {
            if hole.contains(position) { return (false, hole.upperBound) }
            if hole.lowerBound > position { return (true, hole.lowerBound) }
        }
        return (true, self.end)
    }

    /// Number of audio samples within a range.
    func audio(in range: Range<Int64>) -> Int64 {
        let range = range.clamped(to: min(self.origin, self.end)..<self.end)
        return self.holes.reduce(Int64(range.count)) { $0 - Int64($1.clamped(to: range).count) }
    }

    /// Whether a range is all audio, without a hole.
    func isWhole(_ range: Range<Int64>) -> Bool {
        range.lowerBound >= self.origin && range.upperBound <= self.end && !self.holes.contains { $0.overlaps(range) }
    }

    /// Lends the samples of a range within the queue; an empty buffer for any other.
    func withSamples<Result>(_ range: Range<Int64>, _ body: (UnsafeBufferPointer<Float>) -> Result) -> Result {
        self.storage.withUnsafeBufferPointer { storage in
            guard range.lowerBound >= self.origin, range.upperBound <= self.end else {
                return body(UnsafeBufferPointer(start: nil, count: 0))
            }
            let start = Int(range.lowerBound - self.origin)
            return body(UnsafeBufferPointer(rebasing: storage[start..<(start + range.count)]))
        }
    }

    /// Drops audio before the reader, once there is enough of it.
    mutating func forget(before position: Int64) {
        let unused = min(Int64(self.storage.count), position - Int64(Self.past) - self.origin)
        guard unused > 4_096 else { return }
        self.storage.removeFirst(Int(unused))
        self.origin += unused
        self.holes.removeAll { $0.upperBound <= self.origin }
    }
}
