import Media

/// Sequence headers of real encoders and the formats they describe. Widths, heights and rates are as ffprobe 5.1.9 shows them.
enum Configurations {
    // ffmpeg 5.1.9, libx264 164, testsrc2, -f flv: the whole first video message.
    static let avc360 = "17000000000142c01effe100196742c01eda0280bfe5c044000003000400000300c83c58ba8001000468ce0fc8"
    static let avc720 = "17000000000142c01fffe100176742c01fda014016ec0440000003004000000c83c60ca801000468ce0fc8"
    static let avc720Baseline30 = "17000000000142c01fffe100196742c01fd9005005bb0110000003001000000303c0f183248001000568cb83cb20"
    static let avc1080 = "17000000000142c028ffe100196742c028da01e0089f97011000000300100000030320f1832a01000468ce0fc8"
    static let avc1080High2997 = "170000000001640028ffe1001967640028acd940780227e5c04400000fa40003a9803c60c65801000668ebe3cb22c0fdf8f800"
    static let avc1080Interlaced =
        "170000000001640028ffe1001a67640028acd94078044fde0220000003002000000643e2c5b2c001000668fba3cb22c0fdf8f800"
    static let avc576Interlaced = "17000000000164001effe100186764001eacd940b424d8088000000300800000190f8a14cb01000668fba3cb22c0fdf8f800"
    static let avcMonochrome = "17000000000164001effe1001b6764001ef3650280bfe27016c80000030008000003019078b16cb001000668ebe3cb22c0fcf8f800"
    static let avc422Ten = "1700000000017a001fffe1001b677a001fb6cd940a42fe227c0440000003004000001903c60c658001000668ebe3cb22c0fefafa00"
    static let avc444 = "170000000001f4000cffe1001a67f4000c919b282a10f1f1f80880000003008000000f078a14cb01000868ebe3c44c000440fff8f800"

    // ffmpeg 5.1.9, libx265 3.5, mp4: the hvcC box without its SEI array.
    static let hvcC360 =
        "0101600000009000000000003ff000fcfdf8f800000f03200001001840010c01ffff01600000030090000003000003003f959809210001002a42010101600000"
        + "030090000003000003003fa00502016965959a4932bc05a0200000030020000003032122000100074401c172b46240"
    static let hvcC1080Main10 =
        "01022000000090000000000078f000fcfdfafa00000f03200001001840010c01ffff022000000300900000030000030078959809210001002c42010102200000"
        + "0300900000030000030078a003c08010e4d96566924caf016808000003000800000300c84022000100074401c172b46240"
    static let hvcC358Cropped =
        "0101600000009000000000003ff000fcfdf8f800000f03200001001840010c01ffff01600000030090000003000003003f959809210001002b42010101600000"
        + "030090000003000003003fa005020169d565959a4932bc05a0200000030020000003032122000100074401c172b46240"
    static let hvcC422SubLayers =
        "0104080000009d08000000003cf000fcfefafa00001303200001001b40010c02ffff0408000003009d0800000300003c00009598acc048210001002f42010204"
        + "08000003009d0800000300003c0000b00a480f9c93b659598acd24995e02d010000003001000000301908022000100074401c172b46240"

    // ffmpeg 5.1.9, SVT-AV1 1.4.1 and libaom, mp4: the av1C box.
    static let av1C360 = "81010c000a0b0000000cc4ff6700be0010"
    static let av1C240 = "81000c000a0b000000043ea7bcdaf90040"

    // ffmpeg 5.1.9, its aac encoder, -f flv: the whole first audio message.
    static let aac44Stereo = "af00121056e500"
    static let aac48Mono = "af00118856e500"

    // RFC 7845 §5.1 with the values ffmpeg 5.1.9 (libopus) puts into a dOps box: 2 channels, pre-skip 312, 48 kHz.
    static let opusSequenceStart = "90 4f707573 4f70757348656164 01 02 3801 80bb0000 0000 00"
    // The first 42 bytes of an ffmpeg 5.1.9 .flac file, after a FourCC.
    static let flacSequenceStart = "90 664c6143 664c614300000022120012000000c70005110bb802f000002580d9b81de011fef694f3e1d33694c8ae61"

    static let video: [(name: String, message: String, expected: VideoFormat)] = [
        (
            "AVC 640×360", avc360,
            VideoFormat(codec: .avc, width: 640, height: 360, frameRate: 25, profile: "Constrained Baseline", level: "3.0")
        ),
        (
            "AVC 1280×720", avc720,
            VideoFormat(codec: .avc, width: 1_280, height: 720, frameRate: 25, profile: "Constrained Baseline", level: "3.1")
        ),
        (
            "AVC 1280×720 baseline", avc720Baseline30,
            VideoFormat(codec: .avc, width: 1_280, height: 720, frameRate: 30, profile: "Constrained Baseline", level: "3.1")
        ),
        (
            "AVC 1920×1080, cropped", avc1080,
            VideoFormat(codec: .avc, width: 1_920, height: 1_080, frameRate: 25, profile: "Constrained Baseline", level: "4.0")
        ),
        (
            "AVC 1920×1080 High 29.97", avc1080High2997,
            VideoFormat(codec: .avc, width: 1_920, height: 1_080, frameRate: 30_000 / 1_001, profile: "High", level: "4.0")
        ),
        (
            "AVC 1080i", avc1080Interlaced,
            VideoFormat(codec: .avc, width: 1_920, height: 1_080, frameRate: 25, profile: "High", level: "4.0")
        ),
        (
            "AVC 576i", avc576Interlaced,
            VideoFormat(codec: .avc, width: 720, height: 576, frameRate: 25, profile: "High", level: "3.0")
        ),
        (
            "AVC monochrome", avcMonochrome,
            VideoFormat(codec: .avc, width: 640, height: 360, frameRate: 25, profile: "High", level: "3.0")
        ),
        (
            "AVC 4:2:2", avc422Ten,
            VideoFormat(codec: .avc, width: 642, height: 362, frameRate: 50, profile: "High 4:2:2", level: "3.1")
        ),
        (
            "AVC 4:4:4", avc444,
            VideoFormat(codec: .avc, width: 322, height: 242, frameRate: 15, profile: "High 4:4:4 Predictive", level: "1.2")
        ),
        ("HEVC 640×360", "90 68766331" + hvcC360, VideoFormat(codec: .hevc, width: 640, height: 360, profile: "Main", level: "2.1")),
        ("HEVC by id 12", "1c 00 000000" + hvcC360, VideoFormat(codec: .hevc, width: 640, height: 360, profile: "Main", level: "2.1")),
        (
            "HEVC 1920×1080 Main 10", "90 68766331" + hvcC1080Main10,
            VideoFormat(codec: .hevc, width: 1_920, height: 1_080, profile: "Main 10", level: "4.0")
        ),
        (
            "HEVC 638×358, cropped", "90 68766331" + hvcC358Cropped,
            VideoFormat(codec: .hevc, width: 638, height: 358, profile: "Main", level: "2.1")
        ),
        (
            "HEVC 4:2:2, two sub-layers", "90 68766331" + hvcC422SubLayers,
            VideoFormat(codec: .hevc, width: 322, height: 242, profile: "Range Extensions", level: "2.0")
        ),
        ("AV1 640×360", "90 61763031" + av1C360, VideoFormat(codec: .av1, width: 640, height: 360, profile: "Main", level: "2.1")),
        ("AV1 426×240", "90 61763031" + av1C240, VideoFormat(codec: .av1, width: 426, height: 240, profile: "Main", level: "2.0")),
        ("AV1 without OBUs", "90 61763031 81010c00", VideoFormat(codec: .av1, profile: "Main", level: "2.1")),
        ("AV1 MPEG2TSSequenceStart", "95 61763031 800481010c00", VideoFormat(codec: .av1)),
        ("VP9", "90 76703039 0100000000", VideoFormat(codec: .vp9)),
        (
            "AV1 in the second byte of OneTrack", "96 00 61763031 04" + av1C360,
            VideoFormat(codec: .av1, width: 640, height: 360, profile: "Main", level: "2.1")
        ),
        (
            "AVC in ManyTracks", "96 10 61766331 00 000028" + String(avc360.dropFirst(10)) + "01 000001 00",
            VideoFormat(codec: .avc, width: 640, height: 360, frameRate: 25, profile: "Constrained Baseline", level: "3.0")
        ),
        ("H.263 frame", "1200008402921e73", VideoFormat(codec: .h263)),
    ]

    // Hand-made vectors follow ISO/IEC 14496-3 §1.6.2.1 bit by bit; mp4 files carry the HE ones too.
    static let audio: [(name: String, message: String, expected: AudioFormat)] = [
        ("AAC 44.1 kHz stereo", aac44Stereo, AudioFormat(codec: .aac, sampleRate: 44_100, channels: 2, profile: "LC")),
        ("AAC 48 kHz mono", aac48Mono, AudioFormat(codec: .aac, sampleRate: 48_000, channels: 1, profile: "LC")),
        ("AAC, two bytes", "af00 1190", AudioFormat(codec: .aac, sampleRate: 48_000, channels: 2, profile: "LC")),
        ("HE-AAC, hierarchical", "af00 2b118800", AudioFormat(codec: .aac, sampleRate: 48_000, channels: 2, profile: "HE")),
        ("HE-AAC v2, hierarchical", "af00 eb098800", AudioFormat(codec: .aac, sampleRate: 48_000, channels: 2, profile: "HEv2")),
        ("HE-AAC, backward compatible", "af00 131056e598", AudioFormat(codec: .aac, sampleRate: 48_000, channels: 2, profile: "HE")),
        (
            "HE-AAC v2, backward compatible", "af00 130856e59d4880",
            AudioFormat(codec: .aac, sampleRate: 48_000, channels: 2, profile: "HEv2")
        ),
        // 00010 1111 (24 bits: 37800) 0010 000
        ("AAC, explicit rate", "af00 178049d410", AudioFormat(codec: .aac, sampleRate: 37_800, channels: 2, profile: "LC")),
        // 11111 000111 (39) 0011 0001 0…
        ("AAC-ELD by escape", "af00 f8e62000", AudioFormat(codec: .aac, sampleRate: 48_000, channels: 1, profile: "ELD")),
        // 00010 0011 0000 000, then a program config element: a single and a pair in front, a pair at the back, one LFE
        (
            "AAC, program config 5.1", "af00 118004c80500010880",
            AudioFormat(codec: .aac, sampleRate: 48_000, channels: 6, profile: "LC")
        ),
        ("AAC raw tells the codec", "af01 2110", AudioFormat(codec: .aac)),
        ("mp4a SequenceStart", "90 6d703461 1210", AudioFormat(codec: .aac, sampleRate: 44_100, channels: 2, profile: "LC")),
        ("Opus", opusSequenceStart, AudioFormat(codec: .opus, sampleRate: 48_000, channels: 2)),
        ("Opus without OpusHead", "90 4f707573", AudioFormat(codec: .opus, sampleRate: 48_000)),
        ("FLAC", flacSequenceStart, AudioFormat(codec: .flac, sampleRate: 48_000, channels: 2)),
        // imageio-ffmpeg's ffmpeg 9.0.2, -c:a flac -f flv: the STREAMINFO block alone.
        (
            "FLAC, bare STREAMINFO", "90 664c6143 04000400000000000815 0ac440f000000000 00000000000000000000000000000000",
            AudioFormat(codec: .flac, sampleRate: 44_100, channels: 1)
        ),
        ("AC-3", "91 61632d33 0b77", AudioFormat(codec: .ac3)),
        ("MP3", "2ffffb9064000002", AudioFormat(codec: .mp3, sampleRate: 44_100, channels: 2)),
        ("MP3 8 kHz", "e2fffb", AudioFormat(codec: .mp3At8k, sampleRate: 8_000, channels: 1)),
        ("PCM 22 kHz mono", "3a0000", AudioFormat(codec: .linearPCM, sampleRate: 22_050, channels: 1)),
        ("Speex", "b630549822d20000", AudioFormat(codec: .speex, sampleRate: 16_000, channels: 1)),
        ("Nellymoser 16 kHz", "4600", AudioFormat(codec: .nellymoser16k, sampleRate: 16_000, channels: 1)),
        ("Nellymoser 8 kHz", "5200", AudioFormat(codec: .nellymoser8k, sampleRate: 8_000, channels: 1)),
        ("Nellymoser 11 kHz", "6600", AudioFormat(codec: .nellymoser, sampleRate: 11_025, channels: 1)),
        ("G.711 A-law", "72d5e0919e9a9a99", AudioFormat(codec: .g711ALaw, sampleRate: 8_000, channels: 1)),
        ("G.711 µ-law", "82ff", AudioFormat(codec: .g711MuLaw, sampleRate: 8_000, channels: 1)),
    ]
}
