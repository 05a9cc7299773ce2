import Media
import NIOCore
import Testing

@Suite struct ConfigurationTests {
    @Test(arguments: Configurations.video.indices) func video(_ index: Int) throws {
        let (name, message, expected) = Configurations.video[index]
        #expect(try VideoFormat.from(sequenceHeader: hex(message)) == expected, "\(name)")
    }

    @Test(arguments: Configurations.audio.indices) func audio(_ index: Int) throws {
        let (name, message, expected) = Configurations.audio[index]
        #expect(try AudioFormat.from(tag: hex(message)) == expected, "\(name)")
    }

    /// A message cut at any byte yields an error, or a format that agrees with the whole message.
    @Test func truncatedAtEachByte() {
        for (_, message, expected) in Configurations.video {
            let whole = hex(message)
            for count in 0..<whole.readableBytes {
                guard let format = visit(.video, whole.getSlice(at: 0, length: count)).video else { continue }
                #expect(format.codec == expected.codec && (format.width == nil || format.width == expected.width))
            }
        }
        for (_, message, expected) in Configurations.audio {
            let whole = hex(message)
            for count in 0..<whole.readableBytes {
                guard let format = visit(.audio, whole.getSlice(at: 0, length: count)).audio else { continue }
                #expect(format.codec == expected.codec)
            }
        }
        for vector in Vectors.all {
            for count in 0...vector.payload.readableBytes { visit(vector.kind, vector.payload.getSlice(at: 0, length: count)) }
        }
    }

    /// A scaling list ends where the next scale is 0 (H.264 §7.3.2.1.1.1). Here the first list ends at its first delta, the fifth at its
    /// second.
    @Test func scalingListsMayEndEarly() throws {
        let sps = try AVCSequenceParameterSet(nal: hex("6764001fad844440645a014016e4"))
        #expect(sps.width == 1_280 && sps.height == 720 && sps.profile == 100)
    }

    @Test func parts() throws {
        let avc = try AVCConfiguration(hex(String(Configurations.avc1080High2997.dropFirst(10))))
        #expect(avc.profile == 100 && avc.level == 40 && avc.nalLengthSize == 4)
        #expect(avc.sequenceParameterSets.count == 1 && avc.pictureParameterSets.map(hexText) == ["68ebe3cb22c0"])
        let hevc = try HEVCConfiguration(hex(Configurations.hvcC1080Main10))
        #expect(hevc.profile == 2 && !hevc.isHighTier && hevc.level == 120 && hevc.nalLengthSize == 4)
        #expect(hevc.videoParameterSets.count == 1 && hevc.pictureParameterSets.map(hexText) == ["4401c172b46240"])
        let sps = try HEVCSequenceParameterSet(nal: #require(hevc.sequenceParameterSets.first))
        #expect(sps.profile == 2 && sps.level == 120)
        let main = try HEVCSequenceParameterSet(nal: #require(HEVCConfiguration(hex(Configurations.hvcC360)).sequenceParameterSets.first))
        #expect(main.profile == 1 && main.width == 640)
        // AAC Scalable has a layer number, which TwinVQ lacks; after it both announce SBR at 48 kHz.
        for bytes in ["3310aadcb3", "3b1056e598"] {
            let scalable = try AudioSpecificConfig(hex(bytes))
            #expect(scalable.hasSBR && scalable.extensionSampleRate == 48_000 && scalable.coreSampleRate == 24_000)
        }
        let av1 = try AV1Configuration(hex(Configurations.av1C360))
        #expect(av1.profile == 0 && av1.level == 1 && av1.sequenceHeader?.width == 640)
        let opus = try OpusHead(hex("4f70757348656164 01 06 3801 44ac0000 0000 01"))
        #expect(opus.channels == 6 && opus.preSkip == 312 && opus.inputSampleRate == 44_100 && opus.mappingFamily == 1)
    }

    static let broken: [(message: String, error: MediaError)] = [
        ("", .mismatch(expected: "a video sequence header", found: "a message without a codec")),
        ("1700000000 00", .invalid(field: "avcC version", found: 0, expected: "1")),
        ("1700000000 01640028fe", .invalid(field: "avcC length size", found: 3, expected: "1, 2 or 4")),
        ("1700000000 01640028ff e1 0019 67", .truncated(field: "SPS", needed: 25, available: 1)),
        ("1700000000 01640028ff e1 0000 00", .truncated(field: "SPS NAL header (bits)", needed: 8, available: 0)),
        ("1700000000 01640028ff e1 0001 68 00", .invalid(field: "NAL unit type of an SPS", found: 8, expected: "7")),
        ("90 68766331 02", .invalid(field: "hvcC version", found: 2, expected: "1")),
        (
            "90 68766331 0101600000009000000000003ff000fcfdf8f800000f 01 21 ffff",
            .overLimit(field: "hvcC NAL units", found: 65_535, max: 256)
        ),
        ("90 61763031 01", .invalid(field: "av1C marker and version", found: 1, expected: "129")),
        ("90 61763031 81000c00 80", .invalid(field: "OBU forbidden bit", found: 1, expected: "0")),
        ("90 61763031 81000c00 0a ff7f 00", .truncated(field: "OBU", needed: 16_383, available: 1)),
        (
            "90 61763031 81000c00" + String(repeating: "1200", count: 17),
            .overLimit(field: "OBUs before the sequence header", found: 17, max: 16)
        ),
    ]

    @Test(arguments: broken.indices) func brokenHeader(_ index: Int) {
        let (message, error) = Self.broken[index]
        #expect(throws: error) { try VideoFormat.from(sequenceHeader: hex(message)) }
    }

    @Test func brokenAudioHeader() {
        #expect(throws: MediaError.truncated(field: "audioObjectType (bits)", needed: 5, available: 0)) {
            try AudioFormat.from(tag: hex("af00"))
        }
        #expect(throws: MediaError.invalid(field: "samplingFrequencyIndex", found: 13, expected: "0…12 or 15")) {
            try AudioFormat.from(tag: hex("af00 1690"))
        }
        #expect(throws: MediaError.mismatch(expected: "fLaC", found: "flac")) { try AudioFormat.from(tag: hex("90 664c6143 666c6163")) }
        #expect(throws: MediaError.invalid(field: "OpusHead channel count", found: 0, expected: "1…255")) {
            try AudioFormat.from(tag: hex("90 4f707573 4f70757348656164 01 00"))
        }
    }
}

@Suite struct LyingParameterSetTests {
    /// A parameter set of profile 66 up to log2_max_frame_num_minus4; `fill` writes the rest.
    private func sps(_ fill: (inout BitWriter) -> Void) -> ByteBuffer {
        var bits = BitWriter()
        bits.write(0x67, 8)
        bits.write(66, 8)
        bits.write(0, 8)
        bits.write(30, 8)
        bits.ue(0)  // seq_parameter_set_id
        bits.ue(0)  // log2_max_frame_num_minus4
        fill(&bits)
        return bits.buffer
    }

    private func size(_ bits: inout BitWriter, columns: UInt32, rows: UInt32, crop: [UInt32]? = nil) {
        bits.ue(2)  // pic_order_cnt_type
        bits.ue(1_000)  // max_num_ref_frames
        bits.write(0, 1)
        bits.ue(columns - 1)
        bits.ue(rows - 1)
        bits.write(0b11, 2)  // frame_mbs_only_flag, direct_8x8_inference_flag
        bits.write(crop == nil ? 0 : 1, 1)
        for offset in crop ?? [] { bits.ue(offset) }
        bits.write(0, 1)  // vui_parameters_present_flag
    }

    @Test func largestPicture() throws {
        let sps = try AVCSequenceParameterSet(nal: self.sps { self.size(&$0, columns: 1_024, rows: 1_024) })
        #expect(sps.width == 16_384 && sps.height == 16_384 && sps.frameRate == nil)
    }

    @Test func largerPicture() {
        #expect(throws: MediaError.overLimit(field: "pic_width_in_mbs_minus1", found: 1_024, max: 1_023)) {
            try AVCSequenceParameterSet(nal: self.sps { self.size(&$0, columns: 1_025, rows: 1) })
        }
        #expect(throws: MediaError.overLimit(field: "pic_height_in_map_units_minus1", found: Int(UInt32.max) - 2, max: 1_023)) {
            try AVCSequenceParameterSet(nal: self.sps { self.size(&$0, columns: 1, rows: .max - 1) })
        }
    }

    @Test func cropLargerThanThePicture() {
        #expect(throws: MediaError.invalid(field: "picture width after cropping", found: 0, expected: "at least 1")) {
            try AVCSequenceParameterSet(nal: self.sps { self.size(&$0, columns: 2, rows: 2, crop: [8, 8, 0, 0]) })
        }
        #expect(throws: MediaError.overLimit(field: "crop left offset", found: 16_385, max: 16_384)) {
            try AVCSequenceParameterSet(nal: self.sps { self.size(&$0, columns: 2, rows: 2, crop: [16_385, 0, 0, 0]) })
        }
    }

    @Test func endlessReferenceCycle() {
        let nal = self.sps { bits in
            bits.ue(1)  // pic_order_cnt_type
            bits.write(0, 1)
            bits.ue(0)
            bits.ue(0)
            bits.ue(4_000_000_000)
        }
        #expect(throws: MediaError.overLimit(field: "num_ref_frames_in_pic_order_cnt_cycle", found: 4_000_000_000, max: 255)) {
            try AVCSequenceParameterSet(nal: nal)
        }
    }

    @Test func hugeParameterSet() {
        #expect(throws: MediaError.overLimit(field: "parameter set (bytes)", found: 4_097, max: 4_096)) {
            try HEVCSequenceParameterSet(nal: ByteBuffer(repeating: 0x42, count: 4_097))
        }
    }
}

@Suite struct BitReaderTests {
    @Test func expGolomb() throws {
        var bits = BitWriter()
        let values: [UInt32] = [0, 1, 2, 3, 254, 65_535, .max - 1]
        for value in values { bits.ue(value) }
        var reader = BitReader(bits.bytes)
        for value in values { #expect(try reader.ue("test") == value) }
        var signed = BitReader([0b1010_0110, 0b0100_0010, 0b1000_0000])
        #expect(try (0..<5).map { _ in try signed.se("test") } == [0, 1, -1, 2, -2])
    }

    @Test func bounds() throws {
        var reader = BitReader([0xA5, 0, 0, 0, 0])
        #expect(try reader.bits(0, "none") == 0)
        #expect(try reader.bits(4, "high") == 0xA)
        #expect(reader.remaining == 36)
        #expect(throws: MediaError.truncated(field: "rest (bits)", needed: 37, available: 36)) { try reader.skip(37, "rest") }
        #expect(throws: MediaError.truncated(field: "less (bits)", needed: -1, available: 36)) { try reader.skip(-1, "less") }
        try reader.skip(4, "low")
        #expect(throws: MediaError.overLimit(field: "zeros (leading zero bits)", found: 32, max: 31)) { try reader.ue("zeros") }
    }
}

/// Writes bit fields for `BitReader` to read.
struct BitWriter {
    private var bits: [Bool] = []

    mutating func write(_ value: UInt32, _ count: Int) {
        for shift in (0..<count).reversed() { self.bits.append(value >> UInt32(shift) & 1 == 1) }
    }

    mutating func ue(_ value: UInt32) {
        let code = UInt64(value) + 1
        let count = 64 - code.leadingZeroBitCount
        self.write(0, count - 1)
        for shift in (0..<count).reversed() { self.bits.append(code >> UInt64(shift) & 1 == 1) }
    }

    /// The bytes, padded with zeros.
    var bytes: [UInt8] {
        stride(from: 0, to: self.bits.count, by: 8).map { start in
            (start..<(start + 8)).reduce(0) { byte, index in byte << 1 | (index < self.bits.count && self.bits[index] ? 1 : 0) }
        }
    }

    /// The bytes with emulation prevention (H.264 §7.4.1).
    var buffer: ByteBuffer {
        var buffer = ByteBuffer()
        var zeros = 0
        for byte in self.bytes {
            if zeros >= 2, byte <= 3 {
                buffer.writeInteger(UInt8(3))
                zeros = 0
            }
            buffer.writeInteger(byte)
            zeros = byte == 0 ? zeros + 1 : 0
        }
        return buffer
    }
}
