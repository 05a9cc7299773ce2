import Foundation
import RoomTestSupport
import Support
import Testing

@testable import RoomRegistry
@testable import Store
@testable import Rooms

/// A wall clock that leaps under a registry.
@Suite struct RoomLeapTests {
    private static let week: Int64 = 7 * 86_400_000
    private static let holdMs: Int64 = 600_000

    private static func run(_ body: (TestRegistry, TestClocks) async throws -> Void) async throws {
        let clocks = TestClocks()
        let test = try TestRegistry(clock: clocks.clock(holdMs: Self.holdMs)) {
            $0.webhooks = [WebhookTarget(url: "http://192.0.2.9/hook", format: .earshot)]
        }
        defer { test.remove() }
        try await test.registry.start()
        try await body(test, clocks)
    }

    /// Lets time pass as a server does, second by second at first.
    private static func live(_ test: TestRegistry, _ clocks: TestClocks, _ ms: Int64) async {
        for step in [1_000, 1_000, ms - 2_000] where step > 0 {
            clocks.pass(step)
            test.registry.watchClock()
            await test.settle()
            await test.registry.runDue()
        }
    }

    private static func clockKinds(_ test: TestRegistry) -> [String] {
        test.kinds.map(\.rawValue).filter { $0.hasPrefix("clock.") }
    }

    /// The adopted leaps: milliseconds, and the number of rooms moved.
    private static func adoptions(_ test: TestRegistry) -> [[Int64]] {
        test.outcomes.compactMap { if case .clockAdopted(let byMs, let rooms) = $0 { [byMs, Int64(rooms)] } else { nil } }
    }

    @Test(arguments: [Self.week, -Self.week]) func aShortLeapChangesNothing(_ leap: Int64) async throws {
        try await Self.run { test, clocks in
            try await test.create("cam1")
            try await test.goLive("live/cam1")
            try await test.create("waiting")
            try await test.create("over")
            try await test.apply(.expire, "over")
            let before = try await test.registry.room("cam1")
            clocks.leap(leap)
            await Self.live(test, clocks, 10_000)
            #expect(try await test.registry.room("cam1") == before)
            clocks.leap(-leap)
            await Self.live(test, clocks, 10_000)
            #expect(try await test.registry.room("cam1") == before)
            #expect(try await test.registry.room("waiting").state == .created)
            #expect(try await test.registry.room("over").state == .expired)
            #expect(Self.clockKinds(test) == ["clock.leapt"], "one event")
            let event = try #require(test.events.last { $0.kind == .clockLeapt })
            let data = try fields(event)
            #expect(data["byMs"] == "\(leap)" && data["holdMs"] == "\(Self.holdMs)")
            // A second may pass before the clock is read.
            let adoptsAt = [0, 1_000].map { Instant.text(TestRegistry.start + $0 + Self.holdMs) }
            #expect(adoptsAt.contains(data["adoptsAt"] ?? ""), "\(data)")
            // New events carry the present time.
            try await test.apply(.close, "cam1")
            #expect(test.events.last?.at == TestRegistry.start + 20_000)
        }
    }

    @Test(arguments: [Self.week, -Self.week]) func aLeapThatHoldsMovesEverythingAtOnce(_ leap: Int64) async throws {
        try await Self.run { test, clocks in
            try await test.create("cam1")
            try await test.create("waiting") { $0.policy.neverStartedMs = 3_600_000 }
            try await test.create("banned") { $0.policy.neverStartedMs = 7 * 86_400_000 }
            let bannedUntil = TestRegistry.start + 20 * 86_400_000
            try await test.apply(.forbid(untilMs: bannedUntil, reason: "why"), "banned")
            _ = try await test.registry.join("waiting", user: "u", nick: "")
            try await test.registry.kick("waiting", user: "u", forMs: 3_600_000, by: Actor("test"))
            try await test.create("over")
            try await test.apply(.expire, "over")
            let grant = try await test.goLive("live/cam1")
            let live = try await test.registry.room("cam1")
            let told = test.events.count
            clocks.leap(leap)
            await Self.live(test, clocks, Self.holdMs)
            // Nothing moves until the leap has held.
            #expect(try await test.registry.room("cam1") == live)
            #expect(test.registry.now == TestRegistry.start + Self.holdMs)
            await Self.live(test, clocks, 3_000)
            #expect(test.registry.now == clocks.wallMs)
            // One event, which announced this moment.
            #expect(test.events.dropFirst(told).map(\.kind) == [.clockLeapt])
            #expect(Self.adoptions(test) == [[leap, 4]])
            let moved = try await test.registry.room("cam1")
            #expect(moved.state == .live)
            #expect(moved.createdAt == live.createdAt + leap && moved.liveSince == live.liveSince.map { $0 + leap })
            #expect(moved.durationFrom == live.durationFrom.map { $0 + leap })
            // Callers that compare versions see the change.
            #expect(moved.version != live.version)
            // Set by a caller: this time stays, whatever the clock was.
            let banned = try await test.registry.room("banned")
            #expect(banned.state == .forbidden && banned.forbiddenUntil == bannedUntil)
            #expect(banned.slots[0].forbiddenUntil == bannedUntil)
            #expect(try await test.registry.ban(of: StreamPath(app: "live", name: "banned"))?.resumeAt == bannedUntil)
            #expect(try await test.registry.room("over").state == .expired)
            // Future times stay as far away as they were: an hour, not a week.
            let keptOut = try #require(test.registry.keptOut("u", of: "live/waiting"))
            #expect(keptOut - test.registry.now == 3_600_000 - Self.holdMs - 3_000)
            #expect(try test.sql(Int64.self, "SELECT due_at FROM webhook_deliveries ORDER BY id LIMIT 1") == TestRegistry.start + leap)
            #expect(try test.sql(Int.self, "SELECT count(*) FROM webhook_deliveries WHERE state <> 'pending'") == 0)
            await Self.live(test, clocks, 3_600_000 - Self.holdMs - 3_001)
            #expect(try await test.registry.room("waiting").state == .created)
            await Self.live(test, clocks, 3_000)
            #expect(try await test.registry.room("waiting").reason == .neverStarted)
            // Durations count the time that really passed.
            test.registry.pushEnded(grant.sequence, .clientStopped)
            await test.settle()
            let end = try #require(test.events.last { $0.kind == .streamEnd })
            #expect(try fields(end)["durationMs"] == "\(clocks.steadyMs - 50_000)")
            #expect(end.at == clocks.wallMs)
        }
    }

    @Test func aWrongClockThatWasBelievedIsFollowedBack() async throws {
        try await Self.run { test, clocks in
            try await test.create("cam1")
            try await test.goLive("live/cam1")
            let before = try await test.registry.room("cam1")
            clocks.leap(Self.week)
            await Self.live(test, clocks, Self.holdMs + 3_000)
            clocks.leap(-Self.week)
            await Self.live(test, clocks, Self.holdMs + 3_000)
            let after = try await test.registry.room("cam1")
            #expect(after.state == .live && after.createdAt == before.createdAt && after.liveSince == before.liveSince)
            #expect(Self.clockKinds(test) == ["clock.leapt", "clock.leapt"])
            #expect(Self.adoptions(test) == [[Self.week, 1], [-Self.week, 1]])
            try await test.apply(.close, "cam1")
            #expect(test.events.last?.at == clocks.wallMs)
            // The timer runs by the new time: no ban ends a week late.
            let soon = test.registry.now + 60_000
            _ = try await test.registry.forbid(StreamPath(app: "live", name: "x"), untilMs: soon, reason: "", by: Actor("t"))
            await Self.live(test, clocks, 61_000)
            #expect(try await test.registry.ban(of: StreamPath(app: "live", name: "x")) == nil)
        }
    }

    /// Closed rooms are history: their times stay, and they are kept as long as before. Expired ones may be opened again.
    @Test(arguments: [Self.week, -Self.week]) func endedRoomsKeepTheirTimes(_ leap: Int64) async throws {
        try await Self.run { test, clocks in
            let retention: Int64 = 24 * 3_600_000
            for id in ["shut", "over"] { try await test.create(id) { $0.policy.retentionMs = retention } }
            _ = try await test.registry.join("shut", user: "u", nick: "")
            clocks.pass(1_000)
            try await test.apply(.close, "shut")
            try await test.apply(.expire, "over")
            let (shut, over) = (try await test.registry.room("shut"), try await test.registry.room("over"))
            let joinedAt = try test.sql(Int64.self, "SELECT joined_at FROM members")
            clocks.leap(leap)
            await Self.live(test, clocks, Self.holdMs + 3_000)
            #expect(Self.adoptions(test) == [[leap, 1]])
            let stayed = try await test.registry.room("shut")
            #expect(stayed.createdAt == shut.createdAt && stayed.endedAt == shut.endedAt && stayed.version == shut.version)
            #expect(try test.sql(Int64.self, "SELECT joined_at FROM members") == joinedAt)
            let moved = try await test.registry.room("over")
            #expect(moved.createdAt == over.createdAt + leap && moved.endedAt == over.endedAt.map { $0 + leap })
            let freeAt = RoomRules.nextDeadline(of: stayed)
            #expect(freeAt == test.registry.now + retention - Self.holdMs - 3_000)
            #expect(RoomRules.nextDeadline(of: moved) == freeAt)
            await #expect(throws: RegistryError.idTaken(RoomID(stored: "shut"), state: .closed, freeAt: freeAt)) {
                try await test.create("shut")
            }
            // A second leap moves that end again.
            clocks.leap(-leap)
            await Self.live(test, clocks, Self.holdMs + 3_000)
            #expect(RoomRules.nextDeadline(of: try await test.registry.room("shut")) == shut.endedAt.map { $0 + retention })
            await Self.live(test, clocks, retention - 2 * (Self.holdMs + 3_000) - 1_000)
            #expect(try await test.registry.room("shut").state == .closed)
            #expect(try await test.registry.room("over").state == .expired)
            await Self.live(test, clocks, 3_000)
            #expect(try test.sql(Int.self, "SELECT count(*) FROM rooms") == 0)
        }
    }

    /// The device's room that ended last opens again, whichever times moved.
    @Test(arguments: [Self.week, -Self.week]) func aDevicesLastRoomIsFoundAfterALeap(_ leap: Int64) async throws {
        for closesLast in [false, true] {
            try await Self.run { test, clocks in
                for (id, closes) in [("first", !closesLast), ("last", closesLast)] {
                    try await test.create(id) { $0.deviceUid = "dev1" }
                    clocks.pass(60_000)
                    try await test.apply(closes ? .close : .expire, id)
                }
                clocks.leap(leap)
                await Self.live(test, clocks, Self.holdMs + 3_000)
                let room = try test.sql(
                    String.self,
                    "SELECT id FROM rooms WHERE state = '\(closesLast ? "closed" : "expired")'")
                #expect(room == "last")
                #expect(try await test.registry.store.read { try $0.room(ofDevice: "dev1")?.id.rawValue } == "last")
            }
        }
    }

    /// One transaction moves all deadlines of a believed leap, whatever calls wait beside it.
    @Test func callsBesideTheLeap() async throws {
        try await Self.run { test, clocks in
            for number in 0..<50 { try await test.create("r\(number)") { $0.policy.neverStartedMs = 3_600_000 } }
            clocks.leap(Self.week)
            test.registry.watchClock()
            clocks.pass(Self.holdMs)
            await withTaskGroup(of: Void.self) { group in
                for number in 50..<150 {
                    group.addTask { _ = try? await test.create("r\(number)") { $0.policy.neverStartedMs = 3_600_000 } }
                    if number == 100 { group.addTask { test.registry.watchClock() } }
                }
            }
            await test.settle()
            #expect(test.registry.now == clocks.wallMs)
            await test.registry.runDue()
            for number in 0..<150 {
                let room = try await test.registry.room("r\(number)")
                #expect(room.state == .created)
                #expect((clocks.wallMs - Self.holdMs...clocks.wallMs).contains(room.createdAt), "\(number)")
            }
        }
    }

    // MARK: - Restarts

    @Test func aRestartKeepsTheTime() async throws {
        try await Self.run { test, clocks in
            try await test.create("cam1") { $0.policy.neverStartedMs = 3_600_000 }
            await test.registry.stop()
            // While it is stopped: half an hour, and a wrong clock.
            clocks.pass(1_800_000)
            clocks.leap(Self.week)
            let next = try TestRegistry(directory: test.directory, clock: clocks.clock(holdMs: Self.holdMs))
            try await next.registry.start()
            #expect(next.registry.now == TestRegistry.start + 1_800_000)
            #expect(try await next.registry.room("cam1").state == .created)
            await Self.live(next, clocks, Self.holdMs + 3_000)
            #expect(next.registry.now == clocks.wallMs)
            #expect(try await next.registry.room("cam1").state == .created)
            await Self.live(next, clocks, 1_800_000)
            #expect(try await next.registry.room("cam1").reason == .neverStarted)
            await next.registry.stop()
        }
    }

    @Test func aMachineWithoutTimeGoesOnFromWhatIsStored() async throws {
        try await Self.run { test, clocks in
            try await test.create("cam1")
            await test.registry.stop()
            let reborn = TestClocks(wall: 86_400_000, steady: 1_000, boot: "boot-2")
            let next = try TestRegistry(directory: test.directory, clock: reborn.clock(holdMs: Self.holdMs))
            try await next.registry.start()
            #expect(next.registry.now >= TestRegistry.start)
            #expect(try await next.registry.room("cam1").state == .created)
            try await next.create("cam2")
            #expect(next.events.last.map { $0.at >= TestRegistry.start } == true)
            await next.registry.stop()
        }
    }

    // MARK: - Housekeeping

    /// Old rows are found even where a clock set back made newer rows older.
    @Test func oldRowsAreFoundInAnyOrder() async throws {
        let test = try TestRegistry { $0.historyMs = 7_200_000 }
        defer { test.remove() }
        try await test.registry.start()
        try await test.create("cam1") { $0.policy.neverStartedMs = 7 * 86_400_000 }
        for _ in 0..<20 { try await test.apply(.renew(byMs: 1), "cam1") }
        // The first ones are in the future.
        try test.execute("UPDATE events SET at = at + 864000000 WHERE id <= 10")
        await test.advance(7_200_001)
        #expect(try test.sql(Int.self, "SELECT count(*) FROM events") == 10)
        #expect(try test.sql(Int64.self, "SELECT max(id) FROM events") == 10)
    }

    /// The same for pushes, deliveries delivered or given up, and stored answers.
    @Test func oldRowsOfEveryKindAreFoundInAnyOrder() async throws {
        let test = try TestRegistry { $0.historyMs = 7_200_000 }
        defer { test.remove() }
        try await test.registry.start()
        let (old, new) = (TestRegistry.start - 7_200_001, TestRegistry.start)
        let answersMs = StoreAccess.answersMs
        // The first three ids of each kind are recent, the last three old.
        for number in 1...6 {
            let at = number <= 3 ? new : old
            try test.execute(
                """
                INSERT INTO pushes (sequence, app, name, room_id, slot, client_address, session, parameters, query, started_at,
                    ended_at) VALUES (\(number), 'live', 'cam1', 'cam1', 1, '192.0.2.1', 1, '', '', \(at - 1), \(at - 1));
                INSERT INTO answers (token_id, key, fingerprint, created_at)
                    VALUES (1, 'key-\(number)', 'f', \(number <= 3 ? new : new - answersMs - 1));
                """)
            for (index, state) in [WebhookDelivery.State.delivered, .failed, .pending].enumerated() {
                try test.execute(
                    """
                    INSERT INTO webhook_deliveries (id, url, format, lane, event_id, number, kind, room_id, instance, at, data, state, attempts,
                        due_at, is_head)
                    VALUES (\(index * 6 + number), 'http://192.0.2.9/', 'earshot', 'lane-\(number)', \(number), 1, 'room.created', 'cam1', 1,
                        \(at - 1), '{}', '\(state.rawValue)', 0, \(new + 86_400_000), 0)
                    """)
            }
        }
        func ids(_ sql: String) throws -> String? { try test.sql(String.self, StoreWords.list("id", from: sql)) }
        await test.advance(60_000)
        // Deliveries that waited too long are given up, and deleted in the next round.
        #expect(try ids("SELECT id FROM webhook_deliveries WHERE state = 'failed' ORDER BY id") == "7,8,9,16,17,18")
        await test.advance(60_000)
        #expect(try ids("SELECT sequence AS id FROM pushes ORDER BY id") == "1,2,3")
        #expect(try ids("SELECT key AS id FROM answers ORDER BY id") == "key-1,key-2,key-3")
        #expect(try ids("SELECT id FROM webhook_deliveries WHERE state = 'delivered' ORDER BY id") == "1,2,3")
        #expect(try ids("SELECT id FROM webhook_deliveries WHERE state = 'pending' ORDER BY id") == "13,14,15")
        #expect(try ids("SELECT id FROM webhook_deliveries WHERE state = 'failed' ORDER BY id") == "7,8,9")
    }

    @Test func aBelievedLeapForgetsAPartOfTheHistory() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.registry.start()
        try test.execute(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
            INSERT INTO events (room_id, number, kind, instance, at, data) SELECT NULL, 0, 'room.created', 1, \(TestRegistry.start), '{}' FROM n
            """)
        await test.advance(8 * 86_400_000)
        for _ in 0..<30 { await test.advance(101) }
        #expect(try test.sql(Int.self, "SELECT count(*) FROM events") == 18_000)
        await test.advance(3_600_000)
        for _ in 0..<30 { await test.advance(101) }
        #expect(try test.sql(Int.self, "SELECT count(*) FROM events") == 16_200)
    }

    @Test func whatBelongsToARoomGoesWithIt() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.registry.start()
        func rows() throws -> [Int] {
            try ["talk_settings", "talk_members", "kicks", "members", "slots", "room_words"].map {
                try test.sql(Int.self, "SELECT count(*) FROM \($0)") ?? -1
            }
        }
        for end in ["delete", "retention"] {
            let id = try RoomID(checking: "cam-\(end)")
            try await test.create("cam-\(end)") { $0.policy.retentionMs = 60_000 }
            try await test.registry.changeTalkSettings(of: id, from: TalkSettings(), { $0.mode = .ptt }, stored: { _ in })
            _ = try await test.registry.changeTalkMember("u", of: id, { $0.isMuted = true }, stored: { _ in })
            _ = try await test.registry.join(id.rawValue, user: "u", nick: "")
            try await test.registry.kick(id.rawValue, user: "u", forMs: 3_600_000, by: Actor("test"))
            _ = try await test.registry.join(id.rawValue, user: "v", nick: "")
            #expect(try rows() == [1, 1, 1, 1, 1, 1])
            #expect(test.registry.keptOut("u", of: id) != nil)
            if end == "delete" {
                try await test.registry.delete(id.rawValue, by: Actor("test"))
            } else {
                try await test.apply(.close, id.rawValue)
                await test.advance(60_001)
            }
            #expect(try rows() == [0, 0, 0, 0, 0, 0], "\(end)")
            #expect(test.registry.keptOut("u", of: id) == nil)
            // The next room of that name starts without them.
            try await test.create("cam-\(end)")
            #expect(try await test.registry.talkSettings(id) == nil)
            #expect(try await test.registry.talkMembers(id) == [])
            try await test.registry.delete(id.rawValue, by: Actor("test"))
        }
    }
}
