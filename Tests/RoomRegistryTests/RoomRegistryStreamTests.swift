import Testing

@testable import RoomRegistry
@testable import Rooms
@testable import Support

/// Pushes and bans as the relay and the API report them to the registry.
@Suite struct RoomRegistryStreamTests {
    @Test func aNameWithoutRoomNeedsLeaveToMakeOne() async throws {
        let test = try TestRegistry { $0.policy.graceMs = 4_000 }
        defer { test.remove() }
        #expect(await test.push("live/new") == .failure(.noRoom))
        #expect(test.outcomes.isEmpty)
        let grant = try await test.push("live/new", mayCreateRoom: true).get()
        #expect(grant.roomID.rawValue == "new" && grant.policy.graceMs == 4_000)
        let room = try await test.registry.room("new")
        #expect(room.isAdHoc && room.slots.map(\.path.description) == ["live/new"] && room.policy.graceMs == 4_000)
        // Names that are no valid ids get a room with another id. So does the same name in another app.
        let odd = try await test.push("live/ü 1' OR '1'='1", mayCreateRoom: true).get()
        #expect(RoomID.isID(odd.roomID.rawValue) && odd.path.description == "live/ü 1' OR '1'='1")
        let other = try await test.push("studio/new", mayCreateRoom: true).get()
        #expect(other.roomID.rawValue != "new")
        #expect(await test.push("talk/new", mayCreateRoom: true) == .failure(.noRoom))
        #expect(other.sequence > odd.sequence && odd.sequence > grant.sequence)
    }

    @Test func aDevicePushesByItsUID() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1") {
            $0.deviceUid = "dev-1"; $0.slots = 2
        }
        let grant = try await test.push("live/dev-1").get()
        #expect(grant.path.description == "live/cam1" && grant.slot == 1)
        test.registry.pushEnded(grant.sequence, .connectionLost)
        try await test.apply(.expire, "cam1")
        let again = try await test.push("live/dev-1").get()
        #expect(again.roomID.rawValue == "cam1")
        let room = try await test.registry.room("cam1")
        #expect(room.instance == 2 && room.reason == .reopened && room.slots[0].sequence == again.sequence.rawValue)
        try await test.apply(.close, "cam1")
        #expect(await test.push("live/dev-1", mayCreateRoom: true) == .failure(.roomClosed))
        #expect(await test.push("live/cam1", mayCreateRoom: true) == .failure(.roomClosed))
        #expect(await test.push("other/dev-1") == .failure(.noRoom))
    }

    @Test func aTakeoverEndsTheOldPushOnce() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let old = try await test.goLive("live/cam1")
        let new = try await test.push("live/cam1", from: "192.0.2.2").get()
        #expect(try await test.registry.room("cam1").state == .live)
        test.registry.pushEnded(old.sequence, .takenOver)
        test.registry.mediaArrived(new.sequence, MediaSummary())
        test.registry.pushEnded(old.sequence, .connectionLost)
        await test.settle()
        let room = try await test.registry.room("cam1")
        #expect(room.slots[0].sequence == new.sequence.rawValue)
        #expect(room.state == .live)
        #expect(test.kinds.filter { $0 == .streamEnd }.count == 1)
        #expect(test.kinds.filter { $0 == .streamBegin }.count == 2)
    }

    @Test func aPushThatTheRelayRefusesLeavesTheStreamAlone() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let old = try await test.goLive("live/cam1")
        let new = try await test.push("live/cam1", from: "192.0.2.2").get()
        test.registry.pushEnded(new.sequence, .refused)
        await test.settle()
        let room = try await test.registry.room("cam1")
        #expect(room.state == .live && room.slots[0].sequence == old.sequence.rawValue && room.slots[0].isActive)
        #expect(test.kinds == [.roomCreated, .streamBegin, .roomLive])
    }

    @Test func endsOfUnknownPushesAreNothing() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let grant = try await test.push("live/cam1").get()
        for end in PushEnd.allCases { test.registry.pushEnded(PushSequence(grant.sequence.rawValue + 1), end) }
        test.registry.mediaArrived(PushSequence(-1), MediaSummary())
        test.registry.mediaIdle(PushSequence(.max))
        test.registry.pauseAnnounced(PushSequence(0))
        await test.settle()
        #expect(test.kinds == [.roomCreated])
        #expect(test.registry.counters.lostFacts == 0)
    }

    @Test func aPushThatSlippedPastItsCutIsCutAgain() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let grant = try await test.push("live/cam1").get()
        try await test.apply(.close, "cam1")
        test.registry.mediaArrived(grant.sequence, MediaSummary())
        await test.settle()
        let number = grant.sequence.rawValue
        #expect(test.cuts == ["live/cam1 \(number) roomEnded viewers", "live/cam1 \(number) roomEnded"])
        #expect(!test.kinds.contains(.streamBegin) && !test.kinds.contains(.streamEnd))
    }

    @Test func anEndedRoomsStreamsEndBeforeIt() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1") { $0.slots = 2 }
        let one = try await test.goLive("live/cam1")
        let two = try await test.goLive("live/cam1-2")
        try await test.apply(.close, "cam1")
        #expect(Array(test.kinds.suffix(3)) == [.streamEnd, .streamEnd, .roomClosed])
        #expect(
            test.cuts == ["live/cam1 \(one.sequence.rawValue) roomEnded viewers", "live/cam1-2 \(two.sequence.rawValue) roomEnded viewers"])
        // The relay's later reports of these ends change nothing.
        test.registry.pushEnded(one.sequence, .roomEnded)
        test.registry.pushEnded(two.sequence, .connectionLost)
        await test.settle()
        #expect(test.kinds.filter { $0 == .streamEnd }.count == 2)
        #expect(
            try await test.registry.published(path: nil, fromMs: nil, toMs: nil, before: nil, limit: 10).map(\.end) == [
                .roomEnded, .roomEnded,
            ])
    }

    @Test func silenceAndPauseInterrupt() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let grant = try await test.goLive("live/cam1")
        test.registry.mediaIdle(grant.sequence)
        await test.settle()
        #expect(try await test.registry.room("cam1").reason == .mediaIdle)
        test.registry.mediaArrived(grant.sequence, MediaSummary())
        test.registry.pauseAnnounced(grant.sequence)
        await test.settle()
        #expect(try await test.registry.room("cam1").reason == .paused)
        test.registry.mediaArrived(grant.sequence, MediaSummary())
        await test.settle()
        let room = try await test.apply(.pauseAnnounced(slot: nil), "cam1")
        #expect(room.state == .interrupted)
        // Only the pause announced by the call is news to the relay.
        let pauses = test.outcomes.compactMap { if case .pauseAnnounced(let path) = $0 { path.description } else { nil } }
        #expect(pauses == ["live/cam1"])
        #expect(test.kinds.filter { $0 == .streamBegin }.count == 1)
    }
}
