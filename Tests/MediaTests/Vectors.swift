import Media
import NIOCore
import Testing

/// A message, its parsed header and its origin.
struct TagVector: Sendable, CustomTestStringConvertible {
    var name: String
    var origin: String
    var kind: Frame.Kind
    var payload: ByteBuffer
    var expected: TagInfo
    var testDescription: String { self.name }

    init(_ name: String, _ origin: String, _ kind: Frame.Kind, _ hexText: String, _ expected: TagInfo) {
        self.name = name
        self.origin = origin
        self.kind = kind
        self.payload = hex(hexText)
        self.expected = expected
    }
}

private func video(
    _ codec: VideoCodec?, _ flags: TagInfo.Flags, track: UInt8 = 0, cts: Int32 = 0, nanos: UInt32 = 0, body: UInt32
) -> TagInfo {
    TagInfo(
        flags: flags, codec: codec.map { .video($0) }, trackID: track, compositionTimeMs: cts, timestampOffsetNanos: nanos, bodyOffset: body
    )
}

private func audio(_ codec: AudioCodec?, _ flags: TagInfo.Flags, track: UInt8 = 0, nanos: UInt32 = 0, body: UInt32) -> TagInfo {
    TagInfo(flags: flags, codec: codec.map { .audio($0) }, trackID: track, timestampOffsetNanos: nanos, bodyOffset: body)
}

enum Vectors {
    private static let ffmpeg = "ffmpeg 5.1.9 -f flv, message cut to its first bytes"
    private static let flv = "by hand from FLV 10.1 §E.4"
    private static let spec = "by hand from Enhanced RTMP v2 (veovera/enhanced-rtmp, docs/enhanced/enhanced-rtmp-v2.md)"

    static let legacyVideo: [TagVector] = [
        TagVector("empty", spec, .video, "", TagInfo()),
        TagVector("AVC sequence header", ffmpeg, .video, Configurations.avc360, video(.avc, .sequenceHeader, body: 5)),
        TagVector("AVC keyframe", ffmpeg, .video, "17010000000000025406", video(.avc, [.coded, .keyframe], body: 5)),
        TagVector("AVC keyframe, 67 ms", ffmpeg, .video, "1701000043000002ae06", video(.avc, [.coded, .keyframe], cts: 67, body: 5)),
        TagVector("AVC inter", ffmpeg, .video, "270100000000006cd241", video(.avc, .coded, body: 5)),
        TagVector("AVC inter, −34 ms", flv, .video, "2701ffffde0000000141", video(.avc, .coded, cts: -34, body: 5)),
        TagVector("AVC keyframe without data", flv, .video, "1701000000", video(.avc, [], body: 5)),
        TagVector("AVC end of sequence", ffmpeg, .video, "1702000000", video(.avc, .endOfSequence, body: 2)),
        TagVector("AVC end of sequence, two bytes", flv, .video, "1702", video(.avc, .endOfSequence, body: 2)),
        TagVector("AVC packet type 5", flv, .video, "1705", video(.avc, [], body: 2)),
        TagVector("AVC generated key", flv, .video, "4701000000 00", video(.avc, [.coded, .keyframe], body: 5)),
        TagVector("seek command", flv, .video, "5700", video(.avc, .command, body: 2)),
        TagVector("H.263 key", ffmpeg, .video, "1200008402921e73", video(.h263, [.coded, .keyframe], body: 1)),
        TagVector("H.263 disposable", flv, .video, "320000", video(.h263, [.coded, .disposable], body: 1)),
        TagVector("HEVC by id 12", flv, .video, "1c00000000 01", video(.hevc, .sequenceHeader, body: 5)),
        TagVector("AV1 by id 13", flv, .video, "2d01000000 0a", video(.av1, .coded, body: 5)),
        TagVector("unknown id", flv, .video, "1800", video(.unknown(8), [.coded, .keyframe], body: 1)),
    ]

    static let enhancedVideo: [TagVector] = [
        TagVector(
            "SequenceStart hvc1", spec, .video, "90 68766331" + Configurations.hvcC360, video(.hevc, [.enhanced, .sequenceHeader], body: 5)),
        TagVector(
            "CodedFrames hvc1, 40 ms", spec, .video, "a1 68766331 000028 00000001", video(.hevc, [.enhanced, .coded], cts: 40, body: 8)),
        TagVector(
            "CodedFrames vvc1 key, −1 ms", spec, .video, "91 76766331 ffffff 00",
            video(.vvc, [.enhanced, .coded, .keyframe], cts: -1, body: 8)),
        TagVector("CodedFrames av01", spec, .video, "a1 61763031 0a0b", video(.av1, [.enhanced, .coded], body: 5)),
        TagVector("CodedFramesX av01 key", spec, .video, "93 61763031 0a0b", video(.av1, [.enhanced, .coded, .keyframe], body: 5)),
        TagVector("CodedFramesX avc1", spec, .video, "a3 61766331 00", video(.avc, [.enhanced, .coded], body: 5)),
        TagVector("CodedFrames vp09", spec, .video, "91 76703039 82", video(.vp9, [.enhanced, .coded, .keyframe], body: 5)),
        TagVector(
            "CodedFrames unknown FourCC", spec, .video, "91 7a7a7a7a 82", video(.other("zzzz"), [.enhanced, .coded, .keyframe], body: 5)),
        TagVector("SequenceEnd avc1", spec, .video, "92 61766331", video(.avc, [.enhanced, .endOfSequence], body: 5)),
        TagVector(
            "Metadata colorInfo", spec, .video, "94 68766331 02 0009 636f6c6f72496e666f 05", video(.hevc, [.enhanced, .metadata], body: 5)),
        TagVector(
            "Metadata, frame type to be ignored", spec, .video, "d4 68766331 02 0009 636f6c6f72496e666f 05",
            video(.hevc, [.enhanced, .metadata], body: 5)),
        TagVector(
            "MPEG2TSSequenceStart av01", spec, .video, "95 61763031 8004 81010c00", video(.av1, [.enhanced, .sequenceHeader], body: 5)),
        TagVector("seek command", spec, .video, "d1 01", video(nil, [.enhanced, .command], body: 2)),
        TagVector(
            "Multitrack OneTrack", spec, .video, "96 01 68766331 03 000010 aabb",
            video(.hevc, [.enhanced, .multitrack, .coded, .keyframe], track: 3, cts: 16, body: 10)),
        TagVector(
            "Multitrack ManyTracks SequenceStart", spec, .video, "96 10 61766331 00 000002 aabb 01 000001 cc",
            video(.avc, [.enhanced, .multitrack, .sequenceHeader], body: 10)),
        TagVector(
            "Multitrack ManyTracksManyCodecs", spec, .video, "a6 23 61766331 05 000001 aa 61763031 02 000002 bbcc",
            video(.avc, [.enhanced, .multitrack, .coded], track: 5, body: 10)),
        TagVector(
            "ModEx nanoseconds, CodedFrames", spec, .video, "97 02 0f423f 01 61766331 000000 00",
            video(.avc, [.enhanced, .coded, .keyframe], nanos: 999_999, body: 13)),
        TagVector(
            "ModEx twice, Multitrack", spec, .video, "a7 00 ff 17 03 00000100 06 03 61763031 07 aa",
            video(.av1, [.enhanced, .multitrack, .coded], track: 7, nanos: 1, body: 16)),
        TagVector(
            "ModEx of 257 bytes", spec, .video, "97 ff 0100" + String(repeating: "5a", count: 257) + "13 61763031 aa",
            video(.av1, [.enhanced, .coded, .keyframe], body: 266)),
        TagVector("ModEx before a command", spec, .video, "d7 00 00 11 00", video(nil, [.enhanced, .command], body: 5)),
        TagVector("packet type 9", spec, .video, "99", video(nil, .enhanced, body: 1)),
        TagVector("Multitrack type 3", spec, .video, "96 31", video(nil, [.enhanced, .multitrack], body: 2)),
        TagVector("Multitrack of packet type 8", spec, .video, "96 08", video(nil, [.enhanced, .multitrack], body: 2)),
    ]

    static let audioTags: [TagVector] = [
        TagVector("empty (silence)", spec, .audio, "", TagInfo()),
        TagVector("AAC sequence header", ffmpeg, .audio, Configurations.aac44Stereo, audio(.aac, .sequenceHeader, body: 2)),
        TagVector("AAC raw", flv, .audio, "af01 2110", audio(.aac, .coded, body: 2)),
        TagVector("AAC raw without data", flv, .audio, "af01", audio(.aac, [], body: 2)),
        TagVector("MP3", ffmpeg, .audio, "2ffffb9064000002", audio(.mp3, .coded, body: 1)),
        TagVector("Speex", ffmpeg, .audio, "b630549822d20000", audio(.speex, .coded, body: 1)),
        TagVector("G.711 A-law", ffmpeg, .audio, "72d5e0919e9a9a99", audio(.g711ALaw, .coded, body: 1)),
        TagVector("Nellymoser 16 kHz", flv, .audio, "4600", audio(.nellymoser16k, .coded, body: 1)),
        TagVector(
            "Opus SequenceStart", spec, .audio, Configurations.opusSequenceStart, audio(.opus, [.enhanced, .sequenceHeader], body: 5)),
        TagVector("Opus SequenceStart, empty", spec, .audio, "90 4f707573", audio(.opus, [.enhanced, .sequenceHeader], body: 5)),
        TagVector("Opus CodedFrames", spec, .audio, "91 4f707573 fcfffe", audio(.opus, [.enhanced, .coded], body: 5)),
        TagVector("Opus SequenceEnd", spec, .audio, "92 4f707573", audio(.opus, [.enhanced, .endOfSequence], body: 5)),
        TagVector("AC-3 CodedFrames", spec, .audio, "91 61632d33 0b77", audio(.ac3, [.enhanced, .coded], body: 5)),
        TagVector(
            "MultichannelConfig, native 5.1", spec, .audio, "94 4f707573 01 06 0000003f",
            audio(.opus, [.enhanced, .channelConfig], body: 5)),
        TagVector(
            "Multitrack OneTrack", spec, .audio, "95 01 6d703461 01 2110", audio(.aac, [.enhanced, .multitrack, .coded], track: 1, body: 7)),
        TagVector(
            "Multitrack ManyTracks SequenceStart", spec, .audio, "95 10 6d703461 02 000002 1210 01 000002 1190",
            audio(.aac, [.enhanced, .multitrack, .sequenceHeader], track: 2, body: 10)),
        TagVector(
            "Multitrack ManyTracksManyCodecs", spec, .audio, "95 21 4f707573 00 000001 fc 6d703461 01 000002 2110",
            audio(.opus, [.enhanced, .multitrack, .coded], body: 10)),
        TagVector(
            "ModEx nanoseconds, SequenceStart", spec, .audio, "97 02 000001 00 6d703461 1210",
            audio(.aac, [.enhanced, .sequenceHeader], nanos: 1, body: 10)),
        TagVector("packet type 3", spec, .audio, "93 4f707573", audio(nil, .enhanced, body: 1)),
    ]

    static let data: [TagVector] = [
        TagVector("empty", flv, .data, "", TagInfo(flags: .notForPlayers)),
        TagVector("onMetaData", ffmpeg, .data, "02000a6f6e4d657461446174610800000008000864757261", TagInfo(flags: .metadata)),
        TagVector(
            "@setDataFrame onMetaData", "ffmpeg 5.1.9 to an RTMP server", .data,
            "02000d40736574446174614672616d65 02000a6f6e4d65746144617461 0800000000000009", TagInfo(flags: .metadata, bodyOffset: 16)),
        TagVector(
            "onMetaData, an empty object", "ActionScript", .data, "02000a6f6e4d65746144617461 03000009", TagInfo(flags: .notForPlayers)),
        TagVector("onCuePoint", flv, .data, "02000a6f6e437565506f696e74 08", TagInfo()),
        TagVector("onTextData", flv, .data, "02000a6f6e5465787444617461 05", TagInfo()),
        TagVector(
            "|RtmpSampleAccess", "Adobe's server", .data, "0200117c52746d7053616d706c65416363657373 0100 0100",
            TagInfo(flags: .notForPlayers)),
        TagVector("onFI", "FMLE", .data, "0200046f6e4649 05", TagInfo(flags: .notForPlayers)),
        TagVector("@clearDataFrame", flv, .data, "02000f40636c656172446174614672616d65", TagInfo(flags: .notForPlayers)),
        TagVector("a name cut short", flv, .data, "02000a6f6e", TagInfo(flags: .notForPlayers)),
        TagVector("no name", flv, .data, "0011", TagInfo(flags: .notForPlayers)),
    ]

    static let all = Self.legacyVideo + Self.enhancedVideo + Self.audioTags + Self.data
}
