/// Enhanced RTMP (v2) tag bodies, put together byte by byte: "ExVideoTagHeader" and "ExAudioTagHeader".
enum EnhancedTag {
    enum Frame: UInt8 { case key = 1, inter = 2 }

    /// Values of VideoPacketType and AudioPacketType; 0 and 1 are the same in both.
    static let sequenceStart: UInt8 = 0
    static let codedFrames: UInt8 = 1
    static let codedFramesX: UInt8 = 3
    static let metadata: UInt8 = 4
    static let multichannelConfig: UInt8 = 4

    static func video(_ fourCC: String, _ packet: UInt8, _ frame: Frame = .key, _ body: [UInt8]) -> [UInt8] {
        [0x80 | frame.rawValue << 4 | packet] + Array(fourCC.utf8) + body
    }

    static func audio(_ fourCC: String, _ packet: UInt8, _ body: [UInt8]) -> [UInt8] {
        [0x90 | packet] + Array(fourCC.utf8) + body
    }

    /// VideoPacketType.Multitrack is 6, AvMultitrackType.OneTrack 0.
    static func oneTrack(_ track: UInt8, video fourCC: String, _ packet: UInt8, _ frame: Frame = .key, _ body: [UInt8]) -> [UInt8] {
        [0x80 | frame.rawValue << 4 | 6, packet] + Array(fourCC.utf8) + [track] + body
    }

    /// AvMultitrackType.ManyTracks is 1; each track's size comes before its body.
    static func manyTracks(video fourCC: String, _ packet: UInt8, _ frame: Frame = .key, _ bodies: [(UInt8, [UInt8])]) -> [UInt8] {
        var out: [UInt8] = [0x80 | frame.rawValue << 4 | 6, 0x10 | packet]
        out += Array(fourCC.utf8)
        for (track, body) in bodies { out += [track] + Self.size(body) + body }
        return out
    }

    /// AudioPacketType.Multitrack is 5, AvMultitrackType.ManyTracksManyCodecs 2; each track names its codec.
    static func manyCodecs(audio packet: UInt8, _ tracks: [(String, UInt8, [UInt8])]) -> [UInt8] {
        var out: [UInt8] = [0x95, 0x20 | packet]
        for (fourCC, track, body) in tracks {
            out += Array(fourCC.utf8)
            out += [track] + Self.size(body) + body
        }
        return out
    }

    /// A ModEx packet (type 7) with a TimestampOffsetNano in front of an enhanced tag.
    static func nanoseconds(_ value: UInt32, before tag: [UInt8]) -> [UInt8] {
        let data = [UInt8(truncatingIfNeeded: value >> 16), UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)]
        // Size minus one, data, ModEx type 0 and the packet type that follows; then the tag without its first byte.
        let first: [UInt8] = [tag[0] & 0xF0 | 7, UInt8(data.count - 1)]
        let next: [UInt8] = [tag[0] & 0x0F]
        return first + data + next + Array(tag.dropFirst())
    }

    private static func size(_ body: [UInt8]) -> [UInt8] {
        [UInt8(truncatingIfNeeded: body.count >> 16), UInt8(truncatingIfNeeded: body.count >> 8), UInt8(truncatingIfNeeded: body.count)]
    }

    /// Bytes that differ from call to call, so that mixed-up payloads show.
    static func body(_ seed: Int, _ count: Int = 300) -> [UInt8] {
        (0..<count).map { index in UInt8(truncatingIfNeeded: index &* 31 &+ seed &* 77 &+ index / 7) }
    }
}
