package import NIOCore

/// The picture properties in an H.264 sequence parameter set. Source: ITU-T H.264 §7.3.2.1.1 and §E.1.1.
///
/// A plain value.
package struct AVCSequenceParameterSet: Sendable, Equatable {
    package var profile: UInt8
    /// constraint_set0…5 flags in the upper six bits.
    package var constraints: UInt8
    /// Ten times the level.
    package var level: UInt8
    /// Pixels, after cropping.
    package var width: Int
    package var height: Int
    /// Frames per second, if the VUI has timing.
    package var frameRate: Double?

    /// Parses a NAL unit with its header byte. Throws if it is cut short before the VUI, or if sizes and counts exceed the standard's.
    package init(nal: ByteBuffer) throws(MediaError) {
        var bits = try BitReader(rbspOf: nal)
        let type = try bits.bits(8, "SPS NAL header") & 0x1F
        guard type == 7 else { throw .invalid(field: "NAL unit type of an SPS", found: Int(type), expected: "7") }
        self.profile = UInt8(truncatingIfNeeded: try bits.bits(8, "profile_idc"))
        self.constraints = UInt8(truncatingIfNeeded: try bits.bits(8, "constraint_set flags"))
        self.level = UInt8(truncatingIfNeeded: try bits.bits(8, "level_idc"))
        _ = try bits.ue("seq_parameter_set_id", max: 31)
        let chroma = try Self.readChroma(&bits, profile: self.profile)
        _ = try bits.ue("log2_max_frame_num_minus4", max: 12)
        try Self.skipPictureOrderCount(&bits)
        // Read but not checked: no loop depends on it, and encoders overstate it.
        _ = try bits.ue("max_num_ref_frames")
        try bits.skip(1, "gaps_in_frame_num_value_allowed_flag")
        let (size, hasVUI) = try Self.readSize(&bits, chroma: chroma)
        self.width = size.width
        self.height = size.height
        self.frameRate = nil
        guard hasVUI else { return }
        do throws(MediaError) {
            self.frameRate = try Self.readFrameRate(&bits)
        } catch {
            // The picture size is known by now, so leave out the rate. FFmpeg plays streams whose VUI is cut short (h264_ps.c: "Overread
            // VUI").
            self.frameRate = nil
        }
    }

    /// Luma samples per chroma sample: (1, 1) for monochrome and separate planes, whose crop unit is one sample (Table 6-1).
    private static func readChroma(_ bits: inout BitReader, profile: UInt8) throws(MediaError) -> (width: Int, height: Int) {
        switch profile {
        case 100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135: break
        default: return (2, 2)
        }
        let format = try bits.ue("chroma_format_idc", max: 3)
        if format == 3 { try bits.skip(1, "separate_colour_plane_flag") }
        _ = try bits.ue("bit_depth_luma_minus8", max: 6)
        _ = try bits.ue("bit_depth_chroma_minus8", max: 6)
        try bits.skip(1, "qpprime_y_zero_transform_bypass_flag")
        if try bits.flag("seq_scaling_matrix_present_flag") {
            for list in 0..<(format == 3 ? 12 : 8) where try bits.flag("seq_scaling_list_present_flag") {
                try Self.skipScalingList(&bits, size: list < 6 ? 16 : 64)
            }
        }
        return format == 1 ? (2, 2) : format == 2 ? (2, 1) : (1, 1)
    }

    /// §7.3.2.1.1.1
    private static func skipScalingList(_ bits: inout BitReader, size: Int) throws(MediaError) {
        var last: Int32 = 8
        for _ in 0..<size {
            let delta = try bits.se("delta_scale")
            last = (last &+ delta) & 0xFF
            // next scale 0: the rest repeats the last scale.
            if last == 0 { return }
        }
    }

    private static func skipPictureOrderCount(_ bits: inout BitReader) throws(MediaError) {
        switch try bits.ue("pic_order_cnt_type", max: 2) {
        case 0:
            _ = try bits.ue("log2_max_pic_order_cnt_lsb_minus4", max: 12)
        case 1:
            try bits.skip(1, "delta_pic_order_always_zero_flag")
            _ = try bits.se("offset_for_non_ref_pic")
            _ = try bits.se("offset_for_top_to_bottom_field")
            for _ in 0..<(try bits.ue("num_ref_frames_in_pic_order_cnt_cycle", max: 255)) { _ = try bits.se("offset_for_ref_frame") }
        default:
            break
        }
    }

    private static func readSize(
        _ bits: inout BitReader, chroma: (width: Int, height: Int)
    ) throws(MediaError) -> (size: (width: Int, height: Int), hasVUI: Bool) {
        let macroblocks = UInt32(VideoFormat.maxDimension / 16 - 1)
        let columns = Int(try bits.ue("pic_width_in_mbs_minus1", max: macroblocks)) &+ 1
        let rows = Int(try bits.ue("pic_height_in_map_units_minus1", max: macroblocks)) &+ 1
        let fieldsPerRow = try bits.flag("frame_mbs_only_flag") ? 1 : 2
        if fieldsPerRow == 2 { try bits.skip(1, "mb_adaptive_frame_field_flag") }
        try bits.skip(1, "direct_8x8_inference_flag")
        let window = try bits.flag("frame_cropping_flag") ? try CropWindow(&bits) : CropWindow()
        let hasVUI = try bits.flag("vui_parameters_present_flag")
        // §7.4.2.1.1: CropUnitX = SubWidthC, CropUnitY = SubHeightC * (2 - frame_mbs_only_flag)
        let size = try window.crop(
            width: columns &* 16, height: rows &* 16 &* fieldsPerRow, unitX: chroma.width, unitY: chroma.height &* fieldsPerRow)
        return (size, hasVUI)
    }

    /// Reads the VUI up to its timing (§E.1.1).
    private static func readFrameRate(_ bits: inout BitReader) throws(MediaError) -> Double? {
        if try bits.flag("aspect_ratio_info_present_flag"), try bits.bits(8, "aspect_ratio_idc") == 255 { try bits.skip(32, "sar") }
        if try bits.flag("overscan_info_present_flag") { try bits.skip(1, "overscan_appropriate_flag") }
        if try bits.flag("video_signal_type_present_flag") {
            try bits.skip(4, "video_format")
            if try bits.flag("colour_description_present_flag") { try bits.skip(24, "colour description") }
        }
        if try bits.flag("chroma_loc_info_present_flag") {
            _ = try bits.ue("chroma_sample_loc_type_top_field")
            _ = try bits.ue("chroma_sample_loc_type_bottom_field")
        }
        guard try bits.flag("timing_info_present_flag") else { return nil }
        let unitsInTick = try bits.bits(32, "num_units_in_tick")
        let timeScale = try bits.bits(32, "time_scale")
        // Two ticks (fields) per frame.
        return VideoFormat.frameRate(timeScale: Double(timeScale), ticksPerFrame: 2 * Double(unitsInTick))
    }
}
