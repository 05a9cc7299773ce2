import Support
import Testing

@testable import RoomRegistry
@testable import Rooms

/// An expired room may be closed and forbidden: otherwise its device's old URL opens it again.
@Suite struct RoomRegistryExpiredTests {
    /// A device's room that has expired.
    private static func expired(_ test: TestRegistry) async throws {
        try await test.create("cam1") { $0.deviceUid = "dev1" }
        try await test.goLive("live/dev1")
        try await test.apply(.expire, "cam1")
        #expect(try await test.registry.room("cam1").state == .expired)
    }

    @Test func aClosedOneStaysClosedToItsDevice() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await Self.expired(test)
        let before = test.kinds.count
        let room = try await test.apply(.close, "cam1")
        #expect(room.state == .closed && room.instance == 1 && room.endedAt == test.now)
        #expect(Array(test.kinds.dropFirst(before)) == [.roomClosed])
        for path in ["live/dev1", "live/cam1"] { #expect(await test.push(path) == .failure(.roomClosed), "\(path)") }
        #expect(test.registry.playRefusal("live/cam1") == .closed)
        #expect(try await test.apply(.close, "cam1").state == .closed && test.kinds.count == before + 1, "without another event")
        let counts = try await test.registry.roomCounts()
        #expect(counts[.closed] == 1 && counts[.expired] == 0)
    }

    @Test func aForbiddenOneRefusesItsDeviceUntilItIsResumed() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await Self.expired(test)
        let before = test.kinds.count
        let until = test.now + 60_000
        let room = try await test.apply(.forbid(untilMs: until, reason: "no"), "cam1")
        #expect(room.state == .forbidden && room.instance == 2 && room.endedAt == nil && room.forbiddenUntil == until)
        #expect(Array(test.kinds.dropFirst(before)) == [.streamForbidden, .roomForbidden])
        for path in ["live/dev1", "live/cam1"] {
            #expect(await test.push(path) == .failure(.forbidden(untilMs: until, reason: "no")), "\(path)")
        }
        let resumed = try await test.apply(.resume, "cam1")
        #expect(resumed.state == .created && resumed.instance == 2 && resumed.waitingSince == test.now)
        #expect(Array(test.kinds.suffix(2)) == [.streamResumed, .roomUnforbidden])
        _ = try await test.push("live/dev1").get()
    }

    @Test func itsTimeLeadsToCreatedToo() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await Self.expired(test)
        try await test.apply(.forbid(untilMs: test.now + 60_000, reason: ""), "cam1")
        // Longer than it would otherwise have been kept.
        await test.advance(60_000)
        let room = try await test.registry.room("cam1")
        #expect(room.state == .created && room.reason == .resumeTime)
    }

    /// Also after a kill.
    @Test func theBanOutlastsARestart() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await Self.expired(test)
        let until = test.now + 90 * 86_400_000
        try await test.apply(.forbid(untilMs: until, reason: "no"), "cam1")
        let next = try await test.restarted()
        // More than the retention of an ended room.
        await next.advance(30 * 86_400_000)
        #expect(await next.push("live/dev1") == .failure(.forbidden(untilMs: until, reason: "no")))
    }

    /// A device has one open room. Forbidding its expired room does not move the device back.
    @Test func aDeviceWithAnotherRoomKeepsThat() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await Self.expired(test)
        try await test.create("cam2") { $0.deviceUid = "dev1" }
        let room = try await test.apply(.forbid(untilMs: test.now + 60_000, reason: ""), "cam1")
        #expect(room.state == .forbidden && room.deviceUid == nil)
        #expect(try await test.registry.room("cam2").deviceUid == "dev1")
        #expect(try await test.push("live/dev1").get().roomID.rawValue == "cam2")
    }

    /// An expired room that is pushed to again keeps its device; if another open room has it by now, an event says that it is lost.
    @Test(arguments: [false, true]) func aReopenedRoomKeepsItsDeviceOrSaysThatItIsLost(_ isTaken: Bool) async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await Self.expired(test)
        if isTaken { try await test.create("cam2") { $0.deviceUid = "dev1" } }
        let before = test.events.count
        #expect(try await test.push("live/cam1").get().roomID.rawValue == "cam1")
        await test.settle()
        let room = try await test.registry.room("cam1")
        #expect(room.state == .created && room.deviceUid == (isTaken ? nil : "dev1"))
        let events = test.events.dropFirst(before).filter { $0.roomID?.rawValue == "cam1" }
        let kinds: [RoomEvent.Kind] = isTaken ? [.roomUpdated, .roomCreated] : [.roomCreated]
        #expect(events.map(\.kind).filter(kinds.contains) == kinds, "\(events)")
        if isTaken { #expect(events.first?.data.contains(#""changed":["deviceUid"]"#) == true, "\(events)") }
    }

    // MARK: - Versions

    @Test func aChangeForAnotherVersionIsRefused() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let made = try await test.create("cam1")
        let condition = RoomCondition(versions: [made.version])
        var patch = RoomPatch()
        patch.title = "one"
        let changed = try await test.registry.update("cam1", patch, if: condition, by: Actor("t"))
        #expect(changed.version != made.version)
        let refusal = RegistryError.versionChanged(made.id, version: changed.version)
        patch.title = "two"
        let late = patch
        await #expect(throws: refusal) { try await test.registry.update("cam1", late, if: condition, by: Actor("t")) }
        await #expect(throws: refusal) {
            try await test.registry.apply(.close, to: "cam1", action: "close", if: condition, by: Actor("t"))
        }
        await #expect(throws: refusal) { try await test.registry.delete("cam1", if: condition, by: Actor("t")) }
        #expect(try await test.registry.room("cam1").title == "one")
        // Likes and heartbeats do not change the version.
        _ = try await test.registry.like("cam1", count: 3)
        try await test.apply(.heartbeat(sender: nil), "cam1")
        try await test.registry.delete("cam1", if: RoomCondition(versions: ["x", changed.version]), by: Actor("t"))
        // The id's next room never has a version of the one before.
        let next = try await test.create("cam1")
        #expect(next.version != made.version && next.version != changed.version)
    }

    /// Only one of many simultaneous changes for the same version gets through.
    @Test func onlyOneOfManyChangesGetsThrough() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let condition = RoomCondition(versions: [try await test.create("cam1").version])
        let done = await withTaskGroup(of: Bool.self) { group in
            for index in 0..<20 {
                group.addTask {
                    var patch = RoomPatch()
                    patch.title = "title \(index)"
                    return (try? await test.registry.update("cam1", patch, if: condition, by: Actor("t"))) != nil
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(done == 1)
    }

    // MARK: - Deadlines

    /// The room ends for the reason that its deadline gave.
    @Test func ofTwoDeadlinesAtOnceTheFirstIsNamed() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        _ = try await test.create("cam1")
        await test.advance(255_000)
        let room = try await test.apply(.heartbeat(sender: nil), "cam1")
        #expect(RoomRules.deadline(of: room) == RoomDeadline(at: test.now + 45_000, reason: .neverStarted))
        await test.advance(45_000)
        #expect(try await test.registry.room("cam1").reason == .neverStarted)
    }

    @Test func theNextDeadlineIsNamed() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        var room = try await test.create("cam1")
        #expect(RoomRules.deadline(of: room) == RoomDeadline(at: test.now + 300_000, reason: .neverStarted))
        room = try await test.apply(.heartbeat(sender: nil), "cam1")
        #expect(RoomRules.deadline(of: room) == RoomDeadline(at: test.now + 45_000, reason: .heartbeatLost))
        room = try await test.apply(.renew(byMs: 600_000), "cam1")
        #expect(RoomRules.deadline(of: room) == RoomDeadline(at: test.now + 45_000, reason: .heartbeatLost))
        #expect(RoomRules.countdownEnd(of: room) == test.now + 900_000)
        let said = try fields(try #require(test.events.last { $0.kind == .roomRenewed }))
        #expect(said["expiresReason"] == "heartbeatLost" && said["renewedUntil"] == Instant.text(test.now + 900_000))
        room = try await test.apply(.forbid(untilMs: test.now + 1_000, reason: ""), "cam1")
        #expect(RoomRules.deadline(of: room)?.reason == .resumeTime && RoomRules.countdownEnd(of: room) == nil)
        room = try await test.apply(.close, "cam1")
        await test.advance(2_000)
        room = try await test.registry.room("cam1")
        #expect(RoomRules.deadline(of: room)?.reason == .retention)
    }
}
