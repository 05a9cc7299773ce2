import Testing

@testable import RoomRegistry
@testable import Rooms

/// Rooms from creation to deletion, through the registry and a real file.
@Suite struct RoomRegistryTests {
    @Test func aRoomIsCreatedAndFound() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        var new = NewRoom(policy: RoomPolicy())
        new.id = try RoomID(checking: "cam1")
        new.slots = 2
        new.owner = "anna"
        new.title = "Café 直播 \"one\""
        new.custom = #"{"a":[1,{"b":null}]}"#
        new.isPublic = false
        new.deviceUid = "dev-1"
        new.policy.graceMs = 5_000
        let room = try await test.registry.create(new, by: Actor("token:app"))
        #expect(room.id.rawValue == "cam1")
        #expect(room.slots.map(\.path.description) == ["live/cam1", "live/cam1-2"])
        #expect(room.state == .created && room.instance == 1 && room.createdAt == TestRegistry.start)
        #expect(try await test.registry.room("cam1") == room)
        #expect(try await test.registry.room(ofDevice: "dev-1") == room)
        #expect(try await test.registry.room(ofStream: StreamPath(app: "live", name: "cam1-2")) == room)
        #expect(try await test.registry.room(ofStream: StreamPath(app: "live", name: "cam1-3")) == nil)
        #expect(test.kinds == [.roomCreated])
        let event = try #require(test.events.first)
        #expect(event.number == 1 && event.roomID == room.id && event.at == TestRegistry.start)
        let data = try fields(event)
        #expect(data["by"] == "token:app" && data["state"] == "created" && data["title"] == "Café 直播 \"one\"" && data["owner"] == "anna")
        #expect(try await test.registry.roomCounts()[.created] == 1)
        await #expect(throws: RegistryError.noSuchRoom("cam2")) { try await test.registry.room("cam2") }
    }

    @Test func aPushMakesItLiveAndItsEndInterruptsIt() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let grant = try await test.push("live/cam1").get()
        #expect(grant.slot == 1 && grant.roomID.rawValue == "cam1" && grant.path.description == "live/cam1")
        #expect(try await test.registry.room("cam1").state == .created)
        var media = MediaSummary()
        media.width = 1_280
        media.height = 720
        media.videoCodec = "H264"
        test.registry.mediaArrived(grant.sequence, media)
        await test.settle()
        #expect(try await test.registry.room("cam1").state == .live)
        test.pass(2_500)
        test.registry.pushEnded(grant.sequence, .connectionLost)
        await test.settle()
        let room = try await test.registry.room("cam1")
        #expect(room.state == .interrupted && room.reason == .publisherLost)
        #expect(room.interruptionEnds == test.now + RoomPolicy().graceMs)
        #expect(test.kinds == [.roomCreated, .streamBegin, .roomLive, .streamEnd, .roomInterrupted])
        #expect(test.events.map(\.number) == [1, 2, 3, 4, 5])
        let end = try fields(test.events[3])
        #expect(end["durationMs"] == "2500" && end["end"] == "connectionLost" && end["code"] == "12")
        #expect(end["sequence"] == "\(grant.sequence.rawValue)" && end["width"] == "1280" && end["videoCodec"] == "H264")
        await test.advance(RoomPolicy().graceMs - 1)
        #expect(try await test.registry.room("cam1").state == .interrupted)
        await test.advance(1)
        #expect(try await test.registry.room("cam1").state == .expired)
        #expect(test.cuts == ["live/cam1 - roomEnded viewers"])
        await test.advance(RoomPolicy().retentionMs)
        await #expect(throws: RegistryError.noSuchRoom("cam1")) { try await test.registry.room("cam1") }
        #expect(test.kinds.suffix(2) == [.roomExpired, .roomDeleted])
    }
}
