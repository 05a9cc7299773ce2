import Testing

@testable import RoomRegistry
@testable import Rooms
@testable import Support

/// Bans, lists of pushes, and rooms' notices of streams that end.
extension RoomRegistryStreamTests {
    @Test func aForbiddenStreamIsCutAndRefusedUntilItsTime() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let grant = try await test.goLive("live/cam1")
        let until = test.now + 60_000
        let ban = try await test.registry.forbid(grant.path, untilMs: until, reason: "rude", by: Actor("token:ops"))
        #expect(ban == StreamBan(path: grant.path, createdAt: test.now, resumeAt: until, reason: "rude"))
        #expect(try await test.registry.ban(of: grant.path) == ban)
        #expect(Array(test.kinds.suffix(3)) == [.streamEnd, .streamForbidden, .roomForbidden])
        #expect(test.cuts == ["live/cam1 \(grant.sequence.rawValue) forbidden viewers"])
        #expect(try await test.registry.room("cam1").state == .forbidden)
        #expect(await test.push("live/cam1") == .failure(.forbidden(untilMs: until, reason: "rude")))
        #expect(test.registry.playRefusal("live/cam1") == .forbidden)
        await test.advance(59_999)
        #expect(test.registry.playRefusal("live/cam1") == .forbidden)
        await test.advance(1)
        #expect(test.registry.playRefusal("live/cam1") == nil)
        let room = try await test.registry.room("cam1")
        #expect(room.state == .created && room.reason == .resumeTime)
        #expect(try await test.registry.ban(of: grant.path) == nil)
        #expect(Array(test.kinds.suffix(2)) == [.streamResumed, .roomUnforbidden])
        _ = try await test.push("live/cam1").get()
    }

    @Test func forbiddingTheRoomForbidsAllItsStreams() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1") { $0.slots = 3 }
        let until = test.now + 60_000
        try await test.apply(.forbid(untilMs: until, reason: "why"), "cam1")
        #expect(
            try await test.registry.bans(after: nil, limit: 10).list.map(\.path.description) == ["live/cam1", "live/cam1-2", "live/cam1-3"])
        for name in ["live/cam1", "live/cam1-2", "live/cam1-3"] {
            #expect(await test.push(name) == .failure(.forbidden(untilMs: until, reason: "why")))
            #expect(test.registry.playRefusal(name) == .forbidden)
        }
        try await test.apply(.resume, "cam1")
        #expect(try await test.registry.bans(after: nil, limit: 10).total == 0)
        #expect(test.registry.playRefusal("live/cam1-2") == nil)
        await #expect(throws: RegistryError.notForbidden(StreamPath(app: "live", name: "cam1"))) {
            try await test.registry.resume(StreamPath(app: "live", name: "cam1"), by: Actor("t"))
        }
    }

    @Test func oneCameraOfTwoIsForbidden() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1") { $0.slots = 2 }
        _ = try await test.goLive("live/cam1")
        let second = try await test.goLive("live/cam1-2")
        _ = try await test.registry.forbid(second.path, untilMs: test.now + 1_000, reason: "", by: Actor("t"))
        #expect(try await test.registry.room("cam1").state == .live)
        #expect(test.registry.playRefusal("live/cam1-2") == .forbidden && test.registry.playRefusal("live/cam1") == nil)
        try await test.registry.resume(second.path, by: Actor("t"))
        #expect(test.registry.playRefusal("live/cam1-2") == nil)
        #expect(Array(test.kinds.suffix(3)) == [.streamEnd, .streamForbidden, .streamResumed])
    }

    @Test func namesWithoutRoomAreForbiddenToo() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let path = StreamPath(app: "live", name: "ghost")
        _ = try await test.registry.forbid(path, untilMs: test.now + 5_000, reason: "r", by: Actor("token:ops"))
        #expect(test.events.map(\.roomID) == [nil])
        #expect(test.cuts == ["live/ghost - forbidden viewers"])
        #expect(await test.push("live/ghost", mayCreateRoom: true) == .failure(.forbidden(untilMs: test.now + 5_000, reason: "r")))
        // A room created with that stream starts forbidden.
        let room = try await test.create("ghost")
        #expect(room.state == .forbidden && room.forbiddenUntil == test.now + 5_000)
        #expect(await test.push("live/ghost") == .failure(.forbidden(untilMs: test.now + 5_000, reason: "r")))
        // Deleting the room does not lift the ban.
        try await test.registry.delete("ghost", by: Actor("t"))
        #expect(test.registry.playRefusal("live/ghost") == .forbidden)
        #expect(await test.push("live/ghost", mayCreateRoom: true) == .failure(.forbidden(untilMs: test.now + 5_000, reason: "r")))
        await test.advance(5_000)
        #expect(test.registry.playRefusal("live/ghost") == nil)
        #expect(test.kinds.last == .streamResumed)
        #expect(try await test.push("live/ghost", mayCreateRoom: true).get().roomID.rawValue == "ghost")
        // Lifted by a call.
        let other = StreamPath(app: "live", name: "other")
        _ = try await test.registry.forbid(other, untilMs: test.now + 5_000, reason: "r", by: Actor("t"))
        try await test.registry.resume(other, by: Actor("t"))
        await #expect(throws: RegistryError.notForbidden(other)) { try await test.registry.resume(other, by: Actor("t")) }
    }

    @Test func bansHaveLimits() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let path = StreamPath(app: "live", name: "x")
        let cases: [(StreamPath, Int64, String, String)] = [
            (path, test.now, "", "forbiddenUntil"), (path, test.now + StreamBan.longestMs + 1, "", "forbiddenUntil"),
            (path, .min, "", "forbiddenUntil"),
            (path, test.now + 1, String(repeating: "r", count: 2_049), "reason"), (path, test.now + 1, "a\u{0}", "reason"),
            (StreamPath(app: "live", name: String(repeating: "n", count: 257)), test.now + 1, "", "name"),
            (StreamPath(app: "", name: "x"), test.now + 1, "", "app"),
        ]
        for (path, until, reason, field) in cases {
            #expect(
                await fieldError { try await test.registry.forbid(path, untilMs: until, reason: reason, by: Actor("t")) }?.field == field)
        }
        _ = try await test.registry.forbid(
            path, untilMs: test.now + StreamBan.longestMs, reason: String(repeating: "r", count: 2_048), by: Actor("t"))
        #expect(try await test.registry.bans(after: nil, limit: 1).total == 1)
    }

    @Test func bansAndPushesAreListedInPages() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        var sequences: [Int64] = []
        for index in 0..<7 {
            _ = try await test.registry.forbid(
                StreamPath(app: index < 3 ? "a" : "live", name: "ban\(index)/x"), untilMs: test.now + 1_000, reason: "", by: Actor("t"))
            let grant = try await test.push("live/p\(index % 2)", mayCreateRoom: true).get()
            sequences.append(grant.sequence.rawValue)
            test.registry.pushEnded(grant.sequence, .clientStopped)
            test.pass(10)
        }
        await test.settle()
        var seen: [String] = []
        var after: String?
        repeat {
            let page = try await test.registry.bans(after: after, limit: 3)
            #expect(page.total == 7)
            seen += page.list.map(\.path.description)
            after = page.next
        } while after != nil
        #expect(seen == (0..<7).map { $0 < 3 ? "a/ban\($0)/x" : "live/ban\($0)/x" })
        for bad in ["", "!", "YQ", "YWI", "Lw"] {
            await #expect(throws: RegistryError.self) { try await test.registry.bans(after: bad, limit: 3) }
        }
        let registry = test.registry
        #expect(
            try await registry.published(path: nil, fromMs: nil, toMs: nil, before: nil, limit: 3).map(\.sequence)
                == Array(sequences.reversed().prefix(3)))
        #expect(
            try await registry.published(path: nil, fromMs: nil, toMs: nil, before: sequences[4], limit: 10).map(\.sequence)
                == Array(sequences[..<4].reversed()))
        #expect(
            try await registry.published(path: StreamPath(app: "live", name: "p1"), fromMs: nil, toMs: nil, before: nil, limit: 10)
                .map(\.sequence) == [sequences[5], sequences[3], sequences[1]])
        #expect(
            try await registry.published(
                path: nil, fromMs: TestRegistry.start + 10, toMs: TestRegistry.start + 30, before: nil, limit: 10
            ).map(\.sequence)
                == [sequences[2], sequences[1]])
    }

    @Test func aPushThatEndsBySilenceIsToldAsThat() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let grant = try await test.goLive("live/cam1")
        test.registry.mediaIdle(grant.sequence)
        await test.advance(120_000)
        #expect(try await test.registry.room("cam1").reason == .graceOver)
        let pushes = try await test.registry.published(path: nil, fromMs: nil, toMs: nil, before: nil, limit: 10)
        #expect(pushes.map(\.end) == [.mediaIdle])
        let end = try #require(test.events.first { $0.kind == .streamEnd })
        #expect(try fields(end)["code"] == "8" && fields(end)["end"] == "mediaIdle")
    }

    /// The relay is notified of how long the room waits, whenever that changes.
    @Test func theWaitIsTold() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let grant = try await test.goLive("live/cam1")
        #expect(test.waits == [])
        test.registry.mediaIdle(grant.sequence)
        await test.settle()
        #expect(test.waits == ["live/cam1 120 room"], "no more than the room: whoever else has a timer adds its own allowance")
        test.pass(100_000)
        test.registry.pauseAnnounced(grant.sequence)
        await test.settle()
        #expect(test.waits.last == "live/cam1 220 room")
        test.registry.pushEnded(grant.sequence, .connectionLost)
        await test.settle()
        #expect(test.waits.count == 2, "a pause goes on when its socket dies")
        try await test.apply(.renew(byMs: 600_000), "cam1")
        #expect(test.waits.last == "live/cam1 820 room")
    }

    /// A camera that is away while another one runs has its own wait.
    @Test func theWaitOfOneOfTwoStreamsIsTold() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1") { $0.slots = 2 }
        let one = try await test.goLive("live/cam1")
        let two = try await test.goLive("live/cam1-2")
        test.registry.pauseAnnounced(one.sequence)
        await test.settle()
        #expect(test.waits == ["live/cam1 120"])
        test.registry.pushEnded(two.sequence, .connectionLost)
        await test.settle()
        #expect(test.waits == ["live/cam1 120", "live/cam1 120 room", "live/cam1-2 120 room"])
    }

    @Test func anotherPolicyIsTold() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        var patch = RoomPatch()
        patch.policy = ["mediaIdle": 2_000]
        _ = try await test.registry.update("cam1", patch, by: Actor("test"))
        patch = RoomPatch()
        patch.title = "other"
        _ = try await test.registry.update("cam1", patch, by: Actor("test"))
        let told = test.outcomes.compactMap { outcome -> String? in
            guard case .policyChanged(_, let paths, _, let policy) = outcome else { return nil }
            return "\(paths) \(policy.mediaIdleMs)"
        }
        #expect(told == ["[live/cam1] 2000"])
    }

    /// A device moves to another room, and its old one is pushed to by name.
    @Test(arguments: [true, false]) func anExpiredRoomWhoseDeviceHasAnotherIsPushedTo(_ isCreated: Bool) async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("r1") { $0.deviceUid = "dev" }
        try await test.apply(.expire, "r1")
        if isCreated {
            try await test.create("r2") { $0.deviceUid = "dev" }
        } else {
            try await test.create("r2")
            var patch = RoomPatch()
            patch.deviceUid = .some("dev")
            _ = try await test.registry.update("r2", patch, by: Actor("test"))
        }
        let grant = try await test.push("live/r1").get()
        #expect(grant.roomID.rawValue == "r1")
        let room = try await test.registry.room("r1")
        #expect(room.state == .created && room.instance == 2 && room.deviceUid == nil)
        #expect(try await test.registry.room("r2").deviceUid == "dev")
        #expect(try await test.push("live/dev").get().roomID.rawValue == "r2")
        #expect(test.registry.counters.failedCommits == 0 && test.registry.counters.lostFacts == 0)
        // When the other room has ended too, a push reopens it with the device.
        try await test.apply(.expire, "r1")
        try await test.apply(.expire, "r2")
        _ = try await test.push("live/r2").get()
        _ = try await test.push("live/r1").get()
        #expect(try await test.registry.room("r2").deviceUid == "dev")
    }

    /// A credential for another room neither opens nor creates one.
    @Test func aPushForAnotherRoomChangesNothing() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam-2")
        try await test.apply(.expire, "cam-2")
        let told = test.kinds
        #expect(await test.push("live/cam-2", room: "cam") == .failure(.otherRoom))
        #expect(await test.push("live/cam-3", mayCreateRoom: true, room: "cam") == .failure(.otherRoom))
        #expect(test.kinds == told)
        #expect(try await test.registry.room("cam-2").state == .expired)
        await #expect(throws: RegistryError.noSuchRoom("cam-3")) { try await test.registry.room("cam-3") }
        #expect(try await test.registry.published(path: nil, fromMs: nil, toMs: nil, before: nil, limit: 10).isEmpty)
        #expect(try await test.push("live/cam-2", room: "cam-2").get().roomID.rawValue == "cam-2")
    }

    @Test func aForbiddenStreamGetsAnotherTimeAndReason() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let path = try #require(StreamPath("live/cam1"))
        try await test.create("cam1")
        let first = try await test.registry.forbid(path, untilMs: test.now + 60_000, reason: "lens", by: Actor("test"))
        test.pass(1_000)
        for _ in 0..<2 {
            let second = try await test.registry.forbid(path, untilMs: test.now + 600_000, reason: "face", by: Actor("test"))
            #expect(second.createdAt == first.createdAt && second.resumeAt == test.now + 600_000 && second.reason == "face")
        }
        #expect(test.kinds == [.roomCreated, .streamForbidden, .roomForbidden, .streamForbidden])
        await test.advance(60_000)
        let room = try await test.registry.room("cam1")
        #expect(room.state == .forbidden && room.forbidReason == "face")
        #expect(await test.push("live/cam1") == .failure(.forbidden(untilMs: TestRegistry.start + 601_000, reason: "face")))
        await test.advance(540_000)
        #expect(try await test.registry.room("cam1").state == .created)
    }
}
