package import NIOCore

/// The body of an AAC sequence header: AudioSpecificConfig, ISO/IEC 14496-3 §1.6.2.1.
///
///     | object type UB[5] (31: +UB[6]) | rate index UB[4] (15: rate UB[24]) | channels UB[4] |
///     | object type 5 or 29: extension rate, core object type | GASpecificConfig | 0x2b7: SBR | 0x548: PS |
///
/// A plain value.
package struct AudioSpecificConfig: Sendable, Equatable {
    /// Object type of the core codec: 2 is AAC-LC.
    package var objectType: UInt8
    /// Sample rate of the core codec in Hz.
    package var coreSampleRate: Int
    /// channelConfiguration: 1…7 name a layout, 0 leaves it to a program config element.
    package var channelConfiguration: UInt8
    /// Whether spectral band replication is signalled here (HE-AAC). Some HE-AAC signals it only in the frames.
    package var hasSBR = false
    /// Whether parametric stereo is signalled here (HE-AAC v2): a mono core that plays as stereo.
    package var hasPS = false
    /// Sample rate after SBR in Hz; nil without it.
    package var extensionSampleRate: Int?
    /// Channels of the core codec; nil if the layout is reserved or cannot be read.
    package var coreChannels: Int?
    /// Samples of a frame at ``coreSampleRate``: 1,024 or 960; of the low-delay codecs 512 or 480.
    package var samplesPerFrame = 1_024

    /// Sample rate of the decoded sound in Hz.
    package var sampleRate: Int { self.extensionSampleRate ?? self.coreSampleRate }
    /// Channels of the decoded sound.
    package var channels: Int? { self.hasPS && self.coreChannels == 1 ? 2 : self.coreChannels }

    package init(_ config: ByteBuffer) throws(MediaError) {
        var bits = BitReader(config)
        self.objectType = try Self.readObjectType(&bits)
        self.coreSampleRate = try Self.readSampleRate(&bits)
        self.channelConfiguration = UInt8(truncatingIfNeeded: try bits.bits(4, "channelConfiguration"))
        self.coreChannels = Self.channels(of: self.channelConfiguration)
        // Explicit hierarchical signalling (§1.6.5.2).
        let isHierarchical = self.objectType == 5 || self.objectType == 29
        if isHierarchical {
            self.hasSBR = true
            self.hasPS = self.objectType == 29
            self.extensionSampleRate = try Self.readSampleRate(&bits)
            self.objectType = try Self.readObjectType(&bits)
            if self.objectType == 22 { try bits.skip(4, "extensionChannelConfiguration") }
        }
        // ELD has a configuration of its own, which is not read: the long form is assumed.
        if self.objectType == 39 { self.samplesPerFrame = 512 }
        guard [1, 2, 3, 4, 6, 7, 17, 19, 20, 21, 22, 23].contains(self.objectType) else { return }
        guard try self.readGeneralAudio(&bits), !isHierarchical else { return }
        try self.readBackwardCompatibleExtension(&bits)
    }

    /// Reads GASpecificConfig (§4.4.1). Returns false if its end is unknown, so nothing after it can be read.
    private mutating func readGeneralAudio(_ bits: inout BitReader) throws(MediaError) -> Bool {
        let isShort = try bits.flag("frameLengthFlag")
        self.samplesPerFrame = self.objectType == 23 ? (isShort ? 480 : 512) : (isShort ? 960 : 1_024)
        if try bits.flag("dependsOnCoreCoder") { try bits.skip(14, "coreCoderDelay") }
        let hasExtension = try bits.flag("extensionFlag")
        guard self.channelConfiguration != 0 else {
            self.coreChannels = try Self.readProgramConfigChannels(&bits)
            return false
        }
        if self.objectType == 6 || self.objectType == 20 { try bits.skip(3, "layerNr") }
        if hasExtension {
            if self.objectType == 22 { try bits.skip(16, "BSAC extension") }
            if [17, 19, 20, 23].contains(self.objectType) { try bits.skip(3, "resilience flags") }
            try bits.skip(1, "extensionFlag3")
        }
        return true
    }

    /// Reads explicit backward compatible signalling (§1.6.5.2). It is optional, so only what is present is read.
    private mutating func readBackwardCompatibleExtension(_ bits: inout BitReader) throws(MediaError) {
        guard bits.remaining >= 16, try bits.bits(11, "syncExtensionType") == 0x2B7 else { return }
        guard try Self.readObjectType(&bits) == 5 else { return }
        self.hasSBR = try bits.flag("sbrPresentFlag")
        guard self.hasSBR else { return }
        self.extensionSampleRate = try Self.readSampleRate(&bits)
        guard bits.remaining >= 12, try bits.bits(11, "syncExtensionType") == 0x548 else { return }
        self.hasPS = try bits.flag("psPresentFlag")
    }

    private static func readObjectType(_ bits: inout BitReader) throws(MediaError) -> UInt8 {
        let type = try bits.bits(5, "audioObjectType")
        return UInt8(truncatingIfNeeded: type == 31 ? 32 &+ (try bits.bits(6, "audioObjectTypeExt")) : type)
    }

    private static func readSampleRate(_ bits: inout BitReader) throws(MediaError) -> Int {
        let index = Int(try bits.bits(4, "samplingFrequencyIndex"))
        if index == 15 {
            let rate = Int(try bits.bits(24, "samplingFrequency"))
            guard (1...768_000).contains(rate) else { throw .invalid(field: "samplingFrequency", found: rate, expected: "1…768000") }
            return rate
        }
        let rates = [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350]
        guard index < rates.count else { throw .invalid(field: "samplingFrequencyIndex", found: index, expected: "0…12 or 15") }
        return rates[index]
    }

    /// Table 1.19.
    private static func channels(of configuration: UInt8) -> Int? {
        switch configuration {
        case 1...6: Int(configuration)
        case 7, 12, 14: 8
        case 11: 7
        case 13: 24
        default: nil
        }
    }

    /// Reads program_config_element (§4.4.1.1) up to its channel elements, and counts their channels.
    private static func readProgramConfigChannels(_ bits: inout BitReader) throws(MediaError) -> Int {
        try bits.skip(10, "program_config_element")
        let front = try bits.bits(4, "num_front_channel_elements")
        let side = try bits.bits(4, "num_side_channel_elements")
        let back = try bits.bits(4, "num_back_channel_elements")
        let lowFrequency = Int(try bits.bits(2, "num_lfe_channel_elements"))
        try bits.skip(7, "num_assoc_data_elements and num_valid_cc_elements")
        if try bits.flag("mono_mixdown_present") { try bits.skip(4, "mono_mixdown_element_number") }
        if try bits.flag("stereo_mixdown_present") { try bits.skip(4, "stereo_mixdown_element_number") }
        if try bits.flag("matrix_mixdown_idx_present") { try bits.skip(3, "matrix_mixdown_idx") }
        var channels = lowFrequency
        for _ in 0..<(front &+ side &+ back) {
            channels &+= try bits.flag("element_is_cpe") ? 2 : 1
            try bits.skip(4, "element_tag_select")
        }
        return channels
    }
}
