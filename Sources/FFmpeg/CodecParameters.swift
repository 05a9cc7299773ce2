internal import CFFmpeg
internal import Media
internal import NIOCore

extension Track {
    /// libav's id of the codec; nil for codecs that this module neither reads nor writes.
    var codecID: AVCodecID? {
        switch self.codec {
        case .video(.avc): AV_CODEC_ID_H264
        case .video(.hevc): AV_CODEC_ID_HEVC
        case .video(.av1): AV_CODEC_ID_AV1
        case .audio(.aac): AV_CODEC_ID_AAC
        case .audio(.mp3), .audio(.mp3At8k): AV_CODEC_ID_MP3
        case .audio(.opus): AV_CODEC_ID_OPUS
        case .audio(.flac): AV_CODEC_ID_FLAC
        case .audio(.ac3): AV_CODEC_ID_AC3
        case .audio(.eac3): AV_CODEC_ID_EAC3
        case .audio(.speex): AV_CODEC_ID_SPEEX
        case .audio(.nellymoser), .audio(.nellymoser8k), .audio(.nellymoser16k): AV_CODEC_ID_NELLYMOSER
        case .audio(.g711ALaw): AV_CODEC_ID_PCM_ALAW
        case .audio(.g711MuLaw): AV_CODEC_ID_PCM_MULAW
        case .audio(.adpcm): AV_CODEC_ID_ADPCM_SWF
        // Format 0 has the encoder's byte order. Assume little-endian, as all machines are that still send it.
        case .audio(.linearPCM), .audio(.linearPCMPlatform): self.bitsPerSample == 8 ? AV_CODEC_ID_PCM_U8 : AV_CODEC_ID_PCM_S16LE
        default: nil
        }
    }

    /// Describes the track to libav.
    func fill(_ parameters: UnsafeMutablePointer<AVCodecParameters>) throws(FFmpegError) {
        guard let id = self.codecID else { throw .unsupported("\(self.codec)") }
        parameters.pointee.codec_id = id
        parameters.pointee.codec_type = self.kind == .video ? AVMEDIA_TYPE_VIDEO : AVMEDIA_TYPE_AUDIO
        if self.kind == .video {
            parameters.pointee.width = Int32(self.width)
            parameters.pointee.height = Int32(self.height)
        } else {
            parameters.pointee.sample_rate = Int32(self.sampleRate)
            parameters.pointee.frame_size = Int32(self.samplesPerRun ?? 0)
            av_channel_layout_default(&parameters.pointee.ch_layout, Int32(self.channels))
        }
        guard self.extradata.readableBytes > 0 else { return }
        // avformat_free_context and avcodec_parameters_free free this memory.
        let memory = try allocated(av_mallocz(self.extradata.readableBytes + Int(earshot_input_padding)), "av_mallocz")
        self.extradata.withUnsafeReadableBytes { source in
            UnsafeMutableRawBufferPointer(start: memory, count: source.count).copyMemory(from: source)
        }
        parameters.pointee.extradata = memory.assumingMemoryBound(to: UInt8.self)
        parameters.pointee.extradata_size = Int32(self.extradata.readableBytes)
    }
}
