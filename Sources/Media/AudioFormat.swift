package import NIOCore

/// The known properties of an audio track, for the console, the API, mixing and remuxing.
///
/// A plain value.
package struct AudioFormat: Sendable, Equatable {
    package var codec: AudioCodec
    /// Sample rate of the decoded sound in Hz; nil if the message does not give it.
    package var sampleRate: Int?
    /// Channels of the decoded sound; nil if the message does not give them.
    package var channels: Int?
    /// The AAC profile in its usual form: "LC", "HE", "HEv2". Nil for other codecs.
    package var profile: String?

    package init(codec: AudioCodec, sampleRate: Int? = nil, channels: Int? = nil, profile: String? = nil) {
        self.codec = codec
        self.sampleRate = sampleRate
        self.channels = channels
        self.profile = profile
    }

    /// Reads an audio message; in a Multitrack one, the first track. Pass a sequence header if the codec has one, or any message of a
    /// legacy codec.
    ///
    /// Throws for malformed headers, and for messages without a codec.
    package static func from(tag payload: ByteBuffer) throws(MediaError) -> AudioFormat {
        let tag = try TagInfo.parseAudio(payload)
        guard let codec = tag.audioCodec, let first = payload.getInteger(at: payload.readerIndex, as: UInt8.self) else {
            throw .mismatch(expected: "an audio message", found: "a message without a codec")
        }
        if !tag.flags.contains(.enhanced), codec != .aac { return Self.legacy(codec, first) }
        // Opus decodes at 48 kHz whatever was encoded (RFC 6716 §2).
        let format = AudioFormat(codec: codec, sampleRate: codec == .opus ? 48_000 : nil)
        guard tag.flags.contains(.sequenceHeader), let body = try payload.body(of: .audio, from: tag.bodyOffset) else { return format }
        switch codec {
        case .aac:
            let config = try AudioSpecificConfig(body)
            return AudioFormat(codec: .aac, sampleRate: config.sampleRate, channels: config.channels, profile: Self.profile(config))
        // "If the Opus sequence start payload is empty, use … MultichannelConfig … otherwise, default to mono/stereo mode."
        case .opus where body.readableBytes > 0:
            return AudioFormat(codec: .opus, sampleRate: 48_000, channels: try OpusHead(body).channels)
        case .flac:
            let info = try FLACStreamInfo(body)
            return AudioFormat(codec: .flac, sampleRate: info.sampleRate, channels: info.channels)
        default:
            return format
        }
    }

    /// Reads the SoundRate and SoundType bits, except for formats that ignore them (FLV 10.1 §E.4.2.1).
    private static func legacy(_ codec: AudioCodec, _ first: UInt8) -> AudioFormat {
        let rate = [5_512, 11_025, 22_050, 44_100][Int(first >> 2 & 3)]
        let channels = first & 1 == 1 ? 2 : 1
        return switch codec {
        case .nellymoser16k: AudioFormat(codec: codec, sampleRate: 16_000, channels: 1)
        case .nellymoser8k: AudioFormat(codec: codec, sampleRate: 8_000, channels: 1)
        case .nellymoser: AudioFormat(codec: codec, sampleRate: rate, channels: 1)
        // "If the SoundFormat indicates Speex, the audio is compressed mono sampled at 16 kHz", regardless of the bits.
        case .speex: AudioFormat(codec: codec, sampleRate: 16_000, channels: 1)
        case .g711ALaw, .g711MuLaw, .mp3At8k: AudioFormat(codec: codec, sampleRate: 8_000, channels: channels)
        case .deviceSpecific, .unknown: AudioFormat(codec: codec)
        default: AudioFormat(codec: codec, sampleRate: rate, channels: channels)
        }
    }

    private static func profile(_ config: AudioSpecificConfig) -> String? {
        if config.hasPS { return "HEv2" }
        if config.hasSBR { return "HE" }
        return switch config.objectType {
        case 1: "Main"
        case 2: "LC"
        case 3: "SSR"
        case 4: "LTP"
        case 23: "LD"
        case 39: "ELD"
        case 42: "xHE"
        default: nil
        }
    }
}
