package import NIOCore

/// The body of an AVC sequence header: AVCDecoderConfigurationRecord, ISO/IEC 14496-15 §5.3.3.1 (`avcC`).
///
///     | version 1 | profile | compatibility | level | 111111 lengthSize-1 UB[2] | 111 SPS count UB[5] | (UI16 size, SPS)… |
///     | PPS count UI8 | (UI16 size, PPS)… | High profiles: chroma format, bit depths, SPS extensions (not read) |
///
/// A plain value; the parameter sets are slices of the message, so copy them before keeping them long.
package struct AVCConfiguration: Sendable, Equatable {
    package var profile: UInt8
    package var compatibility: UInt8
    /// Ten times the level: 40 is level 4.
    package var level: UInt8
    /// Bytes of the length before each NAL unit: 1, 2 or 4.
    package var nalLengthSize: Int
    /// NAL units with their header byte, without start codes. At most 31.
    package var sequenceParameterSets: [ByteBuffer]
    /// At most 255.
    package var pictureParameterSets: [ByteBuffer]

    package init(_ record: ByteBuffer) throws(MediaError) {
        var bytes = record
        let version = try bytes.readField(UInt8.self, "avcC version")
        guard version == 1 else { throw .invalid(field: "avcC version", found: Int(version), expected: "1") }
        self.profile = try bytes.readField(UInt8.self, "avcC profile")
        self.compatibility = try bytes.readField(UInt8.self, "avcC compatibility")
        self.level = try bytes.readField(UInt8.self, "avcC level")
        self.nalLengthSize = Int(try bytes.readField(UInt8.self, "avcC length size") & 3) &+ 1
        guard self.nalLengthSize != 3 else { throw .invalid(field: "avcC length size", found: 3, expected: "1, 2 or 4") }
        self.sequenceParameterSets = try bytes.readParameterSets(Int(try bytes.readField(UInt8.self, "avcC SPS count") & 0x1F), "SPS")
        self.pictureParameterSets = try bytes.readParameterSets(Int(try bytes.readField(UInt8.self, "avcC PPS count")), "PPS")
    }
}

extension ByteBuffer {
    /// Reads `count` units, each after its UI16 size.
    mutating func readParameterSets(_ count: Int, _ name: String) throws(MediaError) -> [ByteBuffer] {
        var sets: [ByteBuffer] = []
        for _ in 0..<count { sets.append(try self.readSized(name)) }
        return sets
    }

    /// Reads one unit after its UI16 size, as a slice.
    mutating func readSized(_ name: String) throws(MediaError) -> ByteBuffer {
        let size = Int(try self.readField(UInt16.self, "\(name) size"))
        guard let unit = self.readSlice(length: size) else {
            throw .truncated(field: name, needed: size, available: self.readableBytes)
        }
        return unit
    }
}
