package import NIOCore

/// The body of an HEVC sequence header: HEVCDecoderConfigurationRecord, ISO/IEC 14496-15 §8.3.3.1 (`hvcC`).
///
///     | version 1 | space UB[2] tier UB[1] profile UB[5] | compatibility UI32 | constraints 48 bits | level |
///     | segmentation UI16 | parallelism | chroma | luma depth | chroma depth | average frame rate UI16 |
///     | constant rate UB[2] layers UB[3] nested UB[1] lengthSize-1 UB[2] | array count UI8 |
///     | (complete UB[1] 0 NAL type UB[6] | NAL count UI16 | (UI16 size, NAL)… )… |
///
/// A plain value; the parameter sets are slices of the message, so copy them before keeping them long.
package struct HEVCConfiguration: Sendable, Equatable {
    /// Maximum NAL units in one record.
    package static let maxUnits = 256

    /// general_profile_idc: 1 Main, 2 Main 10, 3 Main Still Picture, 4 range extensions.
    package var profile: UInt8
    package var isHighTier: Bool
    /// Thirty times the level: 120 is level 4.
    package var level: UInt8
    /// Frames per second; nil if the record does not give them.
    package var averageFrameRate: Double?
    /// 0: the record does not say.
    package var temporalLayers: Int
    /// Bytes of the length before each NAL unit: 1, 2 or 4.
    package var nalLengthSize: Int
    /// NAL units of types 32, 33 and 34, with their header bytes, without start codes.
    package var videoParameterSets: [ByteBuffer] = []
    package var sequenceParameterSets: [ByteBuffer] = []
    package var pictureParameterSets: [ByteBuffer] = []

    package init(_ record: ByteBuffer) throws(MediaError) {
        var bytes = record
        let version = try bytes.readField(UInt8.self, "hvcC version")
        // 0 is the draft's value; FFmpeg reads it too (hevc_parse.c: "Temporarily, we support configurationVersion==0").
        guard version <= 1 else { throw .invalid(field: "hvcC version", found: Int(version), expected: "1") }
        let profile = try bytes.readField(UInt8.self, "hvcC profile")
        self.profile = profile & 0x1F
        self.isHighTier = profile & 0x20 != 0
        _ = try bytes.readField(UInt32.self, "hvcC compatibility flags")
        _ = try bytes.readField(UInt32.self, "hvcC constraint flags")
        _ = try bytes.readField(UInt16.self, "hvcC constraint flags")
        self.level = try bytes.readField(UInt8.self, "hvcC level")
        _ = try bytes.readField(UInt32.self, "hvcC segmentation, parallelism and chroma format")
        _ = try bytes.readField(UInt16.self, "hvcC bit depths")
        let rate = try bytes.readField(UInt16.self, "hvcC average frame rate")
        self.averageFrameRate = VideoFormat.frameRate(timeScale: Double(rate), ticksPerFrame: 256)
        let layersAndSize = try bytes.readField(UInt8.self, "hvcC length size")
        self.temporalLayers = Int(layersAndSize >> 3 & 7)
        self.nalLengthSize = Int(layersAndSize & 3) &+ 1
        guard self.nalLengthSize != 3 else { throw .invalid(field: "hvcC length size", found: 3, expected: "1, 2 or 4") }
        var units = 0
        for _ in 0..<(try bytes.readField(UInt8.self, "hvcC array count")) {
            let type = try bytes.readField(UInt8.self, "hvcC NAL type") & 0x3F
            let count = Int(try bytes.readField(UInt16.self, "hvcC NAL count"))
            units &+= count
            guard units <= Self.maxUnits else { throw .overLimit(field: "hvcC NAL units", found: units, max: Self.maxUnits) }
            let nals = try bytes.readParameterSets(count, "hvcC NAL unit")
            switch type {
            case 32: self.videoParameterSets += nals
            case 33: self.sequenceParameterSets += nals
            case 34: self.pictureParameterSets += nals
            default: break
            }
        }
    }
}
