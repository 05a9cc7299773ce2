internal import Media
internal import NIOCore

/// Codec strings of RFC 6381 §3.3, for MediaSource's `codecs=` and HLS's CODECS.
enum CodecsString {
    /// `configuration` is the sequence header's record. It was parsed before, so its fixed part is present.
    static func video(_ codec: VideoCodec, _ configuration: ByteBuffer) -> String {
        let bytes = Array(configuration.readableBytesView.prefix(13))
        switch codec {
        // ISO/IEC 14496-15 §E.2: profile, constraints and level of the record in hex.
        case .avc where bytes.count >= 4:
            return "avc1." + bytes[1...3].map(Self.hex).joined()
        case .hevc where bytes.count >= 13:
            return Self.hevc(bytes)
        // AV1-ISOBMFF §5: profile, level and tier, bit depth.
        case .av1 where bytes.count >= 3:
            let isHighDepth = bytes[2] & 0x40 != 0
            let depth = isHighDepth ? (bytes[1] >> 5 == 2 && bytes[2] & 0x20 != 0 ? 12 : 10) : 8
            return
                "av01.\(bytes[1] >> 5).\(Self.twoDigits(Int(bytes[1] & 0x1F)))\(bytes[2] & 0x80 == 0 ? "M" : "H").\(Self.twoDigits(depth))"
        default:
            return ""
        }
    }

    /// ISO/IEC 14496-15 §E.3: profile space and profile, compatibility flags with their bits reversed, tier and level, constraint bytes
    /// without the trailing zeros.
    private static func hevc(_ bytes: [UInt8]) -> String {
        let space = ["", "A", "B", "C"][Int(bytes[1] >> 6)]
        var flags = bytes[2...5].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        var reversed: UInt32 = 0
        for _ in 0..<32 {
            reversed = reversed << 1 | flags & 1
            flags >>= 1
        }
        var parts = ["hvc1", "\(space)\(bytes[1] & 0x1F)", String(reversed, radix: 16, uppercase: true)]
        parts.append("\(bytes[1] & 0x20 == 0 ? "L" : "H")\(bytes[12])")
        var constraints = Array(bytes[6...11])
        while constraints.last == 0 { constraints.removeLast() }
        parts += constraints.map { String($0, radix: 16, uppercase: true) }
        return parts.joined(separator: ".")
    }

    /// AAC's codec string, by the signalling's first object type: 2 LC, 5 HE, 29 HE v2.
    static func aac(_ config: AudioSpecificConfig) -> String {
        "mp4a.40.\(config.hasPS ? 29 : config.hasSBR ? 5 : Int(config.objectType))"
    }

    private static func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }

    private static func twoDigits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
