package import NIOCore

/// The body of an AV1 sequence header: AV1CodecConfigurationRecord, AV1-ISOBMFF §2.3 (`av1C`).
///
///     | 1 version UB[7] = 1 | profile UB[3] level UB[5] | tier, high depth, 12 bit, mono, subsampling x y, position UB[2] |
///     | 000 delay present UB[1] delay UB[4] | OBUs, a sequence header first |
///
/// A plain value.
package struct AV1Configuration: Sendable, Equatable {
    /// Maximum OBUs read in search of a sequence header; the record should hold none before it.
    package static let maxOBUs = 16

    /// 0 Main, 1 High, 2 Professional.
    package var profile: UInt8
    /// seq_level_idx: level 2 + index / 4, minor index % 4.
    package var level: UInt8
    /// The OBUs behind the fixed part.
    package var units: ByteBuffer
    /// nil if the record has no sequence header, which the format allows.
    package var sequenceHeader: AV1SequenceHeader?

    package init(_ record: ByteBuffer) throws(MediaError) {
        var bytes = record
        let marker = try bytes.readField(UInt8.self, "av1C version")
        guard marker == 0x81 else { throw .invalid(field: "av1C marker and version", found: Int(marker), expected: "129") }
        let profile = try bytes.readField(UInt8.self, "av1C profile and level")
        self.profile = profile >> 5
        self.level = profile & 0x1F
        _ = try bytes.readField(UInt16.self, "av1C pixel format")
        self.units = bytes
        var count = 0
        while bytes.readableBytes > 0, self.sequenceHeader == nil {
            count &+= 1
            guard count <= Self.maxOBUs else { throw .overLimit(field: "OBUs before the sequence header", found: count, max: Self.maxOBUs) }
            let (type, body) = try bytes.readOBU()
            if type == 1 { self.sequenceHeader = try AV1SequenceHeader(body) }
        }
    }
}

extension ByteBuffer {
    /// Reads one open bitstream unit: its type, and its body as a slice (AV1 §5.3.1, §5.3.2).
    fileprivate mutating func readOBU() throws(MediaError) -> (type: UInt8, body: ByteBuffer) {
        let header = try self.readField(UInt8.self, "OBU header")
        guard header & 0x80 == 0 else { throw .invalid(field: "OBU forbidden bit", found: 1, expected: "0") }
        if header & 0x04 != 0 { _ = try self.readField(UInt8.self, "OBU extension header") }
        // Without a size the unit extends to the end.
        let size = header & 0x02 != 0 ? try self.readLEB128("OBU size") : self.readableBytes
        guard let body = self.readSlice(length: size) else {
            throw .truncated(field: "OBU", needed: size, available: self.readableBytes)
        }
        return (header >> 3 & 0x0F, body)
    }

    /// Reads leb128() (AV1 §4.10.5): at most 8 bytes, at most 2³²−1.
    private mutating func readLEB128(_ field: String) throws(MediaError) -> Int {
        var value: UInt64 = 0
        for index in 0..<8 {
            let byte = try self.readField(UInt8.self, field)
            value |= UInt64(byte & 0x7F) << UInt64(index &* 7)
            if byte & 0x80 == 0 {
                guard value <= UInt64(UInt32.max) else { break }
                return Int(value)
            }
        }
        throw .invalid(field: field, found: Int(truncatingIfNeeded: value), expected: "at most 4294967295 in 8 bytes")
    }
}
