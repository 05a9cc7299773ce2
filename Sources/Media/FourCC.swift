/// A four-character code that names a codec on the wire, first character in the highest byte.
///
/// A plain value. Source: Enhanced RTMP v2, "Enhanced Video" and "Enhanced Audio" (`makeFourCc`).
package struct FourCC: Hashable, Sendable, RawRepresentable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The four characters as they stand on the wire, big-endian.
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// For literals in code: the first four bytes, padded with spaces on the right.
    package init(stringLiteral value: StaticString) {
        self.rawValue = value.withUTF8Buffer { bytes in
            var code: UInt32 = 0
            for index in 0..<4 { code = code << 8 | UInt32(index < bytes.count ? bytes[index] : 0x20) }
            return code
        }
    }

    /// The four characters when all are printable ASCII, otherwise the number in hex.
    package var description: String {
        let bytes = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: self.rawValue >> UInt32($0)) }
        guard bytes.allSatisfy({ (0x20..<0x7F).contains($0) }) else { return "0x" + String(self.rawValue, radix: 16) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
