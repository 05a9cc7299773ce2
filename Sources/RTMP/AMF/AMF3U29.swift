package import NIOCore

/// AMF3 §1.3.1: an unsigned integer of 29 bits, high bits first.
///
///     0xxxxxxx                              7 bits
///     1xxxxxxx 0xxxxxxx                    14 bits
///     1xxxxxxx 1xxxxxxx 0xxxxxxx           21 bits
///     1xxxxxxx 1xxxxxxx 1xxxxxxx xxxxxxxx  29 bits: the fourth byte has no flag
extension ByteBuffer {
    /// Appends the low 29 bits of `value`.
    package mutating func writeAMF3U29(_ value: UInt32) {
        let value = value & 0x1FFF_FFFF
        func flagged(_ shift: UInt32) -> UInt8 { UInt8(truncatingIfNeeded: value >> shift) | 0x80 }
        func plain(_ shift: UInt32) -> UInt8 { UInt8(truncatingIfNeeded: value >> shift) & 0x7F }
        switch value {
        case ..<0x80: writeInteger(plain(0))
        case ..<0x4000: writeMultipleIntegers(flagged(7), plain(0))
        case ..<0x20_0000: writeMultipleIntegers(flagged(14), flagged(7), plain(0))
        default: writeMultipleIntegers(flagged(22), flagged(15), flagged(8), UInt8(truncatingIfNeeded: value))
        }
    }

    /// Reads the next 29-bit integer; returns nil and consumes nothing if it is incomplete.
    package mutating func readAMF3U29() -> UInt32? {
        let start = readerIndex
        var value: UInt32 = 0
        for _ in 0..<3 {
            guard let byte: UInt8 = readInteger() else {
                moveReaderIndex(to: start)
                return nil
            }
            value = value << 7 | UInt32(byte & 0x7F)
            if byte & 0x80 == 0 { return value }
        }
        guard let byte: UInt8 = readInteger() else {
            moveReaderIndex(to: start)
            return nil
        }
        return value << 8 | UInt32(byte)
    }
}
