package import NIOCore

/// `VideoPacketType` of Enhanced RTMP v2; 0…2 are also FLV's `AVCPacketType`.
enum VideoPacketType {
    static let sequenceStart: UInt8 = 0
    static let codedFrames: UInt8 = 1
    static let sequenceEnd: UInt8 = 2
    static let codedFramesX: UInt8 = 3
    static let metadata: UInt8 = 4
    static let mpeg2TSSequenceStart: UInt8 = 5
    static let multitrack: UInt8 = 6
}

extension TagInfo {
    /// Reads the header of a video message. An empty payload is legal and gives an empty `TagInfo`.
    ///
    ///     legacy    | 0 | frame type UB[3] | codec id UB[4] |  AVC: | AVCPacketType UI8 | composition time SI24 |
    ///     enhanced  | 1 | frame type UB[3] | packet type UB[4] |  `EnhancedHeader`, then the body
    ///
    /// Sources: FLV 10.1 §E.4.3.1; Enhanced RTMP v2, "Enhanced Video".
    package static func parseVideo(_ payload: ByteBuffer) throws(MediaError) -> TagInfo {
        guard let first = payload.getInteger(at: payload.readerIndex, as: UInt8.self) else { return TagInfo() }
        return first & 0x80 == 0 ? try Self.parseLegacyVideo(payload, first) : try Self.parseEnhancedVideo(payload, first)
    }

    private static func parseLegacyVideo(_ payload: ByteBuffer, _ first: UInt8) throws(MediaError) -> TagInfo {
        let frameType = first >> 4
        let codec = VideoCodec(legacyID: first & 0x0F)
        // The usual message, a picture of AVC, with one read: frame type and codec, packet type, composition time.
        if codec == .avc, frameType != FrameType.command, let word = payload.getInteger(at: payload.readerIndex, as: UInt64.self),
            word >> 48 & 0xFF == VideoPacketType.codedFrames
        {
            let composition = (Int32(truncatingIfNeeded: word >> 24) << 8) >> 8
            return TagInfo(
                flags: Self.codedFlags(frameType, bodyBytes: payload.readableBytes &- 5), codec: .video(codec),
                compositionTimeMs: composition, bodyOffset: 5)
        }
        var bytes = payload
        bytes.moveReaderIndex(forwardBy: 1)
        var tag = TagInfo(codec: .video(codec))
        if frameType == FrameType.command {
            _ = try bytes.readField(UInt8.self, "video command")
            tag.flags = .command
        } else if codec.hasCompositionTime || codec == .av1 {
            // AVC, and the ids 12 and 13, which use its layout.
            switch try bytes.readField(UInt8.self, "AVC packet type") {
            case VideoPacketType.sequenceStart:
                // "If AVCPacketType == 1: composition time offset, else 0": the three bytes are present in either case.
                _ = try bytes.readInt24("composition time")
                tag.flags = .sequenceHeader
            case VideoPacketType.codedFrames:
                tag.compositionTimeMs = try bytes.readInt24("composition time")
                tag.flags = Self.codedFlags(frameType, bodyBytes: bytes.readableBytes)
            case VideoPacketType.sequenceEnd:
                tag.flags = .endOfSequence
            default:
                break
            }
        } else {
            tag.flags = Self.codedFlags(frameType, bodyBytes: bytes.readableBytes)
        }
        tag.bodyOffset = UInt32(clamping: payload.readableBytes &- bytes.readableBytes)
        return tag
    }

    private static func parseEnhancedVideo(_ payload: ByteBuffer, _ first: UInt8) throws(MediaError) -> TagInfo {
        let frameType = first >> 4 & 0x07
        let header = try EnhancedHeader(payload, media: .video(isCommandFrame: frameType == FrameType.command))
        var tag = TagInfo(flags: .enhanced, timestampOffsetNanos: header.timestampOffsetNanos)
        tag.bodyOffset = UInt32(clamping: header.offset)
        guard !header.isCommand else {
            tag.flags.insert(.command)
            return tag
        }
        guard let track = try tag.readFirstTrack(header, payload) else { return tag }
        let codec = track.fourCC.map(VideoCodec.init(fourCC:))
        tag.codec = codec.map(Codec.video)
        switch header.packetType {
        case VideoPacketType.sequenceStart, VideoPacketType.mpeg2TSSequenceStart:
            tag.flags.insert(.sequenceHeader)
        case VideoPacketType.codedFrames:
            var bytes = payload
            bytes.moveReaderIndex(forwardBy: track.body.lowerBound)
            var bodyBytes = track.body.count
            if codec?.hasCompositionTime == true {
                guard bodyBytes >= 3 else { throw .truncated(field: "composition time", needed: 3, available: bodyBytes) }
                tag.compositionTimeMs = try bytes.readInt24("composition time")
                tag.bodyOffset &+= 3
                bodyBytes &-= 3
            }
            tag.flags.formUnion(Self.codedFlags(frameType, bodyBytes: bodyBytes))
        case VideoPacketType.codedFramesX:
            tag.flags.formUnion(Self.codedFlags(frameType, bodyBytes: track.body.count))
        case VideoPacketType.sequenceEnd:
            tag.flags.insert(.endOfSequence)
        case VideoPacketType.metadata:
            tag.flags.insert(.metadata)
        default:
            break
        }
        return tag
    }

    /// A frame without a body carries no samples, so decoding cannot start from it.
    private static func codedFlags(_ frameType: UInt8, bodyBytes: Int) -> Flags {
        guard bodyBytes > 0 else { return [] }
        switch frameType {
        case FrameType.key, FrameType.generatedKey: return [.coded, .keyframe]
        case FrameType.disposable: return [.coded, .disposable]
        default: return .coded
        }
    }

    /// Fills in the track part of an enhanced header; returns nil for an opaque message.
    mutating func readFirstTrack(_ header: EnhancedHeader, _ payload: ByteBuffer) throws(MediaError) -> MediaTrack? {
        if header.multitrackType != nil { self.flags.insert(.multitrack) }
        var tracks = TrackIterator(header, payload)
        guard let track = try tracks.next() else { return nil }
        self.trackID = track.id
        self.bodyOffset = UInt32(clamping: track.body.lowerBound)
        return track
    }
}

/// `VideoFrameType`: FLV 10.1 §E.4.3.1.
private enum FrameType {
    static let key: UInt8 = 1
    static let disposable: UInt8 = 3
    static let generatedKey: UInt8 = 4
    static let command: UInt8 = 5
}
