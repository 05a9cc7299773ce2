package import NIOCore

/// Reads the format from sequence headers.
extension VideoFormat {
    /// Reads a video sequence header message; in a Multitrack one, the first track's.
    ///
    /// Returns the codec alone for codecs without a parser here, and for other messages. These codecs are VP8, VP9 and VVC. Throws for
    /// malformed headers, and for messages without a codec.
    package static func from(sequenceHeader payload: ByteBuffer) throws(MediaError) -> VideoFormat {
        let tag = try TagInfo.parseVideo(payload)
        guard let codec = tag.videoCodec else { throw .mismatch(expected: "a video sequence header", found: "a message without a codec") }
        let format = VideoFormat(codec: codec)
        guard tag.flags.contains(.sequenceHeader), let body = try payload.body(of: .video, from: tag.bodyOffset) else { return format }
        switch codec {
        case .avc: return try VideoFormat(avc: AVCConfiguration(body))
        case .hevc: return try VideoFormat(hevc: HEVCConfiguration(body))
        // MPEG2TSSequenceStart has an AV1 video descriptor instead (tag 0x80), without a picture size.
        case .av1 where body.getInteger(at: body.readerIndex, as: UInt8.self) != 0x80: return try VideoFormat(av1: AV1Configuration(body))
        default: return format
        }
    }

    private init(avc configuration: AVCConfiguration) throws(MediaError) {
        self.init(
            codec: .avc, profile: Self.avcProfile(configuration.profile, configuration.compatibility),
            level: Self.avcLevel(configuration.level, configuration.profile, configuration.compatibility))
        guard let nal = configuration.sequenceParameterSets.first else { return }
        let sps = try AVCSequenceParameterSet(nal: nal)
        self.width = sps.width
        self.height = sps.height
        self.frameRate = sps.frameRate
        // Where the record and the SPS differ, decoders use the SPS.
        self.profile = Self.avcProfile(sps.profile, sps.constraints)
        self.level = Self.avcLevel(sps.level, sps.profile, sps.constraints)
    }

    private init(hevc configuration: HEVCConfiguration) throws(MediaError) {
        self.init(
            codec: .hevc, frameRate: configuration.averageFrameRate, profile: Self.hevcProfile(configuration.profile),
            level: "\(configuration.level / 30).\(configuration.level % 30 / 3)")
        guard let nal = configuration.sequenceParameterSets.first else { return }
        let sps = try HEVCSequenceParameterSet(nal: nal)
        self.width = sps.width
        self.height = sps.height
    }

    private init(av1 configuration: AV1Configuration) {
        self.init(
            codec: .av1, width: configuration.sequenceHeader?.width, height: configuration.sequenceHeader?.height,
            frameRate: configuration.sequenceHeader?.frameRate,
            profile: configuration.profile < 3 ? ["Main", "High", "Professional"][Int(configuration.profile)] : nil,
            level: configuration.level < 31 ? "\(2 + configuration.level / 4).\(configuration.level % 4)" : nil)
    }

    /// H.264 §A.2
    private static func avcProfile(_ profile: UInt8, _ constraints: UInt8) -> String? {
        switch profile {
        case 66: constraints & 0x40 != 0 ? "Constrained Baseline" : "Baseline"
        case 77: "Main"
        case 88: "Extended"
        case 100: "High"
        case 110: "High 10"
        case 122: "High 4:2:2"
        case 244: "High 4:4:4 Predictive"
        default: nil
        }
    }

    /// H.264 §A.3.1: level 1b is level_idc 11 with constraint_set3_flag in the first profiles, and 9 in the others.
    private static func avcLevel(_ level: UInt8, _ profile: UInt8, _ constraints: UInt8) -> String {
        let is1b = level == 9 || (level == 11 && constraints & 0x10 != 0 && [66, 77, 88].contains(profile))
        return is1b ? "1b" : "\(level / 10).\(level % 10)"
    }

    /// H.265 §A.3
    private static func hevcProfile(_ profile: UInt8) -> String? {
        switch profile {
        case 1: "Main"
        case 2: "Main 10"
        case 3: "Main Still Picture"
        case 4: "Range Extensions"
        default: nil
        }
    }
}
