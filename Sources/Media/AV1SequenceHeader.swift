package import NIOCore

/// The picture properties in an AV1 sequence header OBU. Source: AV1 bitstream specification §5.5.1.
///
/// A plain value.
package struct AV1SequenceHeader: Sendable, Equatable {
    package var profile: UInt8
    /// Pixels: the largest frame of the sequence.
    package var width: Int
    package var height: Int
    /// Frames per second, if the header gives them and frames come at equal intervals.
    package var frameRate: Double?

    /// Parses the OBU's body, without OBU header and size.
    package init(_ body: ByteBuffer) throws(MediaError) {
        var bits = BitReader(body)
        self.profile = UInt8(truncatingIfNeeded: try bits.bits(3, "seq_profile"))
        try bits.skip(1, "still_picture")
        if try bits.flag("reduced_still_picture_header") {
            try bits.skip(5, "seq_level_idx[0]")
        } else {
            self.frameRate = try Self.readOperatingPoints(&bits)
        }
        let widthBits = Int(try bits.bits(4, "frame_width_bits_minus_1")) &+ 1
        let heightBits = Int(try bits.bits(4, "frame_height_bits_minus_1")) &+ 1
        let width = Int(try bits.bits(widthBits, "max_frame_width_minus_1")) &+ 1
        let height = Int(try bits.bits(heightBits, "max_frame_height_minus_1")) &+ 1
        (self.width, self.height) = try CropWindow().crop(width: width, height: height, unitX: 1, unitY: 1)
    }

    /// Reads timing, decoder model and operating points; returns the frame rate.
    private static func readOperatingPoints(_ bits: inout BitReader) throws(MediaError) -> Double? {
        var frameRate: Double?
        var delayBits: Int?
        if try bits.flag("timing_info_present_flag") {
            let unitsInTick = Double(try bits.bits(32, "num_units_in_display_tick"))
            let timeScale = Double(try bits.bits(32, "time_scale"))
            if try bits.flag("equal_picture_interval") {
                // uvlc() of §4.10.3 is unsigned Exp-Golomb.
                let ticks = Double(try bits.ue("num_ticks_per_picture_minus_1")) + 1
                frameRate = VideoFormat.frameRate(timeScale: timeScale, ticksPerFrame: unitsInTick * ticks)
            }
            if try bits.flag("decoder_model_info_present_flag") {
                delayBits = Int(try bits.bits(5, "buffer_delay_length_minus_1")) &+ 1
                try bits.skip(42, "decoder model")
            }
        }
        let hasDisplayDelay = try bits.flag("initial_display_delay_present_flag")
        for _ in 0...(try bits.bits(5, "operating_points_cnt_minus_1")) {
            try bits.skip(12, "operating_point_idc")
            if try bits.bits(5, "seq_level_idx") > 7 { try bits.skip(1, "seq_tier") }
            if let delayBits, try bits.flag("decoder_model_present_for_this_op") {
                try bits.skip(delayBits &* 2 &+ 1, "operating parameters")
            }
            if hasDisplayDelay, try bits.flag("initial_display_delay_present_for_this_op") {
                try bits.skip(4, "initial_display_delay_minus_1")
            }
        }
        return frameRate
    }
}
