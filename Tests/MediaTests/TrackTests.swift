import Media
import NIOCore
import Testing

@Suite struct TrackTests {
    struct Seen: Equatable {
        var id: UInt8
        var fourCC: FourCC?
        var body: String

        init(_ id: UInt8, _ fourCC: FourCC?, _ body: String) {
            self.id = id
            self.fourCC = fourCC
            self.body = body
        }
    }

    static let messages: [(kind: Frame.Kind, message: String, tracks: [Seen])] = [
        (.video, "", []),
        (.data, "02000a6f6e4d65746144617461", []),
        (.video, "d100", []),
        (.video, "5700", []),
        (.video, "99aabb", []),
        (.video, "9631aabb", []),
        (.video, "2701ffffdeaabb", [Seen(0, nil, "aabb")]),
        (.audio, "2ffffb", [Seen(0, nil, "fffb")]),
        (.video, "91 68766331 000028 aabb", [Seen(0, "hvc1", "000028aabb")]),
        (.video, "92 68766331", [Seen(0, "hvc1", "")]),
        (.video, "96 01 68766331 03 000010 aabb", [Seen(3, "hvc1", "000010aabb")]),
        (
            .video, "96 10 61766331 00 000002 aabb 01 000000 02 000001 cc",
            [Seen(0, "avc1", "aabb"), Seen(1, "avc1", ""), Seen(2, "avc1", "cc")]
        ),
        (.video, "a6 23 61766331 05 000001 aa 61763031 02 000002 bbcc", [Seen(5, "avc1", "aa"), Seen(2, "av01", "bbcc")]),
        (.audio, "95 21 4f707573 00 000001 fc 6d703461 01 000002 2110", [Seen(0, "Opus", "fc"), Seen(1, "mp4a", "2110")]),
        (.audio, "97 02 000001 05 11 6d703461 04 000001 aa", [Seen(4, "mp4a", "aa")]),
    ]

    @Test(arguments: messages.indices) func tracks(_ index: Int) throws {
        let (kind, message, tracks) = Self.messages[index]
        let frame = try Frame(kind: kind, timestamp: 0, payload: hex(message))
        var seen: [Seen] = []
        var iterator = try TrackIterator(kind, frame.payload)
        while let track = try iterator.next() {
            let body = try #require(frame.payload.getSlice(at: track.body.lowerBound, length: track.body.count))
            seen.append(Seen(track.id, track.fourCC, hexText(body)))
        }
        #expect(seen == tracks)
    }

    @Test func overrunInALaterTrack() throws {
        let payload = hex("96 10 61766331 00 000002 aabb 01 000003 cc")
        #expect(try TagInfo.parseVideo(payload).flags.contains(.multitrack))
        var tracks = try TrackIterator(.video, payload)
        #expect(try tracks.next()?.id == 0)
        #expect(throws: MediaError.truncated(field: "body of track 1", needed: 3, available: 1)) { try tracks.next() }
    }

    @Test func sixtyFourTracksAtMost() throws {
        var payload = hex("95 11 6d703461")
        for id in 0..<UInt8(64) { payload.writeBytes([id, 0, 0, 1, id]) }
        var tracks = try TrackIterator(.audio, payload)
        var ids: [UInt8] = []
        while let track = try tracks.next() { ids.append(track.id) }
        #expect(ids == Array(0..<64))

        payload.writeBytes([64, 0, 0, 0])
        tracks = try TrackIterator(.audio, payload)
        for _ in 0..<64 { _ = try tracks.next() }
        #expect(throws: MediaError.overLimit(field: "tracks", found: 65, max: 64)) { try tracks.next() }
    }
}

@Suite struct HeaderSlotTests {
    static let slots: [(kind: Frame.Kind, message: String, purpose: HeaderSlot.Purpose?, tracks: [UInt8])] = [
        (.video, Configurations.avc360, .sequenceHeader, [0]),
        (.video, "90 68766331 01", .sequenceHeader, [0]),
        (.video, "95 61763031 80", .sequenceHeader, [0]),
        (.video, "96 00 61763031 00 81", .sequenceHeader, [0]),
        (.video, "96 00 61763031 07 81", .sequenceHeader, [7]),
        (.video, "96 10 61766331 ff 000002 aabb 01 000001 cc", .sequenceHeader, [1, 255]),
        (.video, "96 20 61766331 01 000001 aa 61763031 ff 000001 cc", .sequenceHeader, [1, 255]),
        (.video, "94 68766331 02", .metadata, [0]),
        (.video, "96 04 68766331 02 02", .metadata, [2]),
        (.video, "17010000000000", nil, []),
        (.video, "1702000000", nil, []),
        (.video, "", nil, []),
        (.audio, "af001210", .sequenceHeader, [0]),
        (.audio, "90 4f707573", .sequenceHeader, [0]),
        (.audio, "94 4f707573 0106", .channelConfig, [0]),
        (.audio, "95 04 4f707573 03 0106", .channelConfig, [3]),
        (.audio, "2ffffb", nil, []),
        (.data, "02000a6f6e4d65746144617461 0800000000000009", .metadata, [0]),
        (.data, "02000a6f6e437565506f696e74", nil, []),
    ]

    private func set(_ ids: [UInt8]) -> TrackSet {
        var set = TrackSet()
        for id in ids { set.insert(id) }
        return set
    }

    @Test(arguments: slots.indices) func slot(_ index: Int) throws {
        let (kind, message, purpose, tracks) = Self.slots[index]
        let frame = try Frame(kind: kind, timestamp: 0, payload: hex(message))
        #expect(try frame.headerSlot() == purpose.map { HeaderSlot(kind: kind, purpose: $0, tracks: self.set(tracks)) })
    }

    @Test func brokenTracksGetNoSlot() throws {
        let frame = try Frame(kind: .video, timestamp: 0, payload: hex("96 10 61766331 00 000002 aabb 01 000003 cc"))
        #expect(throws: MediaError.self) { try frame.headerSlot() }
    }

    @Test func supersedes() {
        let one = HeaderSlot(kind: .video, purpose: .sequenceHeader, tracks: TrackSet(1))
        let both = HeaderSlot(kind: .video, purpose: .sequenceHeader, tracks: self.set([0, 1]))
        #expect(both.supersedes(one) && one.supersedes(one) && !one.supersedes(both))
        #expect(!both.supersedes(HeaderSlot(kind: .audio, purpose: .sequenceHeader, tracks: TrackSet(1))))
        #expect(!both.supersedes(HeaderSlot(kind: .video, purpose: .metadata, tracks: TrackSet(1))))
    }

    @Test func trackSet() {
        for id in UInt8.min...UInt8.max {
            let set = TrackSet(id)
            #expect(set.contains(id) && !set.contains(id &+ 1) && !set.contains(id &+ 64) && !set.contains(id &+ 128))
        }
        #expect(self.set([200, 3, 64]).description == "3,64,200")
    }
}
