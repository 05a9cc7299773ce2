import NIOCore

/// A stored part.
struct HeldPart: Sendable {
    let bytes: ByteBuffer
    let durationMicros: Int64
    let isIndependent: Bool
}

/// A stored segment, whose bytes are those of its parts.
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
    /// Whether its parts may be listed: false if one violates the part target.
    var listsParts = true
    /// Time when it was first listed as a segment, in the caller's milliseconds.
    var listedMs: Int64 = 0
    /// Time until which it stays reachable after leaving the playlist, in the caller's milliseconds.
    var keptUntilMs: Int64 = 0

    mutating func append(_ part: HeldPart) {
        self.durationMicros += part.durationMicros
        self.byteCount += part.bytes.readableBytes
        self.heldBytes += Self.cost(part.bytes)
        self.parts.append(part)
    }

    /// Splits its parts into segments of so many, with consecutive Media Sequence Numbers. `isIndependent`: whether those after the first can be decoded
    /// on their own.
    func split(into counts: [Int], isIndependent: Bool) -> [Segment] {
        var date = self.programDateTimeMs
        var parts = self.parts[...]
        return counts.enumerated().map { index, count in
            var segment = Segment(
                sequence: self.sequence + index, hasDiscontinuity: index == 0 && self.hasDiscontinuity,
                isIndependent: index == 0 ? self.isIndependent : isIndependent, initialization: self.initialization,
                firstPart: self.firstPart + self.parts.count - parts.count, programDateTimeMs: date)
            for part in parts.prefix(count) { segment.append(part) }
            parts = parts.dropFirst(count)
            date = date.map { $0 + segment.durationMicros / 1_000 }
            return segment
        }
    }

    /// Whether its parts respect a part target, in microseconds (RFC 8216bis §4.4.4.9). Each is at most the target and at least 85 % of it,
    /// except that independent ones and the last may be shorter.
    func keepsParts(to target: Int64) -> Bool {
        self.parts.indices.allSatisfy { index in
            let part = self.parts[index]
            guard part.durationMicros <= target else { return false }
            return part.isIndependent || index == self.parts.count - 1 || part.durationMicros * 100 >= target * 85
        }
    }

    /// Bytes of memory that a piece of media holds, including bookkeeping.
    static func cost(_ bytes: ByteBuffer) -> Int { bytes.storageCapacity + MemoryLayout<HeldPart>.stride }

    /// Copies a small slice into storage of about its size. The slice would keep alive the large buffer that it was cut from.
    static func compacted(_ bytes: ByteBuffer) -> ByteBuffer {
        guard bytes.storageCapacity > 2 * bytes.readableBytes + 1_024 else { return bytes }
        return ByteBuffer(bytes: bytes.readableBytesView)
    }
}

/// A stored initialization section.
struct Initialization: Sendable {
    let number: Int
    let bytes: ByteBuffer
}
