import Testing

@testable import RoomRegistry
@testable import Rooms

/// A device's name stands for slot 1 of its room, wherever a stream is named.
@Suite struct DeviceNameTests {
    private static let ops = Actor("test")

    private static func names(_ test: TestRegistry, _ path: String) async throws -> String {
        await test.registry.stream(named: try #require(StreamPath(path))).description
    }

    @Test func `a stream of that name, then the device, then the name itself`() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        #expect(try await Self.names(test, "live/dev") == "live/dev")
        try await test.create("cam1") {
            $0.deviceUid = "dev"; $0.slots = 2
        }
        try await test.create("stage") {
            $0.deviceUid = "mixer"; $0.app = "event"
        }
        try await test.create("own") { $0.deviceUid = "own" }
        for (name, stream) in [
            ("live/dev", "live/cam1"), ("live/cam1", "live/cam1"), ("live/cam1-2", "live/cam1-2"), ("event/dev", "event/dev"),
            ("live/mixer", "event/stage"), ("event/mixer", "event/stage"), ("other/mixer", "other/mixer"), ("live/own", "live/own"),
            ("live/a/dev", "live/a/dev"), ("live/DEV", "live/DEV"),
        ] {
            #expect(try await Self.names(test, name) == stream, "\(name)")
        }
        // The same for a room by its device, as talk names it: not by another room's stream.
        for (name, room) in [("dev", "cam1"), ("cam1", "cam1"), ("mixer", "stage"), ("own", "own")] {
            #expect(try await test.registry.room(named: name).id.rawValue == room, "\(name)")
        }
        for name in ["cam1-2", "DEV"] {
            await #expect(throws: RegistryError.noSuchRoom(name)) { try await test.registry.room(named: name) }
        }
        // As for pushes, the room that ended last has the device until another room has it.
        try await test.apply(.close, "cam1")
        #expect(try await Self.names(test, "live/dev") == "live/cam1")
        try await test.create("cam2") { $0.deviceUid = "dev" }
        #expect(try await Self.names(test, "live/dev") == "live/cam2")
        #expect(try await test.push("live/dev").get().path.description == "live/cam2")
    }

    @Test func `a ban by the device's name is that of the room's stream`() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1") { $0.deviceUid = "dev" }
        let grant = try await test.goLive("live/dev")
        let name = StreamPath(app: "live", name: "dev")
        let ban = try await test.registry.forbid(name, untilMs: test.now + 60_000, reason: "lens", by: Self.ops)
        #expect(ban.path.description == "live/cam1")
        #expect(test.cuts == ["live/cam1 \(grant.sequence.rawValue) forbidden viewers"])
        #expect(test.registry.playRefusal("live/cam1") == .forbidden)
        #expect(await test.push("live/dev") == .failure(.forbidden(untilMs: test.now + 60_000, reason: "lens")))
        #expect(try await test.registry.resume(name, by: Self.ops)?.id.rawValue == "cam1")
        #expect(test.registry.playRefusal("live/cam1") == nil)
        await #expect(throws: RegistryError.notForbidden(StreamPath(app: "live", name: "cam1"))) {
            try await test.registry.resume(name, by: Self.ops)
        }
        _ = try await test.push("live/dev").get()
    }

    /// Such a ban is known by that name alone, and must not be lost.
    @Test func `a name that was forbidden before its device had a room stays forbidden`() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let name = StreamPath(app: "live", name: "dev")
        _ = try await test.registry.forbid(name, untilMs: test.now + 60_000, reason: "", by: Self.ops)
        try await test.create("cam1") { $0.deviceUid = "dev" }
        #expect(await test.push("live/dev") == .failure(.forbidden(untilMs: test.now + 60_000, reason: "")))
        #expect(try await Self.names(test, "live/dev") == "live/dev")
        #expect(try await test.registry.resume(name, by: Self.ops) == nil)
        #expect(try await test.push("live/dev").get().path.description == "live/cam1")
    }

    @Test func `no room's stream shadows another room's device`() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let (cam, dev) = (RoomID(stored: "cam1"), StreamPath(app: "live", name: "dev"))
        try await test.create("cam1") { $0.deviceUid = "dev" }
        await #expect(throws: RegistryError.nameTaken(dev, by: cam, field: "roomId")) { try await test.create("dev") }
        let taken = RegistryError.nameTaken(StreamPath(app: "live", name: "cam1"), by: cam, field: "deviceUid")
        await #expect(throws: taken) { try await test.create("cam2") { $0.deviceUid = "cam1" } }
        await #expect(throws: taken) {
            // Its streams are of another app, but devices push to `live` too.
            try await test.create("cam2") {
                $0.deviceUid = "cam1"; $0.app = "event"
            }
        }
        try await test.create("cam2")
        var patch = RoomPatch()
        patch.deviceUid = .some("cam1")
        await #expect(throws: taken) { try await test.registry.update("cam2", patch, by: Self.ops) }
        #expect(try await test.registry.room("cam2").deviceUid == nil)
        // Another app's stream is not in the device's way, and a room that has ended has no device.
        try await test.create("dev") { $0.app = "event" }
        try await test.registry.delete("dev", by: Self.ops)
        try await test.apply(.expire, "cam1")
        try await test.create("dev")
        #expect(try await Self.names(test, "live/dev") == "live/dev")
    }

    @Test func `rooms are found by their device`() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1") { $0.deviceUid = "EAR-7" }
        try await test.apply(.close, "cam1")
        try await test.create("cam2") { $0.deviceUid = "EAR-7" }
        try await test.create("cam3") { $0.deviceUid = "EAR-8" }
        func found(_ change: (inout RoomQuery) -> Void) async throws -> [String] {
            var query = RoomQuery()
            query.order = .id
            change(&query)
            let page = try await test.registry.rooms(query)
            #expect(page.total == page.rooms.count)
            return page.rooms.map(\.id.rawValue)
        }
        #expect(try await found { $0.deviceUid = "EAR-7" } == ["cam1", "cam2"])
        #expect(
            try await found {
                $0.deviceUid = "EAR-7"; $0.states = [.created]
            } == ["cam2"])
        #expect(try await found { $0.text = "ear-8" } == ["cam3"])
        #expect(
            try await found {
                $0.text = "cam"; $0.deviceUid = "EAR-8"
            } == ["cam3"])
        await #expect(throws: RegistryError.self) { _ = try await found { $0.deviceUid = "a/b" } }
    }
}
