import Media
import TestSupport

/// H.264 and AAC as some cameras send them: start codes for lengths, parameter sets in keyframes for a sequence header, ADTS headers, and the keyframe flag
/// on all pictures but keyframes.
enum CameraForm {
    /// The tags of an FLV file of H.264 and AAC in this form.
    static func tags(_ tags: [FLVTag]) throws -> [FLVTag] {
        let sets = try Self.parameterSets(try tags.first { $0.kind == .video && $0.isSequenceHeader }.orThrow().payload)
        let config = try tags.first { $0.kind == .audio && $0.isSequenceHeader }.orThrow().payload
        return tags.compactMap { tag in
            if tag.isSequenceHeader { return nil }
            var tag = tag
            if tag.kind == .video, tag.payload.count > 5, tag.payload[1] == 1 {
                let isKey = tag.payload[0] == 0x17
                let units = (isKey ? sets : []) + Self.units(tag.payload)
                let body: [UInt8] = units.flatMap { [0, 0, 0, 1] + $0 }
                tag.payload = Array(tag.payload[..<5]) + body
                tag.payload[0] = isKey ? 0x27 : 0x17
            } else if tag.kind == .audio, tag.payload.count > 2 {
                tag.payload.insert(contentsOf: Self.adts(config, blockBytes: tag.payload.count - 2), at: 2)
            }
            return tag
        }
    }

    private static func units(_ payload: [UInt8]) -> [[UInt8]] {
        var units: [[UInt8]] = []
        var at = 5
        while at + 4 <= payload.count {
            let length = payload[at..<(at + 4)].reduce(0) { $0 << 8 | Int($1) }
            units.append(Array(payload[(at + 4)..<min(at + 4 + length, payload.count)]))
            at += 4 + length
        }
        return units
    }

    /// One SPS and one PPS, as x264 makes them.
    private static func parameterSets(_ header: [UInt8]) throws -> [[UInt8]] {
        let sequence = 13 + (Int(header[11]) << 8 | Int(header[12]))
        let picture = sequence + 3 + (Int(header[sequence + 1]) << 8 | Int(header[sequence + 2]))
        return [Array(header[13..<sequence]), Array(header[(sequence + 3)..<picture])]
    }

    /// ISO/IEC 14496-3 §1.A.2, without a checksum.
    private static func adts(_ header: [UInt8], blockBytes: Int) -> [UInt8] {
        let (profile, rate, channels) = ((header[2] >> 3) - 1, (header[2] & 7) << 1 | header[3] >> 7, header[3] >> 3 & 0xF)
        let length = blockBytes + 7
        return [
            0xFF, 0xF1, profile << 6 | rate << 2 | channels >> 2, (channels & 3) << 6 | UInt8(length >> 11), UInt8(length >> 3 & 0xFF),
            UInt8(length & 7) << 5 | 0x1F, 0xFC,
        ]
    }
}
