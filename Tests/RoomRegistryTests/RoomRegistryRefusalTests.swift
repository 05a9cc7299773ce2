import Testing

@testable import RoomRegistry
@testable import Rooms

/// A refused call still applies what time has done. Its refusal may rest on that, and a later read must not contradict it.
@Suite struct RoomRegistryRefusalTests {
    private static let policy = RoomPolicy()

    @Test func aRefusalForAnExpiredRoomLeavesItExpired() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let room = try await test.create("cam1")
        // The timer is late.
        test.pass(Self.policy.neverStartedMs)
        await #expect(throws: RegistryError.wrongState(room.id, state: .expired, action: "test", allowed: RoomRules.open)) {
            try await test.apply(.renew(byMs: nil), "cam1")
        }
        let seen = try await test.registry.room("cam1")
        #expect(seen.state == .expired && seen.reason == .neverStarted && seen.endedAt == test.now)
        #expect(test.kinds == [.roomCreated, .roomExpired])
        #expect(try fields(test.events[1])["by"] == "deadline")
        await test.advance(0)
        #expect(test.kinds == [.roomCreated, .roomExpired])
    }

    @Test func aRefusalForAForgottenRoomLeavesItForgotten() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        try await test.apply(.close, "cam1")
        test.pass(Self.policy.retentionMs)
        await #expect(throws: RegistryError.noSuchRoom("cam1")) { try await test.apply(.close, "cam1") }
        await #expect(throws: RegistryError.noSuchRoom("cam1")) { try await test.registry.room("cam1") }
        #expect(test.kinds == [.roomCreated, .roomClosed, .roomDeleted])
        // Its streams may be played again, like those without a room.
        #expect(test.registry.playRefusal("live/cam1") == nil)
    }

    /// A wrong version for a room whose ban has ended meanwhile.
    @Test func aRefusedConditionLeavesTheRoomResumed() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let forbidden = try await test.apply(.forbid(untilMs: test.now + 1_000, reason: "no"), "cam1")
        test.pass(1_000)
        let condition = RoomCondition(versions: [forbidden.version])
        await #expect(throws: RegistryError.self) {
            try await test.registry.apply(.close, to: "cam1", action: "close", if: condition, by: Actor("t"))
        }
        let seen = try await test.registry.room("cam1")
        #expect(seen.state == .created && seen.reason == .resumeTime && test.registry.playRefusal("live/cam1") == nil)
    }
}
