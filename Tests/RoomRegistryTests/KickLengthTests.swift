import Testing

@testable import RoomRegistry
@testable import Rooms

/// A user who is kicked twice stays out until the later of both ends.
@Suite struct KickLengthTests {
    @Test(arguments: [(60_000, 10_000, 60_000), (10_000, 60_000, 60_000), (10_000, 10_000, 10_000)] as [(Int64, Int64, Int64)])
    func theLongerKickCounts(_ first: Int64, _ second: Int64, _ kept: Int64) async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let room = try await test.create("cam1")
        let store = test.registry
        for ms in [first, second] {
            let kick = Kick(roomID: room.id, user: "bob", until: test.now + ms)
            try await store.call { try $0.store.setKick(kick, now: kick.until - ms) }
        }
        #expect(try test.sql(Int64.self, "SELECT until FROM kicks") == test.now + kept)
        #expect(try test.sql(Int.self, "SELECT count(*) FROM kicks") == 1)
    }
}
