/// The mark behind every coded frame's tag header, which shows loss, damage and age. A plain value.
///
/// ```
/// | magic 4 | message length 4 | room 3 | sequence 5 | send time 9 |      seven bits a byte, high bit set, big-endian
/// ```
///
/// No byte is zero, so the frame holds no start code.
struct Stamp: Equatable {
    /// Bytes of the whole tag body.
    var length: Int
    var room: Int
    /// Counts the frames of one track of one room.
    var sequence: UInt64
    /// Nanoseconds of CLOCK_MONOTONIC.
    var sentNs: UInt64

    static let byteCount = 25
    private static let magic: [UInt8] = [0xE5, 0xA5, 0x91, 0xAD]

    init(length: Int, room: Int, sequence: UInt64, sentNs: UInt64) {
        self.length = length
        self.room = room
        self.sequence = sequence
        self.sentNs = sentNs
    }

    /// Reads `byteCount` bytes; `nil` when they are not a stamp.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.byteCount else { return nil }
        for index in 0..<4 where bytes[index] != Self.magic[index] { return nil }
        self.length = Int(Self.number(bytes, 4..<8))
        self.room = Int(Self.number(bytes, 8..<11))
        self.sequence = Self.number(bytes, 11..<16)
        self.sentNs = Self.number(bytes, 16..<25)
    }

    func write(to bytes: UnsafeMutableRawBufferPointer) {
        for index in 0..<4 { bytes[index] = Self.magic[index] }
        Self.put(UInt64(self.length), bytes, 4..<8)
        Self.put(UInt64(self.room), bytes, 8..<11)
        Self.put(self.sequence, bytes, 11..<16)
        Self.put(self.sentNs, bytes, 16..<25)
    }

    private static func number(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> UInt64 {
        var value: UInt64 = 0
        for index in range { value = value << 7 | UInt64(bytes[index] & 0x7F) }
        return value
    }

    private static func put(_ value: UInt64, _ bytes: UnsafeMutableRawBufferPointer, _ range: Range<Int>) {
        var rest = value
        for index in range.reversed() {
            bytes[index] = UInt8(rest & 0x7F) | 0x80
            rest >>= 7
        }
    }
}

/// The bytes that fill a frame behind its stamp. The same for publisher and viewer, and different from one frame to the next.
enum Pattern {
    /// Number of places in the pattern where a frame may start.
    private static let offsets: UInt64 = 4096
    /// Bytes of the longest message.
    static let longestMessage = 4 << 20

    /// No byte is zero. Immutable after creation and never freed, so that any thread may read it.
    nonisolated(unsafe) private static let bytes: UnsafeRawBufferPointer = {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Pattern.longestMessage + Int(Pattern.offsets), alignment: 64)
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        for index in buffer.indices {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            buffer[index] = UInt8(truncatingIfNeeded: state >> 32) | 1
        }
        return UnsafeRawBufferPointer(buffer)
    }()

    /// The fill for the message bytes `range` of the frame with this sequence number.
    static func fill(sequence: UInt64, _ range: Range<Int>) -> UnsafeRawBufferPointer {
        let base = Int(sequence &* 1031 % self.offsets)
        return UnsafeRawBufferPointer(rebasing: self.bytes[base + range.lowerBound..<base + range.upperBound])
    }
}
