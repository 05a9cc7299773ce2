internal import NIOCore

/// The header that AAC has in files and on the air, ISO/IEC 14496-3 §1.A.2. FLV has its content in the sequence header instead.
///
///     | sync 0xFFF | id UB[1] layer UB[2] no CRC UB[1] | profile UB[2] rate index UB[4] private UB[1] channels UB[3] | 4 bits |
///     | frame length UB[13], header included | buffer fullness UB[11] | raw data blocks - 1 UB[2] | CRC UI16, if there is one |
///
/// A plain value.
struct ADTSHeader {
    /// Bytes: 7, or 9 with a checksum.
    let length: Int
    /// Bytes of header and block.
    let frameLength: Int
    /// Whether the frame holds more than one block.
    let hasSeveralBlocks: Bool
    /// The AudioSpecificConfig of two bytes that says the same; nil if the header leaves the channels to the block, or has a reserved rate.
    let config: [UInt8]?

    /// No AAC block begins like this: the first three bits would be those of its end.
    static func begins(_ bytes: ByteBuffer, at offset: Int) -> Bool {
        bytes.getInteger(at: offset, as: UInt16.self).map { $0 & 0xFFF6 == 0xFFF0 } ?? false
    }

    /// Reads the header at this offset; nil where none begins, or it is cut short.
    init?(_ bytes: ByteBuffer, at offset: Int) {
        guard Self.begins(bytes, at: offset), let word = bytes.getInteger(at: offset, as: UInt64.self) ?? Self.seven(bytes, at: offset)
        else {
            return nil
        }
        self.length = word >> 48 & 1 == 1 ? 7 : 9
        self.frameLength = Int(word >> 21 & 0x1FFF)
        self.hasSeveralBlocks = word >> 8 & 3 != 0
        let profile = UInt8(truncatingIfNeeded: word >> 46 & 3)
        let rate = UInt8(truncatingIfNeeded: word >> 42 & 0xF)
        let channels = UInt8(truncatingIfNeeded: word >> 38 & 7)
        // The object type is the profile plus one: §1.A.2.2.1.
        self.config =
            channels > 0 && rate <= 12 ? [(profile &+ 1) << 3 | rate >> 1, (rate & 1) << 7 | channels << 3] : nil
    }

    /// The last seven bytes of a buffer, as the upper ones of a word.
    private static func seven(_ bytes: ByteBuffer, at offset: Int) -> UInt64? {
        guard let high = bytes.getInteger(at: offset, as: UInt32.self), let middle = bytes.getInteger(at: offset &+ 4, as: UInt16.self),
            let low = bytes.getInteger(at: offset &+ 6, as: UInt8.self)
        else { return nil }
        return UInt64(high) << 32 | UInt64(middle) << 16 | UInt64(low) << 8
    }
}
