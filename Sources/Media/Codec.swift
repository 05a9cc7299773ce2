/// The codec of a video message, named by either of FLV's two ways.
///
/// A plain value. Sources: FLV 10.1 §E.4.3.1 (`CodecID`) and Enhanced RTMP v2 (`VideoFourCc`).
package enum VideoCodec: Sendable, Hashable {
    case h263, screen, vp6, vp6Alpha, screen2
    case avc, hevc, av1, vp8, vp9, vvc
    /// A legacy `CodecID` (4 bits) unknown here.
    case unknown(UInt8)
    /// A FourCC unknown here, relayed unchanged.
    case other(FourCC)

    package init(legacyID: UInt8) {
        switch legacyID {
        case 2: self = .h263
        case 3: self = .screen
        case 4: self = .vp6
        case 5: self = .vp6Alpha
        case 6: self = .screen2
        case 7: self = .avc
        // 12 and 13 are in no specification: Chinese CDNs and their SDKs push HEVC and AV1 this way, and SRS reads them.
        case 12: self = .hevc
        case 13: self = .av1
        default: self = .unknown(legacyID)
        }
    }

    package init(fourCC: FourCC) {
        switch fourCC {
        case "avc1": self = .avc
        case "hvc1": self = .hevc
        case "av01": self = .av1
        case "vp08": self = .vp8
        case "vp09": self = .vp9
        case "vvc1": self = .vvc
        default: self = .other(fourCC)
        }
    }

    /// The FourCC of Enhanced RTMP; nil for codecs that only have a legacy id.
    package var fourCC: FourCC? {
        switch self {
        case .avc: "avc1"
        case .hevc: "hvc1"
        case .av1: "av01"
        case .vp8: "vp08"
        case .vp9: "vp09"
        case .vvc: "vvc1"
        case .other(let fourCC): fourCC
        case .h263, .screen, .vp6, .vp6Alpha, .screen2, .unknown: nil
        }
    }

    /// The name for logs, the API and the console.
    package var name: String {
        switch self {
        case .h263: "H263"
        case .screen: "Screen"
        case .vp6: "VP6"
        case .vp6Alpha: "VP6A"
        case .screen2: "Screen2"
        case .avc: "H264"
        case .hevc: "HEVC"
        case .av1: "AV1"
        case .vp8: "VP8"
        case .vp9: "VP9"
        case .vvc: "VVC"
        case .unknown(let id): "video-\(id)"
        case .other(let fourCC): fourCC.description
        }
    }

    /// Whether a coded frame's body starts with a composition time (SI24, ms): decode and presentation order may differ.
    package var hasCompositionTime: Bool { self == .avc || self == .hevc || self == .vvc }
}

/// The codec of an audio message, named by either of FLV's two ways.
///
/// A plain value. Sources: FLV 10.1 §E.4.2.1 (`SoundFormat`) and Enhanced RTMP v2 (`AudioFourCc`).
package enum AudioCodec: Sendable, Hashable {
    /// PCM in the byte order of the encoder's machine (format 0), and little-endian (format 3).
    case linearPCMPlatform, linearPCM
    case adpcm, mp3, mp3At8k
    case nellymoser16k, nellymoser8k, nellymoser
    case g711ALaw, g711MuLaw
    case aac, speex, deviceSpecific
    case opus, flac, ac3, eac3
    /// A legacy `SoundFormat` (4 bits) unknown here.
    case unknown(UInt8)
    /// A FourCC unknown here, relayed unchanged.
    case other(FourCC)

    package init(legacyID: UInt8) {
        switch legacyID {
        case 0: self = .linearPCMPlatform
        case 1: self = .adpcm
        case 2: self = .mp3
        case 3: self = .linearPCM
        case 4: self = .nellymoser16k
        case 5: self = .nellymoser8k
        case 6: self = .nellymoser
        case 7: self = .g711ALaw
        case 8: self = .g711MuLaw
        case 10: self = .aac
        case 11: self = .speex
        case 14: self = .mp3At8k
        case 15: self = .deviceSpecific
        default: self = .unknown(legacyID)
        }
    }

    package init(fourCC: FourCC) {
        switch fourCC {
        case "Opus": self = .opus
        case "fLaC": self = .flac
        case "ac-3": self = .ac3
        case "ec-3": self = .eac3
        case ".mp3": self = .mp3
        case "mp4a": self = .aac
        default: self = .other(fourCC)
        }
    }

    /// The FourCC of Enhanced RTMP; nil for codecs that only have a legacy id.
    package var fourCC: FourCC? {
        switch self {
        case .opus: "Opus"
        case .flac: "fLaC"
        case .ac3: "ac-3"
        case .eac3: "ec-3"
        case .mp3, .mp3At8k: ".mp3"
        case .aac: "mp4a"
        case .other(let fourCC): fourCC
        default: nil
        }
    }

    /// The name for logs, the API and the console.
    package var name: String {
        switch self {
        case .linearPCMPlatform, .linearPCM: "PCM"
        case .adpcm: "ADPCM"
        case .mp3, .mp3At8k: "MP3"
        case .nellymoser16k, .nellymoser8k, .nellymoser: "Nellymoser"
        case .g711ALaw: "G711A"
        case .g711MuLaw: "G711U"
        case .aac: "AAC"
        case .speex: "Speex"
        case .deviceSpecific: "device"
        case .opus: "Opus"
        case .flac: "FLAC"
        case .ac3: "AC3"
        case .eac3: "EAC3"
        case .unknown(let id): "audio-\(id)"
        case .other(let fourCC): fourCC.description
        }
    }
}
