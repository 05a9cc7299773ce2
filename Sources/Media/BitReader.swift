internal import NIOCore

/// Reads bit fields, most significant bit first, and never past the end.
///
/// A plain value over its own copy of the bytes; made for codec headers, never per frame.
package struct BitReader: Sendable {
    /// Maximum bytes read. Real parameter sets are under 100; scaling lists and VUI need a few hundred.
    package static let maxBytes = 4_096

    private let bytes: [UInt8]
    /// Position in bits.
    private var position = 0

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    init(_ bytes: ByteBuffer) { self.init(Array(bytes.readableBytesView.prefix(Self.maxBytes))) }

    /// Reads the raw byte sequence payload of a NAL unit. Each 00 00 03 loses its 03 (H.264 §7.4.1, H.265 §7.4.2).
    init(rbspOf nal: ByteBuffer) throws(MediaError) {
        guard nal.readableBytes <= Self.maxBytes else {
            throw .overLimit(field: "parameter set (bytes)", found: nal.readableBytes, max: Self.maxBytes)
        }
        var raw: [UInt8] = []
        raw.reserveCapacity(nal.readableBytes)
        var zeros = 0
        for byte in nal.readableBytesView {
            if zeros >= 2, byte == 3 {
                zeros = 0
                continue
            }
            zeros = byte == 0 ? zeros &+ 1 : 0
            raw.append(byte)
        }
        self.init(raw)
    }

    /// Unread bits.
    package var remaining: Int { self.bytes.count &* 8 &- self.position }

    /// Reads the next `count` bits, 0…32, as a number.
    package mutating func bits(_ count: Int, _ field: String) throws(MediaError) -> UInt32 {
        try self.require(count, field)
        var value: UInt32 = 0
        for _ in 0..<min(count, 32) {
            value = value << 1 | UInt32(self.bytes[self.position >> 3] >> UInt8(7 &- (self.position & 7)) & 1)
            self.position &+= 1
        }
        return value
    }

    package mutating func flag(_ field: String) throws(MediaError) -> Bool { try self.bits(1, field) == 1 }

    package mutating func skip(_ count: Int, _ field: String) throws(MediaError) {
        try self.require(count, field)
        self.position &+= count
    }

    /// Reads unsigned Exp-Golomb, 0…2³²−2 (H.264 §9.1). Throws above `max`.
    package mutating func ue(_ field: String, max: UInt32 = .max) throws(MediaError) -> UInt32 {
        var zeros = 0
        while try !self.flag(field) {
            zeros &+= 1
            guard zeros < 32 else { throw .overLimit(field: "\(field) (leading zero bits)", found: zeros, max: 31) }
        }
        let value = (1 << UInt32(zeros)) &- 1 &+ (try self.bits(zeros, field))
        guard value <= max else { throw .overLimit(field: field, found: Int(value), max: Int(max)) }
        return value
    }

    /// Reads signed Exp-Golomb (H.264 §9.1.1): 0, 1, −1, 2, −2…
    package mutating func se(_ field: String) throws(MediaError) -> Int32 {
        let code = try self.ue(field)
        let magnitude = Int32(truncatingIfNeeded: code >> 1)
        return code & 1 == 1 ? magnitude &+ 1 : 0 &- magnitude
    }

    private func require(_ count: Int, _ field: String) throws(MediaError) {
        guard count >= 0, count <= self.remaining else {
            throw .truncated(field: "\(field) (bits)", needed: count, available: self.remaining)
        }
    }
}
