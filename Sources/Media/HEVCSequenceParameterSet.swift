package import NIOCore

/// The picture properties in an H.265 sequence parameter set. Source: ITU-T H.265 §7.3.2.2.1, §7.3.3.
///
/// A plain value. Read only up to the conformance window: the VUI comes after reference picture sets, which are not parsed.
package struct HEVCSequenceParameterSet: Sendable, Equatable {
    /// general_profile_idc.
    package var profile: UInt8
    /// Thirty times the level.
    package var level: UInt8
    /// Pixels, after the conformance window.
    package var width: Int
    package var height: Int

    /// Parses a NAL unit with its two header bytes.
    package init(nal: ByteBuffer) throws(MediaError) {
        var bits = try BitReader(rbspOf: nal)
        let type = try bits.bits(16, "SPS NAL header") >> 9 & 0x3F
        guard type == 33 else { throw .invalid(field: "NAL unit type of an SPS", found: Int(type), expected: "33") }
        try bits.skip(4, "sps_video_parameter_set_id")
        let subLayers = Int(try bits.bits(3, "sps_max_sub_layers_minus1"))
        try bits.skip(1, "sps_temporal_id_nesting_flag")
        (self.profile, self.level) = try Self.readProfileTierLevel(&bits, subLayers: subLayers)
        _ = try bits.ue("sps_seq_parameter_set_id", max: 15)
        let format = try bits.ue("chroma_format_idc", max: 3)
        let hasSeparatePlanes = format == 3 ? try bits.flag("separate_colour_plane_flag") : false
        let max = UInt32(VideoFormat.maxDimension)
        let width = Int(try bits.ue("pic_width_in_luma_samples", max: max))
        let height = Int(try bits.ue("pic_height_in_luma_samples", max: max))
        let window = try bits.flag("conformance_window_flag") ? try CropWindow(&bits) : CropWindow()
        // Table 6-1: SubWidthC is 2 for 4:2:0 and 4:2:2, SubHeightC is 2 for 4:2:0.
        (self.width, self.height) = try window.crop(
            width: width, height: height, unitX: !hasSeparatePlanes && (format == 1 || format == 2) ? 2 : 1, unitY: format == 1 ? 2 : 1)
    }

    /// §7.3.3 profile_tier_level(1, sps_max_sub_layers_minus1)
    private static func readProfileTierLevel(_ bits: inout BitReader, subLayers: Int) throws(MediaError) -> (profile: UInt8, level: UInt8) {
        let profile = UInt8(truncatingIfNeeded: try bits.bits(8, "general_profile_idc") & 0x1F)
        try bits.skip(80, "general profile flags")
        let level = UInt8(truncatingIfNeeded: try bits.bits(8, "general_level_idc"))
        guard subLayers > 0 else { return (profile, level) }
        var skipped = 0
        for layer in 0..<8 {
            let present = try bits.bits(2, "sub_layer flags")  // for layers beyond the last: reserved_zero_2bits
            guard layer < subLayers else { continue }
            skipped &+= (present & 2 != 0 ? 88 : 0) &+ (present & 1 != 0 ? 8 : 0)
        }
        try bits.skip(skipped, "sub_layer profiles and levels")
        return (profile, level)
    }
}
