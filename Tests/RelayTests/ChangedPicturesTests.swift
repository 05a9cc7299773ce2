import Media
import NIOCore
import Testing

@testable import Relay

/// Parameter sets in the first keyframe after a changed sequence header.
@Suite struct ChangedPicturesTests {
    private static func header(level: UInt8) throws -> Frame {
        // avcC: version, profile, compatibility, level, lengths of 4 bytes, one SPS, one PPS.
        let record: [UInt8] = [1, 0x64, 0, level, 0xFF, 0xE1, 0, 3, 0x67, 0x64, level, 1, 0, 2, 0x68, level]
        return try Frame(kind: .video, timestamp: 0, payload: ByteBuffer(bytes: [0x17, 0, 0, 0, 0] + record))
    }

    private static func picture(_ start: UInt8, _ id: UInt8) throws -> Frame {
        try Frame(kind: .video, timestamp: 0, payload: ByteBuffer(bytes: [start, 1, 0, 0, 7, 0, 0, 0, 2, 0x65, id]))
    }

    /// The coded pictures that the state puts out for `frames`.
    private static func out(_ frames: [Frame]) throws -> [[UInt8]] {
        var state = StreamState()
        var items: [StreamState.Item] = []
        let token = try state.claim(PublisherIdentity("me"), nowMs: 0, items: &items).token
        for frame in frames { state.ingest(frame, token: token, nowMs: 0, items: &items) }
        return items.compactMap { item in
            guard case .frame(let frame) = item, frame.tag.flags.contains(.coded) else { return nil }
            return Array(frame.payload.readableBytesView)
        }
    }

    private static let sets: [UInt8] = [0, 0, 0, 3, 0x67, 0x64, 31, 0, 0, 0, 2, 0x68, 31]

    @Test func theFirstKeyframeAfterAChangeHasThem() throws {
        let frames = [
            try Self.header(level: 30), try Self.picture(0x17, 1), try Self.picture(0x27, 2), try Self.header(level: 31),
            try Self.picture(0x27, 3), try Self.picture(0x17, 4), try Self.picture(0x17, 5),
        ]
        let bytes = try Self.out(frames)
        let coded = frames.filter { $0.tag.flags.contains(.coded) }.map { Array($0.payload.readableBytesView) }
        #expect(bytes.count == 5)
        #expect([0, 1, 2, 4].allSatisfy { bytes[$0] == coded[$0] }, "all others as they came")
        #expect(bytes[3] == coded[3][..<5] + Self.sets + coded[3][5...])
    }

    @Test func aRepeatedHeaderChangesNothing() throws {
        let frames = [try Self.header(level: 31), try Self.picture(0x17, 1), try Self.header(level: 31), try Self.picture(0x17, 2)]
        #expect(try Self.out(frames) == frames.filter { $0.tag.flags.contains(.coded) }.map { Array($0.payload.readableBytesView) })
    }

    /// An unreadable header: the pictures after it are relayed as they came.
    @Test func rubbishIsRelayed() throws {
        let rubbish = try Frame(kind: .video, timestamp: 0, payload: ByteBuffer(bytes: [0x17, 0, 0, 0, 0, 1, 2, 3]))
        let frames = [try Self.header(level: 31), rubbish, try Self.picture(0x17, 1)]
        #expect(try Self.out(frames) == [Array(frames[2].payload.readableBytesView)])
    }

    /// Builds an Enhanced RTMP header or keyframe. A `track` makes it one of several in a multitrack message.
    private static func enhanced(_ packetType: UInt8, track: UInt8?, _ body: [UInt8]) throws -> Frame {
        // Ex header: keyframe and packet type, or Multitrack; then OneTrack and the packet type.
        let start: [UInt8] = track == nil ? [0x90 | packetType] : [0x96, packetType]
        return try Frame(
            kind: .video, timestamp: 0, payload: ByteBuffer(bytes: start + Array("avc1".utf8) + (track.map { [$0] } ?? []) + body))
    }

    private static func completed(_ headers: [Frame], _ keyframe: Frame) -> Frame {
        var pictures = ChangedPictures()
        for header in headers { pictures.headerCame(header) }
        var keyframe = keyframe
        pictures.complete(&keyframe)
        return keyframe
    }

    /// Only the single track of a plain message counts: players show no other.
    @Test func otherTracksAndSoundChangeNothing() throws {
        let record = Array(try Self.header(level: 31).payload.readableBytesView.dropFirst(5))
        let plain = try Self.header(level: 30)
        let keyframe = try Self.picture(0x17, 1)
        let coded: [UInt8] = [0, 0, 0, 2, 0x65, 1]
        let sound = try Frame(kind: .audio, timestamp: 0, payload: ByteBuffer(bytes: [0xAF, 0, 0x12, 0x10]))
        let track = try Self.enhanced(0, track: 0, record)
        let second = try Self.enhanced(0, track: 1, record)

        #expect(Self.completed([plain, try Self.enhanced(0, track: nil, record)], keyframe).payload != keyframe.payload)
        for others in [
            [plain], [plain, track], [plain, second], [plain, sound], [sound, plain], [track, plain], [second, plain], [plain, keyframe],
        ] {
            #expect(Self.completed(others, keyframe).payload == keyframe.payload, "\(others)")
        }
        for other in [try Self.enhanced(3, track: 0, coded), try Self.enhanced(3, track: 1, coded)] {
            #expect(Self.completed([plain, try Self.header(level: 31)], other).payload == other.payload)
        }
    }

    /// The parameter sets go behind the header of an enhanced keyframe.
    @Test func anEnhancedKeyframeHasThemBehindItsHeader() throws {
        let keyframe = try Self.enhanced(3, track: nil, [0, 0, 0, 2, 0x65, 1])
        let completed = Self.completed([try Self.header(level: 30), try Self.header(level: 31)], keyframe)
        let bytes = Array(keyframe.payload.readableBytesView)
        #expect(Array(completed.payload.readableBytesView) == bytes[..<5] + Self.sets + bytes[5...])
    }
}
