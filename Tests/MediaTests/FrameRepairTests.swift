import NIOCore
import Testing

@testable import Media

/// Frames as cameras send them wrongly, and what becomes of them. Frames that are right stay as they are.
@Suite struct FrameRepairTests {
    /// The units of H.264: header byte, then something.
    private enum Unit {
        // libx264 164, as in ``Configurations/avc360``.
        static let sps = Array(hex("6742c01eda0280bfe5c044000003000400000300c83c58ba80").readableBytesView)
        static let pps = Array(hex("68ce0fc8").readableBytesView)
        static let idr: [UInt8] = [0x65, 0x88, 0x84, 0x12, 0x34, 0x56, 0x78]
        /// first_mb_in_slice 0, slice_type 5 (P): 1 00110 …
        static let inter: [UInt8] = [0x41, 0x9A, 0x24, 0x6C, 0x41, 0x4F]
        /// slice_type 7 (I): 1 0001000 …
        static let intra: [UInt8] = [0x41, 0x88, 0x24, 0x6C, 0x41, 0x4F]
        static let delimiter: [UInt8] = [0x09, 0xF0]
        /// Supplemental information of payload type 6, one byte.
        static let recoveryPoint: [UInt8] = [0x06, 0x06, 0x01, 0xC4, 0x80]
        static let other: [UInt8] = [0x06, 0x05, 0x02, 0xAA, 0xBB, 0x80]
    }

    private var repair = FrameRepair()

    private static func picture(_ body: [UInt8], isFlagged: Bool, at timestamp: Int64 = 40) throws -> Frame {
        let head: [UInt8] = [isFlagged ? 0x17 : 0x27, 1, 0, 0, 0]
        return try Frame(kind: .video, timestamp: timestamp, payload: ByteBuffer(bytes: head + body))
    }

    private static func lengths(_ units: [[UInt8]]) -> [UInt8] { units.flatMap { [0, 0, 0, UInt8($0.count)] + $0 } }
    private static func codes(_ units: [[UInt8]], long: Bool = true) -> [UInt8] {
        units.flatMap { unit -> [UInt8] in (long ? [0] : []) + [0, 0, 1] + unit }
    }

    /// The body that goes out, and the headers before it.
    private mutating func examine(_ frame: Frame) throws -> (frame: Frame, before: Frame?)? {
        var frame = frame
        switch self.repair.examine(&frame) {
        case .relay: return (frame, nil)
        case .drop: return nil
        case .precede(let header): return (frame, header)
        }
    }

    private mutating func body(_ body: [UInt8], isFlagged: Bool = true) throws -> [UInt8] {
        let taken = try #require(try self.examine(try Self.picture(body, isFlagged: isFlagged)))
        #expect(taken.frame.tag == (try TagInfo.parseVideo(taken.frame.payload)), "tag and bytes agree")
        return Array(taken.frame.payload.readableBytesView.dropFirst(5))
    }

    private mutating func sendHeader() throws {
        let header = try Frame(kind: .video, timestamp: 0, payload: hex(Configurations.avc360))
        let taken = try #require(try self.examine(header))
        #expect(taken.frame.payload == header.payload && taken.before == nil)
    }

    // MARK: Framing

    @Test(arguments: [true, false]) mutating func startCodesBecomeLengths(_ isLong: Bool) throws {
        try self.sendHeader()
        for (units, isFlagged) in [
            ([Unit.delimiter, Unit.sps, Unit.pps, Unit.idr], true), ([Unit.inter], false), ([Unit.delimiter, Unit.inter], false),
        ] {
            #expect(try self.body(Self.codes(units, long: isLong), isFlagged: isFlagged) == Self.lengths(units))
        }
        let flaws = self.repair.popFlaws().video
        #expect(flaws.reframed == 3 && flaws.broken == 0 && flaws.headless == 0 && flaws.reflagged == 0)
        #expect(self.repair.popFlaws().video == FrameFlaws(), "counted once")
    }

    /// Zero bytes behind a unit are padding.
    @Test mutating func paddingBetweenUnits() throws {
        try self.sendHeader()
        let body: [UInt8] = [0, 0, 0, 1] + Unit.idr + [0, 0, 0, 0, 0, 1] + Unit.inter + [0, 0]
        #expect(try self.body(body) == Self.lengths([Unit.idr, Unit.inter]))
    }

    /// A length of 1 looks like a start code of four bytes, a length of 256 to 511 like one of three.
    @Test mutating func lengthsThatLookLikeStartCodes() throws {
        try self.sendHeader()
        let short = Self.lengths([[0x0C], Unit.inter])
        #expect(try self.body(short, isFlagged: false) == short)
        let filler = [UInt8](repeating: 0x55, count: 0x141 - Unit.inter.count)
        let long: [UInt8] = [0, 0, 1, 0x41] + Unit.inter + filler
        #expect(try self.body(long, isFlagged: false) == long)
        #expect(self.repair.popFlaws().video == FrameFlaws())
        // Behind a picture with start codes the same bytes are one.
        _ = try self.body(Self.codes([Unit.idr], long: false))
        let converted: [UInt8] = [0, 0, 1, 0x42] + long.dropFirst(3)
        #expect(try self.body(long, isFlagged: false) == converted)
    }

    @Test(arguments: 1...3) mutating func strayBytesAreCutOff(_ count: Int) throws {
        try self.sendHeader()
        let whole = Self.lengths([Unit.delimiter, Unit.idr])
        #expect(try self.body(whole + [UInt8](repeating: 0, count: count)) == whole)
        let short = Self.lengths([[0x0C], Unit.inter])
        #expect(try self.body(short + [0xFF], isFlagged: false) == short, "a length of 1 at the beginning is no start code")
        #expect(self.repair.popFlaws().video.trimmed == 2)
    }

    /// A stray byte between two units hides the second: nobody can say where it begins.
    @Test mutating func whatIsNotCertainIsLeftOut() throws {
        try self.sendHeader()
        for body in [
            Self.lengths([Unit.delimiter]) + [0xFF] + Self.lengths([Unit.idr]), [0, 0, 0, 200] + Unit.idr, [9, 9, 9, 9, 9, 9, 9], [9, 9],
        ] {
            let taken = try #require(try self.examine(try Self.picture(body, isFlagged: true)))
            #expect(Array(taken.frame.payload.readableBytesView.dropFirst(5)) == body, "relayed as it came")
            #expect(taken.frame.tag.flags.contains(.unusable))
        }
        #expect(self.repair.popFlaws().video.broken == 4)
        // Those that depend on a broken keyframe are left out with it, up to the next one.
        for (units, isKey, isLeftOut) in [([Unit.inter], false, true), ([Unit.idr], true, false), ([Unit.inter], false, false)] {
            let taken = try #require(try self.examine(try Self.picture(Self.lengths(units), isFlagged: isKey)))
            #expect(taken.frame.tag.flags.contains(.unusable) == isLeftOut)
        }
        #expect(self.repair.popFlaws().video.broken == 1)
    }

    /// A length of 256 to 511 is no start code where the walk only fails later; start codes that are known to be some are.
    @Test mutating func brokenLengthsAreNoStartCodes() throws {
        try self.sendHeader()
        let filler = [UInt8](repeating: 0x55, count: 0x141 - Unit.inter.count)
        let body: [UInt8] = [0, 0, 1, 0x41] + Unit.inter + filler + [0xFF] + Self.lengths([Unit.inter])
        let taken = try #require(try self.examine(try Self.picture(body, isFlagged: false)))
        #expect(taken.frame.tag.flags.contains(.unusable))
        let flaws = self.repair.popFlaws().video
        #expect(flaws.broken == 1 && flaws.reframed == 0)
        for units in [[Unit.inter + filler], [Unit.sps, Unit.pps, Unit.idr + filler], [Unit.delimiter, Unit.other, Unit.inter + filler]] {
            var another = self
            let converted: [UInt8] = units.flatMap { unit -> [UInt8] in [0, 0, UInt8(unit.count >> 8), UInt8(unit.count & 255)] + unit }
            #expect(try another.body(Self.codes(units, long: false), isFlagged: units.count == 3 && units[0] == Unit.sps) == converted)
        }
    }

    /// The record says how long lengths are.
    @Test(arguments: [1, 2]) mutating func shorterLengths(_ size: Int) throws {
        var record = Array(hex(Configurations.avc360).readableBytesView)
        record[9] = 0xFC | UInt8(size - 1)
        _ = try self.examine(try Frame(kind: .video, timestamp: 0, payload: ByteBuffer(bytes: record)))
        func lengths(_ units: [[UInt8]]) -> [UInt8] {
            units.flatMap { unit -> [UInt8] in (size == 2 ? [0] : []) + [UInt8(unit.count)] + unit }
        }
        #expect(try self.body(lengths([Unit.delimiter, Unit.idr])) == lengths([Unit.delimiter, Unit.idr]))
        #expect(try self.body(Self.codes([Unit.idr])) == lengths([Unit.idr]))
        #expect(self.repair.popFlaws().video.reframed == 1)
    }

    // MARK: Sequence headers

    /// Parameter sets in the stream make the header that is missing; once, and again when they change.
    @Test(arguments: [true, false]) mutating func missingHeaderIsMade(_ hasCodes: Bool) throws {
        let form = { (units: [[UInt8]]) in hasCodes ? Self.codes(units) : Self.lengths(units) }
        // Nothing can be done before the sets come.
        let early = try #require(try self.examine(try Self.picture(form([Unit.inter]), isFlagged: false)))
        #expect(early.frame.tag.flags.contains(.unusable) && early.before == nil)
        let key = form([Unit.sps, Unit.pps, Unit.idr])
        let first = try #require(try self.examine(try Self.picture(key, isFlagged: true)))
        let header = try #require(first.before)
        #expect(header.isSequenceHeader && header.timestamp == 40)
        #expect(header.payload == hex(Configurations.avc360), "what the encoder's own header would have been")
        #expect(!first.frame.tag.flags.contains(.unusable))
        #expect(try #require(try self.examine(try Self.picture(key, isFlagged: true))).before == nil)
        let other = Array(hex("6742c01fda014016ec0440000003004000000c83c60ca8").readableBytesView)
        let changed = try #require(try self.examine(try Self.picture(form([other, Unit.pps, Unit.idr]), isFlagged: true)))
        #expect(try VideoFormat.from(sequenceHeader: try #require(changed.before).payload).width == 1_280)
        let flaws = self.repair.popFlaws().video
        #expect(flaws.headersMade == 2 && flaws.headless == 1)
    }

    /// The High profiles' record ends with chroma format and bit depths.
    @Test(arguments: [Configurations.avc1080High2997, Configurations.avcMonochrome, Configurations.avc422Ten]) mutating func highProfiles(
        _ message: String
    ) throws {
        var payload = hex(message)
        payload.moveReaderIndex(forwardBy: 5)
        let record = try AVCConfiguration(payload)
        let made = AVCConfiguration.record(of: record.sequenceParameterSets + record.pictureParameterSets)
        #expect(made == payload)
    }

    @Test(arguments: [
        Configurations.hvcC360, Configurations.hvcC1080Main10, Configurations.hvcC358Cropped, Configurations.hvcC422SubLayers,
    ])
    func recordsOfHEVC(_ text: String) throws {
        let record = try HEVCConfiguration(hex(text))
        let units = record.videoParameterSets + record.sequenceParameterSets + record.pictureParameterSets
        let made = try HEVCConfiguration(try #require(HEVCConfiguration.record(of: units)))
        #expect(made.sequenceParameterSets == record.sequenceParameterSets && made.pictureParameterSets == record.pictureParameterSets)
        #expect(made.videoParameterSets == record.videoParameterSets && made.nalLengthSize == 4)
        #expect(made.profile == record.profile && made.level == record.level && made.isHighTier == record.isHighTier)
        // Profile, tier, level, chroma format and bit depths as the encoder wrote them.
        let (ours, theirs) = (try #require(HEVCConfiguration.record(of: units)), hex(text))
        for index in Array(1...12) + Array(16...18) {
            #expect(ours.getInteger(at: index, as: UInt8.self) == theirs.getInteger(at: index, as: UInt8.self), "byte \(index)")
        }
    }

    /// A header of start codes is none for FLV's players.
    @Test mutating func headerWithStartCodes() throws {
        let payload = ByteBuffer(bytes: [0x17, 0, 0, 0, 0] + Self.codes([Unit.sps, Unit.pps]))
        let taken = try #require(try self.examine(try Frame(kind: .video, timestamp: 0, payload: payload)))
        #expect(taken.frame.payload == hex(Configurations.avc360))
        #expect(try self.body(Self.codes([Unit.idr])) == Self.lengths([Unit.idr]))
        #expect(self.repair.popFlaws().video.headless == 0)
    }

    @Test mutating func recordsWithoutContentAreNone() throws {
        try self.sendHeader()
        for (kind, bytes) in [(.video, [0x17, 0, 0, 0, 0]), (.audio, [0xAF, 0]), (.video, [0x90] + Array("hvc1".utf8))]
            as [(Frame.Kind, [UInt8])]
        {
            #expect(try self.examine(try Frame(kind: kind, timestamp: 0, payload: ByteBuffer(bytes: bytes))) == nil)
        }
        _ = try self.body(Self.lengths([Unit.idr]))
        #expect(self.repair.popFlaws().video == FrameFlaws(), "the true header counts on")
    }

    // MARK: Keyframes

    /// The picture, its flag, and whether decoding can start there.
    private static let starts: [(String, [[UInt8]], Bool, Bool)] = [
        ("IDR as inter", [Unit.idr], false, true), ("IDR behind others", [Unit.delimiter, Unit.other, Unit.idr], false, true),
        ("inter as key", [Unit.inter], true, false), ("inter as key, with other information", [Unit.other, Unit.inter], true, false),
        ("open group of pictures", [Unit.recoveryPoint, Unit.inter], true, true), ("intra slice", [Unit.intra], true, true),
        ("intra slice, not flagged", [Unit.intra], false, false), ("right key", [Unit.idr], true, true),
        ("right inter", [Unit.inter], false, false),
    ]

    @Test(arguments: Self.starts.indices) mutating func flagsFollowTheUnits(_ index: Int) throws {
        let (name, units, isFlagged, isStart) = Self.starts[index]
        try self.sendHeader()
        let sent = try Self.picture(Self.lengths(units), isFlagged: isFlagged)
        let taken = try #require(try self.examine(sent)).frame
        #expect(taken.isKeyframe == isStart, "\(name)")
        #expect(taken.payload.getInteger(at: 0, as: UInt8.self) == (isStart ? 0x17 : 0x27), "\(name)")
        #expect(taken.tag == (try TagInfo.parseVideo(taken.payload)), "\(name)")
        #expect(taken.payload.readableBytesView.dropFirst() == sent.payload.readableBytesView.dropFirst(), "\(name)")
        #expect(self.repair.popFlaws().video.reflagged == (isFlagged == isStart ? 0 : 1), "\(name)")
    }

    /// HEVC by Enhanced RTMP: IDR_W_RADL is type 19, TRAIL_R type 1.
    @Test(
        arguments: [(19, false, true), (19, true, true), (1, true, false), (1, false, false), (21, false, true)] as [(UInt8, Bool, Bool)])
    mutating func flagsOfHEVC(_ type: UInt8, _ isFlagged: Bool, _ isStart: Bool) throws {
        let header = ByteBuffer(bytes: [0x90] + Array("hvc1".utf8) + Array(hex(Configurations.hvcC360).readableBytesView))
        _ = try self.examine(try Frame(kind: .video, timestamp: 0, payload: header))
        // CodedFramesX, without a composition time.
        let head: [UInt8] = [isFlagged ? 0x93 : 0xA3] + Array("hvc1".utf8)
        let sent = try Frame(kind: .video, timestamp: 0, payload: ByteBuffer(bytes: head + Self.lengths([[type << 1, 1, 0x80, 0x40]])))
        let taken = try #require(try self.examine(sent)).frame
        #expect(taken.isKeyframe == isStart)
        #expect(taken.payload.getInteger(at: 0, as: UInt8.self) == (isStart ? 0x93 : 0xA3))
    }

    // MARK: Sound

    private static let block: [UInt8] = [0x21, 0x10, 0x04, 0x60, 0x8C, 0x1C]

    /// 44,100 Hz, stereo, LC, with this length instead of the true one.
    private static func adts(_ block: [UInt8], length: Int? = nil, hasChecksum: Bool = false, blocks: UInt8 = 1) -> [UInt8] {
        let length = length ?? block.count + (hasChecksum ? 9 : 7)
        return [
            0xFF, hasChecksum ? 0xF0 : 0xF1, 0x50, 0x80 | UInt8(length >> 11), UInt8(length >> 3 & 0xFF), UInt8(length & 7) << 5 | 0x1F,
            0xFC | (blocks - 1),
        ] + (hasChecksum ? [0x12, 0x34] : []) + block
    }

    private static func sound(_ body: [UInt8]) throws -> Frame {
        try Frame(kind: .audio, timestamp: 20, payload: ByteBuffer(bytes: [0xAF, 1] + body))
    }

    @Test(arguments: [true, false], [true, false]) mutating func headersOfADTSAreTakenOff(_ hasChecksum: Bool, _ hasHeader: Bool) throws {
        if hasHeader { _ = try self.examine(try Frame(kind: .audio, timestamp: 0, payload: hex(Configurations.aac44Stereo))) }
        let sent = try Self.sound(Self.adts(Self.block, hasChecksum: hasChecksum))
        for round in 0..<3 {
            let taken = try #require(try self.examine(sent))
            #expect(Array(taken.frame.payload.readableBytesView) == [0xAF, 1] + Self.block)
            // AAC-LC, 44,100 Hz, two channels: ISO/IEC 14496-3 §1.6.2.1.
            #expect(taken.before?.payload == (hasHeader || round > 0 ? nil : ByteBuffer(bytes: [0xAF, 0, 0x12, 0x10])))
            #expect(!taken.frame.tag.flags.contains(.unusable))
        }
        let flaws = self.repair.popFlaws().audio
        #expect(flaws.reframed == 3 && flaws.headersMade == (hasHeader ? 0 : 1) && flaws.broken == 0 && flaws.headless == 0)
    }

    /// The sequence header itself may be one of ADTS.
    @Test mutating func headerOfADTS() throws {
        let payload = ByteBuffer(bytes: [0xAF, 0] + Self.adts([]))
        let taken = try #require(try self.examine(try Frame(kind: .audio, timestamp: 0, payload: payload)))
        #expect(Array(taken.frame.payload.readableBytesView) == [0xAF, 0, 0x12, 0x10])
    }

    @Test mutating func soundThatIsNotCertain() throws {
        _ = try self.examine(try Frame(kind: .audio, timestamp: 0, payload: hex(Configurations.aac44Stereo)))
        for body in [
            Self.adts(Self.block, length: 99), Self.adts(Self.block, blocks: 2), Self.adts(Self.block) + Self.adts(Self.block),
            [0xFF, 0xF1],
        ] {
            let sent = try Self.sound(body)
            let taken = try #require(try self.examine(sent)).frame
            #expect(taken.payload == sent.payload && taken.tag.flags.contains(.unusable))
        }
        #expect(self.repair.popFlaws().audio.broken == 4)
    }

    @Test mutating func soundWithoutAHeader() throws {
        let taken = try #require(try self.examine(try Self.sound(Self.block))).frame
        #expect(taken.tag.flags.contains(.unusable))
        #expect(self.repair.popFlaws().audio.headless == 1)
    }

    // MARK: The rest

    /// Other codecs, several tracks, commands and data pass unseen.
    @Test mutating func whatItDoesNotKnow() throws {
        let payloads: [(Frame.Kind, [UInt8])] = [
            (.video, [0x12, 1, 2, 3]), (.video, [0x57, 0]), (.audio, [0x2E, 0xFF, 0xFB]), (.data, [2, 0, 1, 0x41]), (.video, []),
            (.audio, []),
            (.video, [0x96, 0x01] + Array("avc1".utf8) + [0, 0, 0, 0, 0xFF, 0xFF]), (.video, [0x17, 2, 0, 0, 0]),
        ]
        for (kind, bytes) in payloads {
            let sent = try Frame(kind: kind, timestamp: 0, payload: ByteBuffer(bytes: bytes))
            let taken = try #require(try self.examine(sent))
            #expect(taken.frame.payload == sent.payload && taken.frame.tag == sent.tag && taken.before == nil)
        }
    }

    /// A frame in the middle of a read buffer is changed in a copy of its own.
    @Test mutating func neighboursStayAsTheyAre() throws {
        try self.sendHeader()
        let picture = try Self.picture(Self.lengths([Unit.idr]), isFlagged: false).payload
        var buffer = ByteBuffer()
        for _ in 0..<3 { buffer.writeImmutableBuffer(picture) }
        let before = buffer
        let slice = try #require(buffer.getSlice(at: picture.readableBytes, length: picture.readableBytes))
        let taken = try #require(try self.examine(try Frame(kind: .video, timestamp: 0, payload: slice))).frame
        #expect(taken.isKeyframe && buffer == before && slice == picture)
    }

    /// Every picture cut short anywhere, and every byte replaced: nothing traps, and what is not flagged walks evenly.
    @Test mutating func damagedFrames() throws {
        try self.sendHeader()
        for whole in [
            Self.lengths([Unit.delimiter, Unit.idr]), Self.codes([Unit.sps, Unit.pps, Unit.idr], long: false), Self.adts(Self.block),
        ] {
            for index in whole.indices {
                for value in [0, 1, 0x7F, 0x80, 0xFF] as [UInt8] {
                    var damaged = whole
                    damaged[index] = value
                    for bytes in [damaged, Array(damaged[..<index])] where !bytes.isEmpty {
                        _ = try self.examine(try Self.picture(bytes, isFlagged: index % 2 == 0))
                        _ = try self.examine(try Self.sound(bytes))
                        _ = try self.examine(try Frame(kind: .video, timestamp: 0, payload: ByteBuffer(bytes: [0x1C, 1, 0, 0, 0] + bytes)))
                    }
                }
            }
        }
    }
}
