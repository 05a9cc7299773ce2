package import Media
package import NIOCore

/// Properties of video or audio that a container or decoder needs before the first sample.
///
/// A plain value; equal tracks need no new initialization segment.
package struct Track: Sendable, Equatable {
    package var kind: Frame.Kind
    package var codec: TagInfo.Codec
    /// avcC, hvcC, av1C, AudioSpecificConfig, OpusHead, FLAC's STREAMINFO, as stored in ISO/IEC 14496 boxes. Empty for codecs without a
    /// configuration.
    package var extradata: ByteBuffer
    /// Pixels, as shown; 0 for audio.
    package var width = 0
    package var height = 0
    /// Frames per second, if the header gives it.
    package var frameRate: Double?
    /// Hz of the coded audio; with AAC's SBR, the rate of the core codec. 0 for video.
    package var sampleRate = 0
    /// 0 for video.
    package var channels = 0
    /// 8 or 16 for PCM; otherwise 0.
    var bitsPerSample = 0
    /// The codec as RFC 6381 §3.3 writes it: "avc1.64001f", "mp4a.40.2". Empty for codecs that no HTTP player accepts.
    package var codecsString = ""
    /// Samples that every coded run decodes to; nil when it varies by run.
    var samplesPerRun: Int?

    init(kind: Frame.Kind, codec: TagInfo.Codec, extradata: ByteBuffer = ByteBuffer()) {
        self.kind = kind
        self.codec = codec
        self.extradata = extradata
    }

    /// The codec's common name.
    package var codecName: String {
        switch self.codec {
        case .video(let codec): codec.name
        case .audio(let codec): codec.name
        }
    }

    /// The most bytes of a stored configuration.
    static let maxExtradata = 64 << 10

    /// Whether a track can be made from this message. True for a sequence header, or coded audio of a codec without one.
    package static func describes(_ frame: Frame) -> Bool {
        guard frame.kind != .data, frame.tag.trackID == 0 else { return false }
        if frame.tag.flags.contains(.sequenceHeader) { return true }
        guard frame.tag.flags.contains(.coded) else { return false }
        switch frame.tag.codec {
        case .audio(.mp3), .audio(.mp3At8k), .audio(.ac3), .audio(.eac3), .audio(.speex), .audio(.g711ALaw), .audio(.g711MuLaw): return true
        case .audio(.nellymoser), .audio(.nellymoser8k), .audio(.nellymoser16k): return true
        case .audio(.linearPCM), .audio(.linearPCMPlatform), .audio(.adpcm): return true
        default: return false
        }
    }

    /// Reads a message that satisfies ``describes(_:)``. Throws `.media`, which names the broken field, and `.unsupported` for codecs
    /// that no container here holds and no decoder here reads.
    package init(_ frame: Frame) throws(FFmpegError) {
        guard Self.describes(frame) else {
            throw .media(.mismatch(expected: "a sequence header, or audio of a codec without one", found: "another message"))
        }
        guard let codec = frame.tag.codec else { throw .media(.mismatch(expected: "a codec", found: "none")) }
        let body = try Self.body(frame)
        guard body.readableBytes <= Self.maxExtradata || !frame.isSequenceHeader else {
            throw .overLimit(field: "sequence header (bytes)", found: body.readableBytes, max: Self.maxExtradata)
        }
        switch codec {
        case .video(let video): try self.init(video, body, frame)
        case .audio(let audio): try self.init(audio, body, frame)
        }
    }

    /// The first track's codec data. Copied, since a slice would keep a whole read buffer alive as long as the track.
    private static func body(_ frame: Frame) throws(FFmpegError) -> ByteBuffer {
        let first = try reading { () throws(MediaError) in
            var tracks = try TrackIterator(frame.kind, frame.payload)
            return try tracks.next()
        }
        let end = first?.body.upperBound ?? frame.payload.readableBytes
        let start = Int(frame.tag.bodyOffset)
        guard end >= start, let slice = frame.payload.getSlice(at: frame.payload.readerIndex + start, length: end - start) else {
            throw .media(.truncated(field: "sequence header", needed: start, available: end))
        }
        return ByteBuffer(bytes: slice.readableBytesView)
    }

    private init(_ codec: VideoCodec, _ body: ByteBuffer, _ frame: Frame) throws(FFmpegError) {
        self.init(kind: .video, codec: .video(codec), extradata: body)
        let format = try reading { () throws(MediaError) in try VideoFormat.from(sequenceHeader: frame.payload) }
        self.width = format.width ?? 0
        self.height = format.height ?? 0
        self.frameRate = format.frameRate
        switch codec {
        case .avc:
            let record = try reading { () throws(MediaError) in try AVCConfiguration(body) }
            try Self.require(record.sequenceParameterSets, "avcC SPS")
            try Self.require(record.pictureParameterSets, "avcC PPS")
        case .hevc:
            let record = try reading { () throws(MediaError) in try HEVCConfiguration(body) }
            try Self.require(record.videoParameterSets, "hvcC VPS")
            try Self.require(record.sequenceParameterSets, "hvcC SPS")
            try Self.require(record.pictureParameterSets, "hvcC PPS")
        case .av1:
            guard format.profile != nil else { throw .unsupported("AV1 with a header for MPEG-TS") }
        case .vp9:
            throw .unsupported("VP9, whose header does not contain the picture's size,")
        default:
            throw .unsupported("\(codec.name) video")
        }
        guard self.width > 0, self.height > 0 else {
            throw .media(.mismatch(expected: "a \(codec.name) sequence header with the picture's size", found: "none"))
        }
        self.codecsString = CodecsString.video(codec, body)
    }

    private static func require(_ sets: [ByteBuffer], _ name: String) throws(FFmpegError) {
        guard let first = sets.first else { throw .media(.invalid(field: "\(name) count", found: 0, expected: "at least 1")) }
        guard first.readableBytes > 0 else { throw .media(.invalid(field: "\(name) size", found: 0, expected: "at least 1")) }
    }
}
