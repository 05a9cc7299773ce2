import Testing

@testable import RoomRegistry
@testable import Rooms

/// The settings of talk channels.
@Suite struct RoomStoreTalkTests {
    /// A room keeps 512 participants' settings. One more drops the one that was set first.
    @Test func aRoomKeepsTheSettingsOfSoMany() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let room = try await test.create("cam1")
        func mute(_ users: ClosedRange<Int>) async throws {
            try await test.registry.result { work in
                for index in users {
                    var setting = TalkMemberSetting(user: "u\(index)")
                    setting.isMuted = true
                    try work.store.set(setting, of: room.id, at: work.now + Int64(index))
                }
            }.get()
        }
        func users() async throws -> Set<String> {
            Set(try await test.registry.result { try $0.store.talkMembers(room.id) }.get().map(\.user))
        }
        try await mute(1...512)
        #expect(try await users() == Set((1...512).map { "u\($0)" }))
        try await mute(513...513)
        #expect(try await users() == Set((2...513).map { "u\($0)" }))
    }
}
