import Media
import NIOCore
import Testing

@Suite struct TagTests {
    @Test(arguments: Vectors.all) func header(_ vector: TagVector) throws {
        #expect(try TagInfo.parse(vector.kind, vector.payload) == vector.expected)
    }

    /// Parsing starts at the payload's own start, even in the middle of a read buffer.
    @Test(arguments: Vectors.all) func headerOfSlice(_ vector: TagVector) throws {
        var buffer = ByteBuffer(repeating: 0x17, count: 7)
        buffer.writeImmutableBuffer(vector.payload)
        buffer.writeInteger(UInt64.max)
        let slice = try #require(buffer.getSlice(at: 7, length: vector.payload.readableBytes))
        #expect(try TagInfo.parse(vector.kind, slice) == vector.expected)
    }

    static let broken: [(kind: Frame.Kind, message: String, error: MediaError)] = [
        (.video, "17", .truncated(field: "AVC packet type", needed: 1, available: 0)),
        (.video, "17010000", .truncated(field: "composition time", needed: 3, available: 2)),
        (.video, "57", .truncated(field: "video command", needed: 1, available: 0)),
        (.video, "d1", .truncated(field: "video command", needed: 1, available: 0)),
        (.video, "90687663", .truncated(field: "FourCC", needed: 4, available: 3)),
        (.video, "91 68766331 0000", .truncated(field: "composition time", needed: 3, available: 2)),
        (.video, "97", .truncated(field: "ModEx size", needed: 1, available: 0)),
        (.video, "97 ff 01", .truncated(field: "ModEx size (16 bits)", needed: 2, available: 1)),
        (.video, "97 02 000000", .truncated(field: "ModEx data and next packet type", needed: 4, available: 3)),
        (.video, "97 01 0000 01 61766331", .truncated(field: "TimestampOffsetNano", needed: 3, available: 2)),
        (.video, "97 02 0f4240 01 61766331", .invalid(field: "TimestampOffsetNano", found: 1_000_000, expected: "0…999999")),
        (
            .video, "97" + String(repeating: "0000 17", count: 17) + "01",
            .overLimit(field: "ModEx packets", found: 17, max: 16)
        ),
        (.video, "96", .truncated(field: "multitrack type", needed: 1, available: 0)),
        (.video, "96 06", .invalid(field: "packet type inside Multitrack", found: 6, expected: "anything but Multitrack")),
        (.video, "96 01 61766331", .truncated(field: "track id", needed: 1, available: 0)),
        (.video, "96 11 61766331 00 0000", .truncated(field: "size of track", needed: 3, available: 2)),
        (.video, "96 11 61766331 09 000002 00", .truncated(field: "body of track 9", needed: 2, available: 1)),
        (.video, "96 11 61766331 00 000002 0000 01", .truncated(field: "composition time", needed: 3, available: 2)),
        (.video, "96 21 617663", .truncated(field: "FourCC", needed: 4, available: 3)),
        (.audio, "af", .truncated(field: "AAC packet type", needed: 1, available: 0)),
        (.audio, "91", .truncated(field: "FourCC", needed: 4, available: 0)),
        (.audio, "95 05", .invalid(field: "packet type inside Multitrack", found: 5, expected: "anything but Multitrack")),
    ]

    @Test(arguments: broken.indices) func brokenHeader(_ index: Int) {
        let (kind, message, error) = Self.broken[index]
        #expect(throws: error) { try TagInfo.parse(kind, hex(message)) }
    }

    @Test func frame() throws {
        let key = try Frame(kind: .video, timestamp: 1_000, payload: hex("1701000043000002ae06"))
        #expect(key.isKeyframe && !key.isSequenceHeader && key.presentationTimestamp == 1_067)
        let header = try Frame(kind: .video, timestamp: 0, payload: hex(Configurations.avc360))
        #expect(!header.isKeyframe && header.isSequenceHeader)
    }

    /// The cache copies ``TagInfo`` into every ring slot and reads it on every loop: it is small and holds no references.
    @Test func tagInfoIsTrivial() {
        #expect(_isPOD(TagInfo.self))
        #expect(MemoryLayout<TagInfo>.size <= 32)
    }

    @Test func errorsNameWhatWasWrong() {
        #expect("\(MediaError.truncated(field: "FourCC", needed: 4, available: 3))" == "FourCC is cut short: 4 needed, 3 available")
        #expect("\(MediaError.invalid(field: "a", found: 3, expected: "4"))" == "a is 3, expected 4")
        #expect("\(MediaError.overLimit(field: "a", found: 9, max: 4))" == "a is 9, at most 4 accepted")
        #expect("\(MediaError.mismatch(expected: "a", found: "b"))" == "expected a, found b")
    }
}

@Suite struct CodecTests {
    static let video: [(VideoCodec, FourCC?, UInt8?, String)] = [
        (.h263, nil, 2, "H263"), (.screen, nil, 3, "Screen"), (.vp6, nil, 4, "VP6"), (.vp6Alpha, nil, 5, "VP6A"),
        (.screen2, nil, 6, "Screen2"), (.avc, "avc1", 7, "H264"), (.hevc, "hvc1", 12, "HEVC"), (.av1, "av01", 13, "AV1"),
        (.vp8, "vp08", nil, "VP8"), (.vp9, "vp09", nil, "VP9"), (.vvc, "vvc1", nil, "VVC"), (.unknown(9), nil, 9, "video-9"),
        (.other("abcd"), "abcd", nil, "abcd"),
    ]
    static let audio: [(AudioCodec, FourCC?, UInt8?, String)] = [
        (.linearPCMPlatform, nil, 0, "PCM"), (.adpcm, nil, 1, "ADPCM"), (.mp3, ".mp3", 2, "MP3"), (.linearPCM, nil, 3, "PCM"),
        (.nellymoser16k, nil, 4, "Nellymoser"), (.nellymoser8k, nil, 5, "Nellymoser"), (.nellymoser, nil, 6, "Nellymoser"),
        (.g711ALaw, nil, 7, "G711A"), (.g711MuLaw, nil, 8, "G711U"), (.aac, "mp4a", 10, "AAC"), (.speex, nil, 11, "Speex"),
        (.deviceSpecific, nil, 15, "device"), (.opus, "Opus", nil, "Opus"), (.flac, "fLaC", nil, "FLAC"), (.ac3, "ac-3", nil, "AC3"),
        (.eac3, "ec-3", nil, "EAC3"), (.unknown(12), nil, 12, "audio-12"), (.other("abcd"), "abcd", nil, "abcd"),
    ]

    @Test(arguments: video.indices) func videoCodec(_ index: Int) {
        let (codec, fourCC, legacyID, name) = Self.video[index]
        #expect(codec.fourCC == fourCC && codec.name == name)
        if let fourCC { #expect(VideoCodec(fourCC: fourCC) == codec) }
        if let legacyID { #expect(VideoCodec(legacyID: legacyID) == codec) }
    }

    @Test(arguments: audio.indices) func audioCodec(_ index: Int) {
        let (codec, fourCC, legacyID, name) = Self.audio[index]
        #expect(codec.fourCC == fourCC && codec.name == name)
        if let fourCC { #expect(AudioCodec(fourCC: fourCC) == codec) }
        if let legacyID { #expect(AudioCodec(legacyID: legacyID) == codec) }
    }

    @Test func fourCC() {
        let literal: FourCC = "hvc1"
        #expect(literal.rawValue == 0x6876_6331 && literal.description == "hvc1")
        #expect(FourCC(rawValue: 1).description == "0x1")
    }
}

@Suite struct TimestampTests {
    static let runs: [(wire: [UInt32], unwrapped: [Int64])] = [
        ([0, 40, 80], [0, 40, 80]),
        ([5_000, 4_990, 5_040], [5_000, 4_990, 5_040]),
        ([0xFFFF_FFF0, 0x10, 0x40], [0xFFFF_FFF0, 0x1_0000_0010, 0x1_0000_0040]),
        ([0xFFFF_FFF0, 0x10, 0xFFFF_FFF8, 0x20], [0xFFFF_FFF0, 0x1_0000_0010, 0xFFFF_FFF8, 0x1_0000_0020]),
        ([0x7FFF_FFFF, 0x8000_0000], [0x7FFF_FFFF, 0x8000_0000]),
        ([0, 0x7FFF_FFFF, 0xFFFF_FFFE, 0x7FFF_FFFD], [0, 0x7FFF_FFFF, 0xFFFF_FFFE, 0x1_7FFF_FFFD]),
        ([10, 0xFFFF_FFFA], [10, -6]),
        ([0, 0x8000_0000], [0, -0x8000_0000]),
    ]

    @Test(arguments: runs.indices) func unwrap(_ index: Int) {
        let (wire, unwrapped) = Self.runs[index]
        var unwrapper = TimestampUnwrapper()
        #expect(wire.map { unwrapper.unwrap($0) } == unwrapped)
        #expect(unwrapper.last == unwrapped.last)
        #expect(unwrapped.map(TimestampUnwrapper.wrap) == wire)
    }

    /// `peek` unwraps the time of a header in mid-stream without changing the state.
    @Test func peek() {
        var unwrapper = TimestampUnwrapper()
        #expect(unwrapper.peek(7) == 7 && unwrapper.last == nil)
        _ = unwrapper.unwrap(0x7FFF_FFF0)
        #expect(unwrapper.peek(0) == 0 && unwrapper.unwrap(0x8000_0010) == 0x8000_0010)
    }

    /// Players receive metadata and untimed data at 0, and everything else with its own time.
    @Test func wireTimestamp() throws {
        let metadata = ByteBuffer(bytes: [2, 0, 10] + Array("onMetaData".utf8) + [8, 0, 0, 0, 0, 0, 0, 9])
        let text = ByteBuffer(bytes: [2, 0, 10] + Array("onTextData".utf8) + [5])
        #expect(try Frame(kind: .data, timestamp: 0x1_0000_0007, payload: metadata).wireTimestamp == 0)
        var data = try Frame(kind: .data, timestamp: 0x1_0000_0007, payload: text)
        #expect(data.wireTimestamp == 7)
        data.tag.flags.insert(.untimed)
        #expect(data.wireTimestamp == 0)
        // A video Metadata packet (HDR) is not script data.
        let colours = Frame(kind: .video, timestamp: 7, payload: ByteBuffer(), tag: TagInfo(flags: .metadata))
        #expect(colours.wireTimestamp == 7)
    }

    /// 200 days in steps of an hour: four wraps.
    @Test func longRun() {
        var unwrapper = TimestampUnwrapper()
        for hour in 0..<Int64(200 * 24) {
            let time = hour * 3_600_000
            #expect(unwrapper.unwrap(UInt32(truncatingIfNeeded: time)) == time)
        }
    }
}
