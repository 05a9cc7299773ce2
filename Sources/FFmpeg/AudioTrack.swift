internal import Media
internal import NIOCore

extension Track {
    /// Reads a sequence header's body, or a first coded run of audio.
    init(_ codec: AudioCodec, _ body: ByteBuffer, _ frame: Frame) throws(FFmpegError) {
        self.init(kind: .audio, codec: .audio(codec))
        let format = try reading { () throws(MediaError) in try AudioFormat.from(tag: frame.payload) }
        self.sampleRate = format.sampleRate ?? 0
        self.channels = format.channels ?? 0
        switch codec {
        case .aac: try self.readAAC(body)
        case .opus: try self.readOpus(body)
        case .flac: try self.readFLAC(body)
        case .mp3, .mp3At8k:
            let header = try reading { () throws(MediaError) in try MPEGAudioHeader(body) }
            (self.sampleRate, self.channels, self.samplesPerRun) = (header.sampleRate, header.channels, header.samples)
            // The object type in the esds box: MPEG-1 audio, or MPEG-2 for its lower rates.
            self.codecsString = header.sampleRate > 24_000 ? "mp4a.6B" : "mp4a.69"
        case .ac3, .eac3:
            let header = try reading { () throws(MediaError) in try AC3Header(body) }
            (self.sampleRate, self.channels, self.samplesPerRun) = (header.sampleRate, header.channels, codec == .ac3 ? 1_536 : nil)
            self.codecsString = codec == .ac3 ? "ac-3" : "ec-3"
        case .g711ALaw, .g711MuLaw, .speex, .nellymoser, .nellymoser8k, .nellymoser16k, .adpcm: break
        case .linearPCM, .linearPCMPlatform:
            // FLV 10.1 §E.4.2.1: SoundSize.
            self.bitsPerSample = frame.payload.getInteger(at: frame.payload.readerIndex, as: UInt8.self).map { $0 & 2 == 0 ? 8 : 16 } ?? 16
        default: throw .unsupported("\(codec.name) audio")
        }
        guard (1...768_000).contains(self.sampleRate) else {
            throw .media(.invalid(field: "\(codec.name) sample rate", found: self.sampleRate, expected: "1…768000"))
        }
        guard (1...24).contains(self.channels) else {
            throw .media(.invalid(field: "\(codec.name) channels", found: self.channels, expected: "1…24"))
        }
    }

    private mutating func readAAC(_ body: ByteBuffer) throws(FFmpegError) {
        let config = try reading { () throws(MediaError) in try AudioSpecificConfig(body) }
        self.extradata = body
        // Samples count at the core codec's rate: 1,024 a run, whatever SBR adds.
        self.sampleRate = config.coreSampleRate
        guard let channels = config.coreChannels else {
            throw .media(.invalid(field: "channelConfiguration", found: Int(config.channelConfiguration), expected: "1…7, 11, 12 or 14"))
        }
        self.channels = channels
        self.codecsString = CodecsString.aac(config)
        self.samplesPerRun = config.samplesPerFrame
    }

    private mutating func readOpus(_ body: ByteBuffer) throws(FFmpegError) {
        self.extradata = body
        if body.readableBytes == 0 {
            // Enhanced RTMP v2: "If the Opus sequence start payload is empty, … default to mono/stereo mode."
            self.channels = 2
            self.extradata.writeBytes([UInt8]("OpusHead".utf8) + [1, 2, 0, 0, 0x80, 0xBB, 0, 0, 0, 0, 0])
        }
        self.sampleRate = 48_000
        self.codecsString = "opus"
    }

    private mutating func readFLAC(_ body: ByteBuffer) throws(FFmpegError) {
        // RFC 9639 §8.2: 34 bytes, after the marker and block header if present. Other blocks are not needed.
        let offset = body.readableBytes == 34 ? 0 : 8
        guard let block = body.getBytes(at: body.readerIndex + offset, length: 34) else {
            throw .media(.truncated(field: "FLAC STREAMINFO", needed: 34, available: max(0, body.readableBytes - offset)))
        }
        self.extradata = ByteBuffer(bytes: block)
        self.codecsString = "fLaC"
    }

    /// The samples of a coded run at ``sampleRate``; nil for an unreadable header.
    func samples(in payload: ByteBuffer) -> Int? {
        if let samplesPerRun { return samplesPerRun }
        switch self.codec {
        case .audio(.opus): return OpusPacket.samples(payload)
        case .audio(.flac): return FLACFrame.samples(payload)
        case .audio(.eac3): return AC3Header.extendedSamples(payload)
        default: return nil
        }
    }

    /// Whether the audio must pass an `AudioTranscoder` first. HTTP players reject such codecs, or MP4 needs their first frame.
    package var needsTranscode: Bool {
        switch self.codec {
        case .audio(.speex), .audio(.g711ALaw), .audio(.g711MuLaw), .audio(.ac3), .audio(.eac3): true
        case .audio(.nellymoser), .audio(.nellymoser8k), .audio(.nellymoser16k): true
        case .audio(.linearPCM), .audio(.linearPCMPlatform), .audio(.adpcm): true
        default: false
        }
    }

    /// Whether players of a container need AAC in place of the audio. Files keep it unless it ``needsTranscode``.
    package func needsTranscodeToPlay(in format: ContainerFormat) -> Bool {
        switch self.codec {
        // No browser takes MP3 in fragmented MP4 ("mp4a.6B"), and hls.js leaves out a rendition that names it.
        case .audio(.mp3), .audio(.mp3At8k): true
        // Old players, which MPEG-TS is for, know neither.
        case .audio(.opus), .audio(.flac): format == .mpegTS
        default: self.needsTranscode
        }
    }

    /// Whether a container accepts this track unchanged.
    package func isSupported(in format: ContainerFormat) -> Bool {
        switch (self.codec, format) {
        case (.video(.avc), _), (.video(.hevc), _), (.video(.av1), .fmp4): true
        case (.audio(.aac), _), (.audio(.mp3), _), (.audio(.mp3At8k), _), (.audio(.opus), _), (.audio(.flac), .fmp4): true
        // Their MP4 boxes need a first packet, for which an empty moov cannot wait.
        case (.audio(.ac3), .mpegTS), (.audio(.eac3), .mpegTS): true
        default: false
        }
    }
}
