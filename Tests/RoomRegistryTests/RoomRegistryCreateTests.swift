import Testing

@testable import RoomRegistry
@testable import Rooms
@testable import Support

/// Limits of new rooms, and conflicts of their ids, devices and streams.
@Suite struct RoomRegistryCreateTests {
    struct Bad: Sendable, CustomTestStringConvertible {
        let field: String
        let change: @Sendable (inout NewRoom) -> Void
        var testDescription: String { self.field }
    }

    static let bad: [Bad] = [
        Bad(field: "app") { $0.app = "talk" }, Bad(field: "app") { $0.app = "" }, Bad(field: "app") { $0.app = "live/../x" },
        Bad(field: "slots") { $0.slots = 0 }, Bad(field: "slots") { $0.slots = 9 }, Bad(field: "slots") { $0.slots = .min },
        Bad(field: "owner") { $0.owner = "" }, Bad(field: "owner") { $0.owner = "an na" },
        Bad(field: "owner") { $0.owner = "'; DROP TABLE rooms; --" },
        Bad(field: "owner") { $0.owner = String(repeating: "a", count: 65) }, Bad(field: "deviceUid") { $0.deviceUid = "a/b" },
        Bad(field: "title") { $0.title = String(repeating: "é", count: 201) }, Bad(field: "title") { $0.title = "a\u{0}b" },
        Bad(field: "title") { $0.title = "a\u{200B}b" }, Bad(field: "title") { $0.title = "\u{202E}ab" },
        Bad(field: "title") { $0.title = "a\u{AD}b" }, Bad(field: "title") { $0.title = "\u{FEFF}" },
        Bad(field: "title") { $0.title = "a\nb" }, Bad(field: "title") { $0.title = "a\u{9F}b" },
        Bad(field: "custom") { $0.custom = "" }, Bad(field: "custom") { $0.custom = "[]" }, Bad(field: "custom") { $0.custom = "{\"a\":}" },
        Bad(field: "custom") { $0.custom = "{} {}" }, Bad(field: "custom") { $0.custom = "{\"a\":01}" },
        Bad(field: "custom") { $0.custom = "{\"a\":\"\(String(repeating: "x", count: 4_090))\"}" },
        Bad(field: "custom") { $0.custom = "{\"a\":" + String(repeating: "[", count: 40) + String(repeating: "]", count: 40) + "}" },
        Bad(field: "policy.grace") { $0.policy.graceMs = -1 }, Bad(field: "policy.heartbeatMisses") { $0.policy.heartbeatMisses = 0 },
        Bad(field: "policy.maxDuration") { $0.policy.maxDurationMs = .max },
        Bad(field: "policy.neverStarted") { $0.policy.neverStartedMs = 999 },
    ]

    @Test(arguments: bad) func aBadFieldIsNamed(_ bad: Bad) async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let error = await fieldError { try await test.create("cam1", bad.change) }
        #expect(error?.field == bad.field)
        #expect(error?.rule.isEmpty == false)
        #expect(test.outcomes.isEmpty)
        #expect(
            try test.sql(Int.self, "SELECT (SELECT count(*) FROM rooms) + (SELECT count(*) FROM events) + (SELECT count(*) FROM slots)")
                == 0)
    }

    /// Titles whose writing needs joiners and variation selectors.
    @Test(arguments: ["👨‍👩‍👧 im Park", "❤️", "می‌خواهم", "क्‍ष", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "a·b"]) func textOfAnyScriptIsATitle(_ title: String) async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        #expect(try await test.create("cam1") { $0.title = title }.title == title)
    }

    @Test func limitsThemselvesAreAllowed() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let id = String(repeating: "Z", count: 64)
        let title = String(repeating: "é", count: 100)
        let custom = "{\"a\":\"" + String(repeating: "x", count: 4_088) + "\"}"
        let room = try await test.create(id) {
            $0.slots = 8
            $0.title = title
            $0.custom = custom
            for field in RoomPolicy.fields { field.set(&$0.policy, field.range.upperBound) }
        }
        #expect(custom.utf8.count == 4_096)
        #expect(room.slots.count == 8 && room.slots[7].name == id + "-8")
        #expect(try await test.registry.room(id) == room)
        for field in RoomPolicy.fields { #expect(field.get(room.policy) == field.range.upperBound) }
    }

    @Test func anIDIsTakenUntilItsRetentionIsOver() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let id = try RoomID(checking: "cam1")
        try await test.create("cam1")
        await #expect(throws: RegistryError.idTaken(id, state: .created, freeAt: nil)) { try await test.create("cam1") }
        test.pass(1_000)
        try await test.apply(.close, "cam1")
        let freeAt = test.now + RoomPolicy().retentionMs
        await #expect(throws: RegistryError.idTaken(id, state: .closed, freeAt: freeAt)) { try await test.create("cam1") }
        test.pass(RoomPolicy().retentionMs - 1)
        await #expect(throws: RegistryError.idTaken(id, state: .closed, freeAt: freeAt)) { try await test.create("cam1") }
        // The retention is over, though no timer has run.
        test.pass(1)
        let next = try await test.create("cam1")
        #expect(next.instance == 2 && next.state == .created)
        // Numbers continue from the former room's.
        #expect(test.events.map(\.number) == [1, 2, 3, 4])
        #expect(test.kinds == [.roomCreated, .roomClosed, .roomDeleted, .roomCreated])
    }

    @Test func streamsOfTwoRoomsNeverHaveOneName() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam") { $0.slots = 2 }
        let error = await fieldError { try await test.create("cam-2") }
        #expect(error?.field == "roomId" && error?.rule.contains("live/cam-2 already belongs to room cam") == true)
        // In another app it is another name.
        try await test.create("cam-2") { $0.app = "studio" }
        try await test.create("x-2")
        await #expect(throws: RegistryError.self) { try await test.create("x") { $0.slots = 2 } }
        try await test.create("x")
    }

    @Test func aDeviceHasOneOpenRoom() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let first = try await test.create {
            $0.deviceUid = "dev-1"; $0.title = "first"; $0.slots = 2
        }
        #expect(first.id.rawValue.count == 13)
        await #expect(throws: RegistryError.deviceTaken("dev-1", by: first.id)) { try await test.create { $0.deviceUid = "dev-1" } }
        await #expect(throws: RegistryError.deviceTaken("dev-1", by: first.id)) {
            try await test.create("other") { $0.deviceUid = "dev-1" }
        }
        try await test.apply(.expire, first.id.rawValue)
        // The device's room continues: same id, next instance, settings as given now.
        let second = try await test.create {
            $0.deviceUid = "dev-1"; $0.title = "second"
        }
        #expect(second.id == first.id && second.instance == 2 && second.title == "second" && second.state == .created)
        #expect(second.slots.count == 1 && second.endedAt == nil)
        #expect(try await test.registry.room(first.id.rawValue) == second)
        #expect(try await test.registry.room(ofStream: first.slots[1].path) == nil)
        // A closed one too, since the caller asked for it.
        try await test.apply(.close, first.id.rawValue)
        #expect(test.registry.playRefusal(first.slots[0].path.description) == .closed)
        let third = try await test.create { $0.deviceUid = "dev-1" }
        #expect(third.id == first.id && third.instance == 3)
        #expect(test.registry.playRefusal(first.slots[0].path.description) == nil)
        #expect(test.events.map(\.number) == Array(1...Int64(test.events.count)))
        // With another id it is another room.
        try await test.apply(.close, first.id.rawValue)
        let fourth = try await test.create("fresh") { $0.deviceUid = "dev-1" }
        #expect(fourth.id.rawValue == "fresh" && fourth.instance == 1)
        #expect(try await test.registry.room(ofDevice: "dev-1") == fourth)
    }

    @Test func aPatchChangesWhatItSays() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1") {
            $0.owner = "anna"; $0.title = "one"; $0.deviceUid = "dev-1"
        }
        var patch = RoomPatch()
        patch.title = "two"
        patch.owner = .some(nil)
        patch.isPublic = false
        patch.custom = #"{"k":1}"#
        patch.policy = ["grace": 7_000]
        let room = try await test.registry.update("cam1", patch, by: Actor("token:ops"))
        #expect(room.title == "two" && room.owner == nil && !room.isPublic && room.custom == #"{"k":1}"# && room.policy.graceMs == 7_000)
        #expect(room.deviceUid == "dev-1")
        #expect(try await test.registry.room("cam1") == room)
        let data = try fields(try #require(test.events.last))
        #expect(test.kinds == [.roomCreated, .roomUpdated])
        #expect(data["changed"]?.replacing(" ", with: "") == #"["owner","title","custom","isPublic","policy.grace"]"#)
        // No change, no event.
        _ = try await test.registry.update("cam1", patch, by: Actor("token:ops"))
        #expect(test.kinds.count == 2)
        try await test.create("cam2") { $0.deviceUid = "dev-2" }
        var device = RoomPatch()
        device.deviceUid = .some("dev-2")
        await #expect(throws: RegistryError.deviceTaken("dev-2", by: try RoomID(checking: "cam2"))) {
            try await test.registry.update("cam1", device, by: Actor("t"))
        }
        for (field, change) in Self.badPatches {
            var patch = RoomPatch()
            change(&patch)
            let bad = patch
            #expect(await fieldError { try await test.registry.update("cam1", bad, by: Actor("t")) }?.field == field)
        }
        #expect(try await test.registry.room("cam1").title == "two")
        try await test.apply(.close, "cam1")
        await #expect(throws: RegistryError.self) { try await test.registry.update("cam1", patch, by: Actor("t")) }
    }

    private static let badPatches: [(String, @Sendable (inout RoomPatch) -> Void)] = [
        ("title", { $0.title = "\u{7F}" }), ("custom", { $0.custom = "null" }), ("owner", { $0.owner = .some("a b") }),
        ("deviceUid", { $0.deviceUid = .some("") }), ("policy.grace", { $0.policy = ["grace": 86_400_001] }),
        ("policy.x", { $0.policy = ["x": 1] }),
    ]
}
