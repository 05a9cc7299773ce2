package import NIOCore

/// The body of an Opus sequence header: the identification header of RFC 7845 §5.1.
///
///     | "OpusHead" | version | channels | pre-skip UI16 LE | input rate UI32 LE | gain SI16 LE | mapping family | mapping… |
///
/// A plain value.
package struct OpusHead: Sendable, Equatable {
    /// 1…255.
    package var channels: Int
    /// Samples at 48 kHz to drop from the decoder's start.
    package var preSkip: Int
    /// Sample rate of the encoder's input in Hz, for information. 0: unknown. Opus itself always runs at 48 kHz.
    package var inputSampleRate: Int
    package var mappingFamily: UInt8

    package init(_ header: ByteBuffer) throws(MediaError) {
        var bytes = header
        let magic = try bytes.readField(UInt64.self, "OpusHead magic")
        guard magic == 0x4F70_7573_4865_6164 else { throw .mismatch(expected: "OpusHead", found: "0x" + String(magic, radix: 16)) }
        let version = try bytes.readField(UInt8.self, "OpusHead version")
        // "Implementations SHOULD treat streams where the upper four bits of the version number match … as backwards compatible"
        guard version & 0xF0 == 0 else { throw .invalid(field: "OpusHead version", found: Int(version), expected: "0…15") }
        self.channels = Int(try bytes.readField(UInt8.self, "OpusHead channel count"))
        guard self.channels > 0 else { throw .invalid(field: "OpusHead channel count", found: 0, expected: "1…255") }
        self.preSkip = Int(try bytes.readField(UInt16.self, "OpusHead pre-skip").byteSwapped)
        self.inputSampleRate = Int(try bytes.readField(UInt32.self, "OpusHead input sample rate").byteSwapped)
        _ = try bytes.readField(UInt16.self, "OpusHead output gain")
        self.mappingFamily = try bytes.readField(UInt8.self, "OpusHead mapping family")
    }
}

/// The body of a FLAC sequence header: the stream marker and STREAMINFO (RFC 9639 §6, §8.2). ffmpeg (seen with 9.0.2) sends the block's 34
/// bytes alone, without the marker and the block header.
///
/// A plain value.
package struct FLACStreamInfo: Sendable, Equatable {
    /// Hz.
    package var sampleRate: Int
    package var channels: Int
    package var bitsPerSample: Int

    /// Bytes of STREAMINFO.
    private static let blockLength = 34

    package init(_ header: ByteBuffer) throws(MediaError) {
        var bits = BitReader(header)
        // A bare block cannot look like the marker: its smallest block size would be over its largest.
        let hasMarker = header.getInteger(at: header.readerIndex, as: UInt32.self).map(FourCC.init(rawValue:)) == "fLaC"
        if hasMarker || header.readableBytes != Self.blockLength {
            let magic = FourCC(rawValue: try bits.bits(32, "FLAC marker"))
            guard magic == "fLaC" else { throw .mismatch(expected: "fLaC", found: magic.description) }
            let type = try bits.bits(8, "FLAC block header") & 0x7F
            guard type == 0 else { throw .invalid(field: "first FLAC block", found: Int(type), expected: "0 (STREAMINFO)") }
            try bits.skip(24, "FLAC block size")
        }
        try bits.skip(16 + 16 + 24 + 24, "FLAC frame sizes")
        self.sampleRate = Int(try bits.bits(20, "FLAC sample rate"))
        self.channels = Int(try bits.bits(3, "FLAC channels")) &+ 1
        self.bitsPerSample = Int(try bits.bits(5, "FLAC bits per sample")) &+ 1
    }
}
