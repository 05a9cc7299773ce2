package import NIOCore

extension AVCConfiguration {
    /// Makes the record that says the same as parameter sets in the stream. Nil unless there are an SPS and a PPS that can be read.
    package static func record(of units: [ByteBuffer]) -> ByteBuffer? {
        func sets(_ type: UInt8) -> [ByteBuffer] {
            var sets: [ByteBuffer] = []
            for unit in units where unit.getInteger(at: unit.readerIndex, as: UInt8.self).map({ $0 & 0x1F == type }) == true {
                if !sets.contains(unit), unit.readableBytes <= Int(UInt16.max) { sets.append(unit) }
            }
            return sets
        }
        let (sequence, picture) = (sets(7), sets(8))
        guard let first = sequence.first, !picture.isEmpty, sequence.count <= 31, picture.count <= 255,
            let profile = first.getBytes(at: first.readerIndex &+ 1, length: 3)
        else { return nil }
        var record = ByteBuffer()
        record.writeInteger(UInt8(1))
        record.writeBytes(profile)
        // Lengths of four bytes.
        record.writeInteger(UInt8(0xFF))
        record.writeInteger(0xE0 | UInt8(truncatingIfNeeded: sequence.count))
        for unit in sequence { record.writeSized(unit) }
        record.writeInteger(UInt8(truncatingIfNeeded: picture.count))
        for unit in picture { record.writeSized(unit) }
        do throws(MediaError) {
            _ = try AVCSequenceParameterSet(nal: first)
            if let depths = try Self.depths(of: first) { record.writeBytes(depths) }
        } catch {
            // Nobody could decode with such a set.
            return nil
        }
        return record
    }

    /// What the record of the High profiles ends with: chroma format, bit depths, and no SPS extensions.
    private static func depths(of sps: ByteBuffer) throws(MediaError) -> [UInt8]? {
        var bits = try BitReader(rbspOf: sps)
        try bits.skip(8, "SPS NAL header")
        let profile = try bits.bits(8, "profile_idc")
        guard [100, 110, 122, 144].contains(profile) else { return nil }
        try bits.skip(16, "constraint_set flags and level_idc")
        _ = try bits.ue("seq_parameter_set_id", max: 31)
        let chroma = try bits.ue("chroma_format_idc", max: 3)
        if chroma == 3 { try bits.skip(1, "separate_colour_plane_flag") }
        let luma = try bits.ue("bit_depth_luma_minus8", max: 6)
        let colour = try bits.ue("bit_depth_chroma_minus8", max: 6)
        return [
            0xFC | UInt8(truncatingIfNeeded: chroma), 0xF8 | UInt8(truncatingIfNeeded: luma), 0xF8 | UInt8(truncatingIfNeeded: colour), 0,
        ]
    }
}

extension HEVCConfiguration {
    /// Makes the record that says the same as parameter sets in the stream. Nil unless there are a VPS, an SPS and a PPS that can be read.
    static func record(of units: [ByteBuffer]) -> ByteBuffer? {
        func sets(_ type: UInt8) -> [ByteBuffer] {
            var sets: [ByteBuffer] = []
            for unit in units where unit.getInteger(at: unit.readerIndex, as: UInt8.self).map({ $0 >> 1 & 0x3F == type }) == true {
                if !sets.contains(unit), unit.readableBytes <= Int(UInt16.max) { sets.append(unit) }
            }
            return sets
        }
        let arrays = [(32 as UInt8, sets(32)), (33, sets(33)), (34, sets(34))]
        guard arrays.allSatisfy({ (1...64).contains($0.1.count) }), let first = arrays[1].1.first else { return nil }
        var record = ByteBuffer()
        do throws(MediaError) {
            record.writeBytes(try Self.head(of: first))
        } catch {
            // Nobody could decode with such a set.
            return nil
        }
        record.writeInteger(UInt8(truncatingIfNeeded: arrays.count))
        for (type, units) in arrays {
            // The samples may have sets too: array_completeness 0.
            record.writeInteger(type)
            record.writeInteger(UInt16(truncatingIfNeeded: units.count))
            for unit in units { record.writeSized(unit) }
        }
        return record
    }

    /// The first 22 bytes of the record.
    private static func head(of sps: ByteBuffer) throws(MediaError) -> [UInt8] {
        _ = try HEVCSequenceParameterSet(nal: sps)
        var bits = try BitReader(rbspOf: sps)
        try bits.skip(16 + 4, "SPS NAL header and sps_video_parameter_set_id")
        let subLayers = UInt8(truncatingIfNeeded: try bits.bits(3, "sps_max_sub_layers_minus1"))
        let isNested = UInt8(truncatingIfNeeded: try bits.bits(1, "sps_temporal_id_nesting_flag"))
        var head: [UInt8] = [1]
        // general_profile_space to general_level_idc stand in the record as they do in the set.
        for _ in 0..<12 { head.append(UInt8(truncatingIfNeeded: try bits.bits(8, "profile_tier_level"))) }
        var skipped = 0
        if subLayers > 0 {
            for layer in 0..<8 {
                let present = try bits.bits(2, "sub_layer flags")
                guard layer < subLayers else { continue }
                skipped &+= (present & 2 != 0 ? 88 : 0) &+ (present & 1 != 0 ? 8 : 0)
            }
        }
        try bits.skip(skipped, "sub_layer profiles and levels")
        _ = try bits.ue("sps_seq_parameter_set_id", max: 15)
        let chroma = UInt8(truncatingIfNeeded: try bits.ue("chroma_format_idc", max: 3))
        if chroma == 3 { try bits.skip(1, "separate_colour_plane_flag") }
        _ = try bits.ue("pic_width_in_luma_samples")
        _ = try bits.ue("pic_height_in_luma_samples")
        if try bits.flag("conformance_window_flag") {
            for _ in 0..<4 { _ = try bits.ue("conf_win_offset") }
        }
        let luma = UInt8(truncatingIfNeeded: try bits.ue("bit_depth_luma_minus8", max: 8))
        let colour = UInt8(truncatingIfNeeded: try bits.ue("bit_depth_chroma_minus8", max: 8))
        // Unknown: segmentation, parallelism, average rate, constancy. Lengths of four bytes.
        head += [0xF0, 0, 0xFC, 0xFC | chroma, 0xF8 | luma, 0xF8 | colour, 0, 0, (subLayers &+ 1) << 3 | isNested << 2 | 3]
        return head
    }
}

extension ByteBuffer {
    /// Writes a unit after its UI16 size.
    fileprivate mutating func writeSized(_ unit: ByteBuffer) {
        self.writeInteger(UInt16(truncatingIfNeeded: unit.readableBytes))
        self.writeImmutableBuffer(unit)
    }
}
