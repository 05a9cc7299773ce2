import NIOCore

/// A part as it is held.
struct HeldPart: Sendable {
    let bytes: ByteBuffer
    let durationMicros: Int64
    let isIndependent: Bool
}

/// A segment as it is held: its parts are its bytes.
struct Segment: Sendable {
    /// Media Sequence Number.
    let sequence: Int
    /// Whether EXT-X-DISCONTINUITY applies to it.
    let hasDiscontinuity: Bool
    /// Whether it starts with a keyframe.
    let isIndependent: Bool
    /// Number of its initialization section. Meaningless in MPEG-TS.
    let initialization: Int
    /// Number of its first part; the others follow.
    let firstPart: Int
    /// Milliseconds since 1970.
    let programDateTimeMs: Int64?
    private(set) var parts: [HeldPart] = []
    private(set) var durationMicros: Int64 = 0
    /// Bytes of media.
    private(set) var byteCount = 0
    /// Bytes of memory.
    private(set) var heldBytes = 0
    /// Whether its parts may be listed: not so when one does not keep to the part target.
    var listsParts = true
    /// When it first was in a playlist as a segment: the caller's milliseconds.
    var listedMs: Int64 = 0
    /// Until when it is reachable once it has left the playlist: the caller's milliseconds.
    var keptUntilMs: Int64 = 0

    init(sequence: Int, hasDiscontinuity: Bool, isIndependent: Bool, initialization: Int, firstPart: Int, programDateTimeMs: Int64?) {
        self.sequence = sequence
        self.hasDiscontinuity = hasDiscontinuity
        self.isIndependent = isIndependent
        self.initialization = initialization
        self.firstPart = firstPart
        self.programDateTimeMs = programDateTimeMs
    }

    mutating func append(_ part: HeldPart) {
        self.durationMicros += part.durationMicros
        self.byteCount += part.bytes.readableBytes
        self.heldBytes += Self.cost(part.bytes)
        self.parts.append(part)
    }

    /// The same parts as several segments of about the same number of parts, with Media Sequence Numbers that go on. There must be a part
    /// for each at least. `isIndependent`: whether those behind the first can be decoded by themselves.
    func split(into count: Int, isIndependent: Bool) -> [Segment] {
        var date = self.programDateTimeMs
        return (0..<count).map { index in
            let range = self.parts.count * index / count..<self.parts.count * (index + 1) / count
            var segment = Segment(
                sequence: self.sequence + index, hasDiscontinuity: index == 0 && self.hasDiscontinuity,
                isIndependent: index == 0 ? self.isIndependent : isIndependent, initialization: self.initialization,
                firstPart: self.firstPart + range.lowerBound, programDateTimeMs: date)
            for part in self.parts[range] { segment.append(part) }
            date = date.map { $0 + segment.durationMicros / 1_000 }
            return segment
        }
    }

    /// Whether its parts keep to a part target, in microseconds: RFC 8216bis §4.4.4.9, at most the target, and at least 85 % of it but
    /// for independent ones and the last.
    func keepsParts(to target: Int64) -> Bool {
        self.parts.indices.allSatisfy { index in
            let part = self.parts[index]
            guard part.durationMicros <= target else { return false }
            return part.isIndependent || index == self.parts.count - 1 || part.durationMicros * 100 >= target * 85
        }
    }

    /// Bytes of memory that a piece of media holds, bookkeeping included.
    static func cost(_ bytes: ByteBuffer) -> Int { bytes.storageCapacity + MemoryLayout<HeldPart>.stride }

    /// The same bytes in storage of about their size: a small slice would keep the large buffer that it was cut from.
    static func compacted(_ bytes: ByteBuffer) -> ByteBuffer {
        guard bytes.storageCapacity > 2 * bytes.readableBytes + 1_024 else { return bytes }
        return ByteBuffer(bytes: bytes.readableBytesView)
    }
}

/// An initialization section as it is held.
struct Initialization: Sendable {
    let number: Int
    let bytes: ByteBuffer
}
