package import NIOCore

/// `AudioPacketType` of Enhanced RTMP v2; 0 and 1 are also FLV's `AACPacketType`.
enum AudioPacketType {
    static let sequenceStart: UInt8 = 0
    static let codedFrames: UInt8 = 1
    static let sequenceEnd: UInt8 = 2
    static let multichannelConfig: UInt8 = 4
    static let multitrack: UInt8 = 5
}

extension TagInfo {
    /// Reads the header of an audio message. An empty payload is legal (Enhanced RTMP v2 calls it the silence message) and gives an
    /// empty `TagInfo`.
    ///
    ///     legacy    | sound format UB[4] | rate UB[2] | size UB[1] | type UB[1] |  AAC: | AACPacketType UI8 |
    ///     enhanced  | 9 UB[4] | packet type UB[4] |  `EnhancedHeader`, then the body
    ///
    /// Sources: FLV 10.1 §E.4.2.1; Enhanced RTMP v2, "Enhanced Audio".
    package static func parseAudio(_ payload: ByteBuffer) throws(MediaError) -> TagInfo {
        guard let first = payload.getInteger(at: payload.readerIndex, as: UInt8.self) else { return TagInfo() }
        return first >> 4 == Self.exHeaderSoundFormat
            ? try Self.parseEnhancedAudio(payload) : try Self.parseLegacyAudio(payload, first)
    }

    /// `SoundFormat.ExHeader`.
    static let exHeaderSoundFormat: UInt8 = 9

    private static func parseLegacyAudio(_ payload: ByteBuffer, _ first: UInt8) throws(MediaError) -> TagInfo {
        let codec = AudioCodec(legacyID: first >> 4)
        var bytes = payload
        bytes.moveReaderIndex(forwardBy: 1)
        var tag = TagInfo(codec: .audio(codec))
        if codec == .aac {
            switch try bytes.readField(UInt8.self, "AAC packet type") {
            case AudioPacketType.sequenceStart: tag.flags = .sequenceHeader
            case AudioPacketType.codedFrames: tag.flags = bytes.readableBytes > 0 ? .coded : []
            default: break
            }
        } else {
            tag.flags = bytes.readableBytes > 0 ? .coded : []
        }
        tag.bodyOffset = UInt32(clamping: payload.readableBytes &- bytes.readableBytes)
        return tag
    }

    private static func parseEnhancedAudio(_ payload: ByteBuffer) throws(MediaError) -> TagInfo {
        let header = try EnhancedHeader(payload, media: .audio)
        var tag = TagInfo(flags: .enhanced, timestampOffsetNanos: header.timestampOffsetNanos)
        tag.bodyOffset = UInt32(clamping: header.offset)
        guard let track = try tag.readFirstTrack(header, payload) else { return tag }
        tag.codec = track.fourCC.map { .audio(AudioCodec(fourCC: $0)) }
        switch header.packetType {
        case AudioPacketType.sequenceStart: tag.flags.insert(.sequenceHeader)
        case AudioPacketType.codedFrames: if !track.body.isEmpty { tag.flags.insert(.coded) }
        case AudioPacketType.sequenceEnd: tag.flags.insert(.endOfSequence)
        case AudioPacketType.multichannelConfig: tag.flags.insert(.channelConfig)
        default: break
        }
        return tag
    }
}
