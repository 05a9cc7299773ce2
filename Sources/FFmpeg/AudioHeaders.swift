internal import Media
package import NIOCore

/// The header of an MPEG audio frame, ISO/IEC 11172-3 §2.4.1.3 and 13818-3.
///
///     | sync 11 bits | version UB[2] | layer UB[2] | no CRC UB[1] | bit rate UB[4] | rate UB[2] | padding, private | mode UB[2] | …
///
/// FLV's own bits are not enough: they cannot express 48 kHz.
struct MPEGAudioHeader {
    /// Hz.
    let sampleRate: Int
    let channels: Int
    /// Samples of one frame.
    let samples: Int

    init(_ frame: ByteBuffer) throws(MediaError) {
        guard let word = frame.getInteger(at: frame.readerIndex, as: UInt32.self) else {
            throw .truncated(field: "MPEG audio header", needed: 4, available: frame.readableBytes)
        }
        guard word >> 21 == 0x7FF else { throw .invalid(field: "MPEG audio sync word", found: Int(word >> 21), expected: "2047") }
        let version = Int(word >> 19 & 3)
        let layer = Int(word >> 17 & 3)
        let rate = Int(word >> 10 & 3)
        guard version != 1 else { throw .invalid(field: "MPEG audio version", found: version, expected: "0, 2 or 3") }
        guard layer == 1 else { throw .invalid(field: "MPEG audio layer", found: layer, expected: "1 (III)") }
        guard rate != 3 else { throw .invalid(field: "MPEG audio sample rate", found: rate, expected: "0…2") }
        // Version 3 is MPEG-1, 2 is MPEG-2 (half the rates), 0 is MPEG-2.5 (a quarter).
        self.sampleRate = [44_100, 48_000, 32_000][rate] >> (version == 3 ? 0 : version == 2 ? 1 : 2)
        self.samples = version == 3 ? 1_152 : 576
        self.channels = word >> 6 & 3 == 3 ? 1 : 2
    }
}

/// The head of an AC-3 or E-AC-3 frame, ETSI TS 102 366 §4.3.1 and §E.1.2.
struct AC3Header {
    /// Hz.
    let sampleRate: Int
    let channels: Int

    init(_ frame: ByteBuffer) throws(MediaError) {
        var bits = BitReader(Array(frame.readableBytesView.prefix(16)))
        let sync = try bits.bits(16, "AC-3 sync word")
        guard sync == 0x0B77 else { throw .invalid(field: "AC-3 sync word", found: Int(sync), expected: "2935") }
        let isExtended = frame.getInteger(at: frame.readerIndex + 5, as: UInt8.self).map { $0 >> 3 > 10 } ?? false
        var mode: Int
        if isExtended {
            try bits.skip(2 + 3 + 11, "E-AC-3 stream type and size")
            let code = Int(try bits.bits(2, "fscod"))
            let second = Int(try bits.bits(2, "fscod2 or numblkscod"))
            guard code != 3 || second != 3 else { throw .invalid(field: "fscod2", found: 3, expected: "0…2") }
            self.sampleRate = code == 3 ? [24_000, 22_050, 16_000][second] : [48_000, 44_100, 32_000][code]
            mode = Int(try bits.bits(3, "acmod"))
        } else {
            try bits.skip(16, "AC-3 checksum")
            let code = Int(try bits.bits(2, "fscod"))
            guard code != 3 else { throw .invalid(field: "fscod", found: 3, expected: "0…2") }
            self.sampleRate = [48_000, 44_100, 32_000][code]
            try bits.skip(6 + 5 + 3, "frmsizecod, bsid and bsmod")
            mode = Int(try bits.bits(3, "acmod"))
            if mode & 1 != 0, mode != 1 { try bits.skip(2, "cmixlev") }
            if mode & 4 != 0 { try bits.skip(2, "surmixlev") }
            if mode == 2 { try bits.skip(2, "dsurmod") }
        }
        let lowFrequency = try bits.flag("lfeon") ? 1 : 0
        mode = [2, 1, 2, 3, 3, 4, 4, 5][mode]
        self.channels = mode + lowFrequency
    }

    /// §E.1.3.1.4: 256 samples a block; 1, 2, 3 or 6 blocks.
    static func extendedSamples(_ frame: ByteBuffer) -> Int? {
        guard let byte = frame.getInteger(at: frame.readerIndex + 4, as: UInt8.self) else { return nil }
        return byte >> 6 == 3 ? 1_536 : 256 * [1, 2, 3, 6][Int(byte >> 4 & 3)]
    }
}

/// The duration of an Opus packet, RFC 6716 §3.1 and §3.2.
package enum OpusPacket {
    /// Samples at 48 kHz; nil for empty or truncated packets and above 120 ms.
    package static func samples(_ packet: ByteBuffer) -> Int? {
        guard let toc = packet.getInteger(at: packet.readerIndex, as: UInt8.self) else { return nil }
        let config = Int(toc >> 3)
        let perFrame =
            switch config {
            case 0..<12: [480, 960, 1_920, 2_880][config & 3]
            case 12..<16: [480, 960][config & 1]
            default: [120, 240, 480, 960][config & 3]
            }
        var frames = 1
        switch toc & 3 {
        case 0: break
        case 1, 2: frames = 2
        default:
            guard let count = packet.getInteger(at: packet.readerIndex + 1, as: UInt8.self) else { return nil }
            frames = Int(count & 0x3F)
        }
        let samples = perFrame * frames
        return (1...5_760).contains(samples) ? samples : nil
    }
}

/// The duration of a FLAC frame, RFC 9639 §9.1.
enum FLACFrame {
    static func samples(_ frame: ByteBuffer) -> Int? {
        let bytes = Array(frame.readableBytesView.prefix(16))
        guard bytes.count >= 6, bytes[0] == 0xFF, bytes[1] & 0xFC == 0xF8 else { return nil }
        let code = Int(bytes[2] >> 4)
        switch code {
        case 1: return 192
        case 2...5: return 144 << code
        case 8...15: return 1 << code
        case 6, 7:
            // The size follows the frame or sample number, which is coded like UTF-8.
            let length = max(1, (~bytes[4]).leadingZeroBitCount)
            let offset = 4 + length
            guard bytes.count > offset + 1 else { return nil }
            return code == 6 ? Int(bytes[offset]) + 1 : (Int(bytes[offset]) << 8 | Int(bytes[offset + 1])) + 1
        default: return nil
        }
    }
}
