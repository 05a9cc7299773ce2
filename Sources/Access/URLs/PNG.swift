import CZlib

/// Writes PNG pictures (RFC 2083).
enum PNG {
    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// Encodes a picture. `lines` are its rows, each with its filter byte first, eight pixels a byte.
    static func oneBitGrey(width: Int, height: Int, lines: [UInt8]) -> [UInt8] {
        // §4.1.1: bit depth 1, greyscale, deflate, no interlace.
        let header = self.bigEndian(UInt32(clamping: width)) + self.bigEndian(UInt32(clamping: height)) + [1, 0, 0, 0, 0]
        return self.signature + self.chunk("IHDR", header) + self.chunk("IDAT", self.packed(lines)) + self.chunk("IEND", [])
    }

    /// Length, type, data, CRC of type and data (§3.2).
    private static func chunk(_ type: StaticString, _ data: [UInt8]) -> [UInt8] {
        let body = Array("\(type)".utf8) + data
        return self.bigEndian(UInt32(clamping: data.count)) + body
            + self.bigEndian(UInt32(truncatingIfNeeded: crc32(0, body, uInt(body.count))))
    }

    private static func packed(_ data: [UInt8]) -> [UInt8] {
        var length = compressBound(uLong(data.count))
        return [UInt8](unsafeUninitializedCapacity: Int(length)) { buffer, count in
            // With a buffer of that size, zlib fails only without memory, and then nothing else works either: the picture is empty.
            count = compress(buffer.baseAddress, &length, data, uLong(data.count)) == Z_OK ? Int(length) : 0
        }
    }

    private static func bigEndian(_ value: UInt32) -> [UInt8] {
        [UInt8(value >> 24), UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255)]
    }
}
