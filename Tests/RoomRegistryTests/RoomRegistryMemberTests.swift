import Testing

@testable import RoomRegistry
@testable import Rooms

/// Members, likes and counts.
@Suite struct RoomRegistryMemberTests {
    @Test func membersComeAndGo() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let anna = try await test.registry.join("cam1", user: "anna", nick: "Anna")
        #expect(anna == Member(user: "anna", nick: "Anna", joinedAt: test.now, seenAt: test.now))
        _ = try await test.registry.join("cam1", user: "bob", nick: "")
        test.pass(1_000)
        // Again: the same member, seen now.
        let again = try await test.registry.join("cam1", user: "anna", nick: "A.")
        #expect(again == Member(user: "anna", nick: "A.", joinedAt: TestRegistry.start, seenAt: test.now))
        #expect(try await test.registry.room("cam1").members == 2)
        test.pass(1_000)
        try await test.apply(.heartbeat(sender: "bob"), "cam1")
        let (total, list) = try await test.registry.members("cam1", after: nil, limit: 10)
        #expect(total == 2 && list.map(\.user) == ["anna", "bob"] && list.map(\.seenAt) == [test.now - 1_000, test.now])
        #expect(try await test.registry.members("cam1", after: "anna", limit: 10).list.map(\.user) == ["bob"])
        try await test.registry.leave("cam1", user: "anna")
        #expect(try await test.registry.room("cam1").members == 1)
        try await test.registry.kick("cam1", user: "bob", by: Actor("token:ops"))
        #expect(test.kinds == [.roomCreated, .memberJoined, .memberJoined, .memberLeft, .memberKicked])
        #expect(try fields(test.events[4])["by"] == "token:ops")
        let kicks = test.outcomes.compactMap {
            if case .kick(let room, let user, let actor) = $0 { "\(room) \(user) \(actor.name)" } else { nil }
        }
        #expect(kicks == ["cam1 bob token:ops"])
        #expect(try await test.registry.room("cam1").members == 0)
        await #expect(throws: RegistryError.noSuchMember("anna")) { try await test.registry.leave("cam1", user: "anna") }
        await #expect(throws: RegistryError.noSuchMember("bob")) { try await test.registry.kick("cam1", user: "bob", by: Actor("t")) }
        await #expect(throws: RegistryError.noSuchRoom("x")) { try await test.registry.join("x", user: "anna", nick: "") }
        await #expect(throws: RegistryError.noSuchRoom("x")) { try await test.registry.members("x", after: nil, limit: 1) }
    }

    /// A kicked user can neither join nor push until the time is over.
    @Test func whoIsThrownOutStaysOut() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let room = try await test.create("cam1")
        for user in ["bob", "eve", "zoe"] { _ = try await test.registry.join("cam1", user: user, nick: "") }
        try await test.registry.kick("cam1", user: "bob", by: Actor("t"))
        try await test.registry.kick("cam1", user: "eve", forMs: 60_000, by: Actor("t"))
        try await test.registry.kick("cam1", user: "zoe", forMs: 0, by: Actor("t"))
        _ = try await test.registry.join("cam1", user: "zoe", nick: "")
        func isOut(_ user: String) async -> Bool {
            let byTable = test.registry.keptOut(user, of: "live/cam1") != nil
            #expect((test.registry.keptOut(user, of: room.id) != nil) == byTable)
            do {
                _ = try await test.registry.join("cam1", user: user, nick: "")
                #expect(!byTable)
                return false
            } catch {
                #expect(error == .keptOut(user, of: room.id, forMs: (test.registry.keptOut(user, of: "live/cam1") ?? 0) - test.now))
                return true
            }
        }
        test.pass(9_999)
        #expect(await isOut("bob"))
        #expect(test.registry.keptOut("bob", of: "live/other") == nil && test.registry.keptOut("zoe", of: "live/cam1") == nil)
        test.pass(1)
        #expect(await isOut("bob") == false)
        #expect(await isOut("eve"))
        test.pass(60_000)
        #expect(await isOut("eve") == false)
    }

    @Test func namesAreChecked() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        for user in ["", "a b", "x'; DELETE FROM members; --", String(repeating: "u", count: 65)] {
            await #expect(throws: RegistryError.self) { try await test.registry.join("cam1", user: user, nick: "n") }
        }
        await #expect(throws: RegistryError.self) {
            try await test.registry.join("cam1", user: "u", nick: String(repeating: "n", count: 101))
        }
        await #expect(throws: RegistryError.self) { try await test.registry.join("cam1", user: "u", nick: "a\u{1B}[2J") }
        let nick = "'); DROP TABLE members; --"
        _ = try await test.registry.join("cam1", user: "u", nick: nick)
        #expect(try await test.registry.members("cam1", after: nil, limit: 1).list.map(\.nick) == [nick])
    }

    @Test func aRoomHoldsSoManyMembers() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        // As if they had joined: ten thousand calls would show no more.
        try test.execute("UPDATE rooms SET members = 9999")
        _ = try await test.registry.join("cam1", user: "last", nick: "")
        await #expect(throws: RegistryError.tooMany(what: "members", limit: 10_000)) {
            try await test.registry.join("cam1", user: "more", nick: "")
        }
        _ = try await test.registry.join("cam1", user: "last", nick: "again")
        #expect(try await test.registry.members("cam1", after: nil, limit: 10).list.count == 1)
    }

    @Test func anEndedRoomHasNoMembers() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        _ = try await test.registry.join("cam1", user: "anna", nick: "")
        #expect(try await test.apply(.close, "cam1").members == 0)
        #expect(try await test.registry.members("cam1", after: nil, limit: 10).list.isEmpty)
        await #expect(throws: RegistryError.self) { try await test.registry.join("cam1", user: "bob", nick: "") }
    }

    @Test func theOwnersPresenceIsTheRooms() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1") {
            $0.owner = "anna"; $0.policy.ownerOfflineMs = 60_000
        }
        _ = try await test.registry.join("cam1", user: "anna", nick: "")
        try await test.registry.leave("cam1", user: "anna")
        #expect(Array(test.kinds.suffix(2)) == [.memberLeft, .ownerOffline])
        _ = try await test.registry.join("cam1", user: "anna", nick: "")
        #expect(test.kinds.last == .ownerOnline)
        try await test.registry.leave("cam1", user: "anna")
        await test.advance(60_000)
        #expect(try await test.registry.room("cam1").reason == .ownerOffline)
    }

    @Test func likesAndPeaksAreCounted() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let room = try await test.create("cam1")
        #expect(try await test.registry.like("cam1", count: 100).likes == 100)
        #expect(try await test.registry.like("cam1", count: 1).likes == 101)
        for count in [0, 101, -1, Int.max] {
            await #expect(throws: RegistryError.self) { try await test.registry.like("cam1", count: count) }
        }
        test.registry.reportViewers([room.id: 10, try RoomID(checking: "unknown"): 5])
        test.registry.reportViewers([room.id: 7])
        await test.settle()
        #expect(try await test.registry.room("cam1").peak == 10)
        #expect(test.kinds == [.roomCreated])
        try await test.apply(.close, "cam1")
        test.registry.reportViewers([room.id: 70])
        await test.settle()
        #expect(try await test.registry.room("cam1").peak == 10)
        await #expect(throws: RegistryError.self) { try await test.registry.like("cam1", count: 1) }
    }

    /// The peak counts members, and does not fall when they leave.
    @Test func membersRaiseThePeak() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        for user in ["a", "b", "c"] { _ = try await test.registry.join("cam1", user: user, nick: "") }
        for user in ["a", "b"] { try await test.registry.leave("cam1", user: user) }
        #expect(try await test.registry.room("cam1").peak == 3)
    }
}
