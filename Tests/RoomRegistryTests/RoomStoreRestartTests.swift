import Foundation
import GRDB
import RoomRegistry
import Store
import Testing

@testable import Rooms

/// A server's start after a kill, and files that it must not touch.
@Suite struct RoomStoreRestartTests {
    @Test func nothingIsMissingAfterAKill() async throws {
        let test = try TestRegistry { $0.webhooks = [WebhookTarget(url: "http://x/", format: .earshot)] }
        defer { test.remove() }
        try await test.registry.start()
        try await test.create("idle")
        try await test.create("live") {
            $0.slots = 2; $0.owner = "anna"
        }
        try await test.create("paused")
        try await test.create("closed")
        try await test.create("banned")
        let grant = try await test.goLive("live/live")
        let paused = try await test.goLive("live/paused")
        test.registry.pauseAnnounced(paused.sequence)
        let waiting = try await test.push("live/idle").get()
        try await test.apply(.close, "closed")
        try await test.apply(.forbid(untilMs: test.now + 3_600_000, reason: "r"), "banned")
        _ = try await test.registry.join("live", user: "anna", nick: "Anna")
        let (token, secret) = try await test.registry.createToken(name: "ops", role: .ops)
        test.registry.floorChanged(
            try RoomID(checking: "live"),
            [
                FloorRecord(kind: .granted, user: "ann", reason: "free", mode: "ptt"),
                FloorRecord(kind: .released, user: "ann", reason: "asked", mode: "ptt", heldMs: 5),
                FloorRecord(kind: .granted, user: "ben", reason: "free", mode: "ptt"),
            ])
        // Floor records are written in order, and before any later change.
        _ = try await test.registry.join("live", user: "ben", nick: "Ben")
        let before = test.events
        let deliveries = try await test.registry.deliveries(state: .pending, room: nil, before: nil, limit: 100)
        test.pass(1_000)

        let next = try await test.restarted { $0.webhooks = [WebhookTarget(url: "http://x/", format: .earshot)] }
        let events = try await next.registry.events(after: 0, room: nil, limit: 1_000)
        #expect(Array(events.prefix(before.count)) == before)
        #expect(Array(events.dropFirst(before.count)) == next.events)
        // Streams end in the order of their pushes; then rooms change in order of creation. A push without media has no end.
        #expect(
            next.events.map { "\($0.roomID?.rawValue ?? "-") \($0.kind.rawValue)" } == [
                "live stream.end", "paused stream.end", "live talk.floor.released", "live room.interrupted",
            ])
        let released = try fields(next.events[2])
        #expect(released["userId"] == "ben" && released["reason"] == "serverRestart" && released["by"] == "server")
        #expect(try fields(next.events[0])["end"] == "serverRestart")
        let room = try await next.registry.room("live")
        #expect(room.state == .interrupted && room.reason == .serverRestart && room.interruptionEnds == next.now + RoomPolicy().graceMs)
        #expect(room.members == 2)
        #expect(try await next.registry.room("paused").reason == .paused)
        #expect(try await next.registry.room("idle").slots[0].sequence == nil)
        #expect(try await next.registry.room("closed").state == .closed)
        #expect(next.registry.playRefusal("live/closed") == .closed && next.registry.playRefusal("live/banned") == .forbidden)
        #expect(try await next.registry.token(secret: secret) == token)
        #expect(
            try await next.registry.deliveries(state: .pending, room: nil, before: nil, limit: 100).suffix(deliveries.count)
                == ArraySlice(deliveries))
        let pushes = try await next.registry.published(path: nil, fromMs: nil, toMs: nil, before: nil, limit: 10)
        #expect(pushes.map(\.end) == [.serverRestart, .serverRestart, .serverRestart])
        #expect(pushes.map(\.sequence) == [waiting.sequence.rawValue, paused.sequence.rawValue, grant.sequence.rawValue])
        // The same publisher returns within its grace period: the same room.
        let back = try await next.goLive("live/live")
        #expect(back.sequence > waiting.sequence)
        #expect(try await next.registry.room("live").state == .live)
        #expect(next.kinds.last == .roomResumed)
    }

    @Test func deadlinesThatPassedMeanwhileAreApplied() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("idle")
        try await test.create("old")
        try await test.apply(.close, "old")
        try await test.create("banned")
        try await test.apply(.forbid(untilMs: test.now + 60_000, reason: "r"), "banned")
        let ghost = StreamPath(app: "live", name: "ghost")
        _ = try await test.registry.forbid(ghost, untilMs: test.now + 60_000, reason: "", by: Actor("t"))
        try await test.create("live")
        try await test.goLive("live/live")
        test.pass(RoomPolicy().retentionMs)
        let next = try await test.restarted()
        #expect(try await next.registry.room("idle").reason == .neverStarted)
        await #expect(throws: RegistryError.noSuchRoom("old")) { try await next.registry.room("old") }
        let banned = try await next.registry.room("banned")
        #expect(banned.state == .expired || banned.state == .created)
        #expect(try await next.registry.ban(of: ghost) == nil)
        #expect(next.registry.playRefusal("live/ghost") == nil && next.registry.playRefusal("live/banned") == nil)
        // It counts as live all that time, so its maximum duration is over.
        let live = try await next.registry.room("live")
        #expect(live.state == .expired && live.reason == .maxDuration)
        for id in ["idle", "live", "banned"] {
            let numbers = try await next.registry.events(after: 0, room: id, limit: 100).map(\.number)
            #expect(numbers == Array(1...Int64(numbers.count)))
        }
    }

    @Test func theTimerRunsByItself() async throws {
        // The real clock; the only test that waits for one.
        let folder = NSTemporaryDirectory() + "earshot-timer-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let registry = try RoomRegistry(.folder(folder), settings: RoomRegistry.Settings())
        try await registry.start()
        var new = NewRoom(policy: RoomPolicy())
        new.policy.neverStartedMs = 1_000
        let begin = ContinuousClock.now
        let room = try await registry.create(new, by: Actor("t"))
        while try await registry.room(room.id.rawValue).state == .created, begin.duration(to: .now) < .seconds(60) {
            try await Task.sleep(for: .milliseconds(20))
        }
        let took = begin.duration(to: .now)
        #expect(try await registry.room(room.id.rawValue).reason == .neverStarted)
        #expect(took >= .milliseconds(990))
        await registry.stop()
    }

    // MARK: - Files

    @Test func aDamagedFileIsNamed() throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Data(repeating: 0x41, count: 8_192).write(to: URL(fileURLWithPath: folder + "/earshot.db"))
        do {
            _ = try RoomRegistry(.folder(folder), settings: RoomRegistry.Settings())
            Issue.record("opened")
        } catch let error as StoreError {
            #expect(error.path == folder + "/earshot.db")
            #expect("\(error)".contains("damaged or not a database") && "\(error)".contains("backup"))
        }
    }

    @Test func aNewerFileIsLeftAlone() throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        _ = try RoomRegistry(.folder(folder), settings: RoomRegistry.Settings())
        try DatabaseQueue(path: folder + "/earshot.db").write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('9 future')") }
        do {
            _ = try RoomRegistry(.folder(folder), settings: RoomRegistry.Settings())
            Issue.record("opened")
        } catch let error as StoreError {
            #expect("\(error)".contains("newer version"))
        }
    }

    @Test func aMissingFolderIsNamed() throws {
        do {
            _ = try RoomRegistry(.folder("/nonexistent/earshot"), settings: RoomRegistry.Settings())
            Issue.record("opened")
        } catch let error as StoreError {
            #expect("\(error)".contains("/nonexistent/earshot/earshot.db") && "\(error)".contains("folder"))
        }
    }

    @Test func twoServersDoNotShareAFolder() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let first = try RoomRegistry(.folder(folder), settings: RoomRegistry.Settings())
        #expect(throws: StoreError.self) { try RoomRegistry(.folder(folder), settings: RoomRegistry.Settings()) }
        await first.stop()
        let second = try RoomRegistry(.folder(folder), settings: RoomRegistry.Settings())
        await second.stop()
    }

    @Test func theFileIsItsOwnersAlone() throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let registry = try RoomRegistry(.folder(folder), settings: RoomRegistry.Settings())
        for name in ["earshot.db", "earshot.db-wal", "earshot.db-shm", "earshot.lock"] {
            let mode = try FileManager.default.attributesOfItem(atPath: "\(folder)/\(name)")[.posixPermissions] as? Int
            #expect(mode == 0o600, "\(name)")
        }
        withExtendedLifetime(registry) {}
    }

    private static func folder() throws -> String {
        let folder = NSTemporaryDirectory() + "earshot-store-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        return folder
    }
}
