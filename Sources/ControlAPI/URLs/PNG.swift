/// Writes PNG pictures (RFC 2083). Uncompressed: codes are small.
enum PNG {
    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// Encodes a picture. `lines` are its rows, each with its filter byte first, eight pixels a byte.
    static func oneBitGrey(width: Int, height: Int, lines: [UInt8]) -> [UInt8] {
        // §4.1.1: bit depth 1, greyscale, deflate, no interlace.
        let header = self.bigEndian(UInt32(clamping: width)) + self.bigEndian(UInt32(clamping: height)) + [1, 0, 0, 0, 0]
        return self.signature + self.chunk("IHDR", header) + self.chunk("IDAT", self.zlib(lines)) + self.chunk("IEND", [])
    }

    /// Length, type, data, CRC of type and data.
    private static func chunk(_ type: StaticString, _ data: [UInt8]) -> [UInt8] {
        let body = Array("\(type)".utf8) + data
        return self.bigEndian(UInt32(clamping: data.count)) + body + self.bigEndian(self.crc32(body))
    }

    /// RFC 1950 around stored blocks of RFC 1951 §3.2.4.
    private static func zlib(_ data: [UInt8]) -> [UInt8] {
        var out: [UInt8] = [0x78, 0x01]
        var rest = data[...]
        repeat {
            let block = rest.prefix(0xFFFF)
            rest = rest.dropFirst(block.count)
            let length = UInt16(block.count)
            out += [rest.isEmpty ? 1 : 0, UInt8(length & 255), UInt8(length >> 8), UInt8(~length & 255), UInt8(~length >> 8)]
            out += block
        } while !rest.isEmpty
        return out + self.bigEndian(self.adler32(data))
    }

    private static func adler32(_ data: [UInt8]) -> UInt32 {
        var (a, b): (UInt32, UInt32) = (1, 0)
        for byte in data {
            a = (a + UInt32(byte)) % 65_521
            b = (b + a) % 65_521
        }
        return b << 16 | a
    }

    /// RFC 2083 §15.
    private static let crcTable: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
    }

    private static func crc32(_ data: [UInt8]) -> UInt32 {
        ~data.reduce(UInt32.max) { self.crcTable[Int(($0 ^ UInt32($1)) & 255)] ^ ($0 >> 8) }
    }

    private static func bigEndian(_ value: UInt32) -> [UInt8] {
        [UInt8(value >> 24), UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255)]
    }
}
