import Media
import NIOCore
import Testing

/// One track of a Multitrack message as players read it that do not know Multitrack.
@Suite struct SingleTrackTests {
    /// By hand from Enhanced RTMP v2 and FLV 10.1 §E.4; nil: there is no such form.
    static let vectors: [(kind: Frame.Kind, message: String, track: UInt8, single: String?)] = [
        // AVC: header, picture with and without composition time, end.
        (.video, "96 00 61766331 00 0142c0", 0, "17 00 000000 0142c0"),
        (.video, "96 01 61766331 00 000028 aabb", 0, "17 01 000028 aabb"),
        (.video, "a6 03 61766331 00 aabb", 0, "27 01 000000 aabb"),
        (.video, "b6 03 61766331 00 aabb", 0, "37 01 000000 aabb"),
        (.video, "96 02 61766331 00", 0, "17 02 000000"),
        (.video, "96 04 61766331 00 0200", 0, nil),
        // Others keep their FourCC.
        (.video, "96 01 68766331 03 000010 aabb", 3, "91 68766331 000010 aabb"),
        (.video, "a6 03 68766331 03 aabb", 3, "a3 68766331 aabb"),
        (.video, "96 05 61763031 00 80", 0, "95 61763031 80"),
        // A track among many, of one codec or several.
        (.video, "96 10 61766331 00 000002 aabb 01 000001 cc", 0, "17 00 000000 aabb"),
        (.video, "96 10 61766331 00 000002 aabb 01 000001 cc", 1, "17 00 000000 cc"),
        (.video, "a6 23 61766331 05 000001 aa 61763031 02 000002 bbcc", 2, "a3 61763031 bbcc"),
        (.video, "a6 23 61766331 05 000001 aa 61763031 02 000002 bbcc", 0, nil),
        // ModEx is left out.
        (.video, "97 02 01e240 06 01 61766331 00 000000 aa", 0, "17 01 000000 aa"),
        (.audio, "95 00 6d703461 00 1190", 0, "af 00 1190"), (.audio, "95 01 6d703461 00 2110", 0, "af 01 2110"),
        (.audio, "95 04 6d703461 00 0102", 0, nil), (.audio, "95 01 2e6d7033 01 fffb", 1, "2f fffb"),
        (.audio, "95 21 4f707573 00 000001 fc 6d703461 01 000002 2110", 0, "91 4f707573 fc"),
        (.audio, "95 21 4f707573 00 000001 fc 6d703461 01 000002 2110", 1, "af 01 2110"),
        // Not Multitrack, or not known.
        (.video, "17 01 000000 aa", 0, nil), (.video, "91 68766331 000028 aabb", 0, nil), (.video, "96 31 aabb", 0, nil),
        (.audio, "", 0, nil),
    ]

    @Test(arguments: vectors.indices) func singleForm(_ index: Int) throws {
        let vector = Self.vectors[index]
        let frame = try Frame(kind: vector.kind, timestamp: 40, payload: hex(vector.message))
        let single = try frame.single(track: vector.track)
        #expect(single.map { hexText($0.payload) } == vector.single.map { hexText(hex($0)) })
        guard let single else { return }
        #expect(single.timestamp == 40 && single.kind == vector.kind)
        #expect(single.tag.flags.isDisjoint(with: .multitrack) && single.tag.trackID == 0)
        let kept: TagInfo.Flags = [.keyframe, .sequenceHeader, .endOfSequence, .coded, .disposable]
        #expect(single.tag.flags.intersection(kept) == frame.tag.flags.intersection(kept))
    }

    @Test func brokenTracksHaveNone() throws {
        let frame = try Frame(kind: .video, timestamp: 0, payload: hex("96 10 61766331 01 000002 aabb 00 000003 cc"))
        #expect(throws: MediaError.truncated(field: "body of track 0", needed: 3, available: 1)) { try frame.single(track: 0) }
    }
}
