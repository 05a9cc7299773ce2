import PostgresTestSupport
import TestSupport
import Testing

@testable import RoomRegistry
@testable import Rooms

/// Deadlines after the store was away: nobody could send heartbeats, or push again.
@Suite struct StoreAbsenceTests {
    // MARK: - The rule

    @Test func aLongAbsenceHoldsDeadlinesAndAShortOneDoesNot() {
        var absence = StoreAbsence()
        absence.commitFailed(began: 1_000)
        #expect(!absence.holdsDeadlines(at: 6_000))
        absence.committed(at: 6_000)
        #expect(!absence.holdsDeadlines(at: 6_001) && absence.waitMs(at: 6_001) == 0)
        absence.commitFailed(began: 10_000)
        // Counted from the first of several failures.
        absence.commitFailed(began: 15_000)
        #expect(absence.holdsDeadlines(at: 15_001))
        absence.committed(at: 15_001)
        #expect(absence.holdsDeadlines(at: 35_000) && absence.waitMs(at: 35_000) == 1)
        #expect(!absence.holdsDeadlines(at: 35_001))
    }

    /// A full disk can be read: only a commit ends such an absence.
    @Test func aReadEndsTheAbsenceOfReadsOnly() {
        var absence = StoreAbsence()
        absence.readFailed(began: 0)
        absence.wasRead(at: 5_001)
        #expect(absence.waitMs(at: 5_001) == 20_000)
        absence = StoreAbsence()
        absence.readFailed(began: 0)
        absence.commitFailed(began: 100)
        absence.wasRead(at: 200)
        #expect(absence.holdsDeadlines(at: 5_001) && absence.waitMs(at: 5_001) == 0)
        absence.committed(at: 60_000)
        #expect(absence.waitMs(at: 60_000) == 20_000)
        // Another failure within the wait does not end it.
        absence.commitFailed(began: 61_000)
        absence.committed(at: 62_000)
        #expect(absence.waitMs(at: 62_000) == 18_000)
    }

    /// Where only reads fail, as when connections run out, deadlines wait once: somebody has to apply them.
    @Test func readsThatFailAlone() {
        var absence = StoreAbsence()
        absence.readFailed(began: 0)
        #expect(absence.holdsDeadlines(at: 5_001))
        absence.committed(at: 5_001)
        for at in stride(from: Int64(5_100), through: 60_000, by: 100) { absence.readFailed(began: at) }
        #expect(absence.holdsDeadlines(at: 25_000) && !absence.holdsDeadlines(at: 25_001) && !absence.holdsDeadlines(at: 60_000))
        // Once they worked again, another failure is one.
        absence.wasRead(at: 60_000)
        absence.readFailed(began: 61_000)
        #expect(absence.holdsDeadlines(at: 66_001))
    }

    /// What a call or a push would have moved waits. The ends of bans and of retention do not.
    @Test func bansAndRetentionDoNotWait() throws {
        var room = Room(id: RoomID(stored: "cam1"), slots: [Room.Slot(number: 1, app: "live", name: "cam1")], at: 0)
        _ = try RoomRules.apply(.forbidSlot(1, untilMs: 1_000, reason: ""), to: &room, now: 0)
        #expect(RoomRules.nextDeadline(of: room, isAlone: true) == 1_000)
        #expect(try RoomRules.apply(.tickAlone, to: &room, now: 1_000_000).isEmpty == false)
        #expect(room.state == .created && room.slots[0].forbiddenUntil == nil)
        #expect(RoomRules.nextDeadline(of: room, isAlone: true) == nil)
        #expect(try RoomRules.apply(.tickAlone, to: &room, now: 100_000_000).isEmpty)
        _ = try RoomRules.apply(.expire, to: &room, now: 100_000_000)
        #expect(try RoomRules.apply(.tickAlone, to: &room, now: .max) == [.delete])
    }

    // MARK: - The registry

    /// Rooms whose deadlines pass while the store is away: one lives by heartbeats, one waits for its publisher.
    private func withAbsence(of ms: Int64, _ body: (TestRegistry) async throws -> Void) async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("beat") { $0.policy.neverStartedMs = 3_600_000 }
        try await test.create("cam1")
        let grant = try await test.goLive("live/cam1")
        try await test.apply(.heartbeat(sender: nil), "beat")
        test.registry.pushEnded(grant.sequence, .connectionLost)
        await test.settle()
        test.pass(44_000 - ms)
        try test.refuseWrites(true)
        await #expect(throws: RegistryError.self) { try await test.apply(.heartbeat(sender: nil), "beat") }
        #expect(!(await test.push("live/cam1").isSuccess))
        await test.advance(ms)
        test.pass(2_000)
        try test.refuseWrites(false)
        try await body(test)
    }

    private func states(_ test: TestRegistry) async throws -> [RoomState] {
        [try await test.registry.room("beat").state, try await test.registry.room("cam1").state]
    }

    @Test func nobodyComes() async throws {
        try await self.withAbsence(of: 40_000) { test async throws in
            await test.registry.runDue()
            #expect(try await self.states(test) == [.created, .interrupted])
            await test.advance(19_999)
            #expect(try await self.states(test) == [.created, .interrupted])
            await test.advance(1)
            #expect(try await self.states(test) == [.expired, .expired])
            #expect(try await test.registry.room("beat").reason == .heartbeatLost)
            #expect(try await test.registry.room("cam1").reason == .graceOver)
        }
    }

    /// The first calls after the absence find the rooms as they were.
    @Test func bothComeBack() async throws {
        try await self.withAbsence(of: 40_000) { test async throws in
            try await test.apply(.heartbeat(sender: nil), "beat")
            test.pass(10_000)
            try await test.goLive("live/cam1")
            await test.advance(10_000)
            #expect(try await self.states(test) == [.created, .live])
            await test.advance(30_000)
            #expect(try await self.states(test) == [.expired, .live])
        }
    }

    @Test func aShortAbsenceChangesNothing() async throws {
        try await self.withAbsence(of: 2_000) { test async throws in
            await test.registry.runDue()
            #expect(try await self.states(test) == [.expired, .expired])
        }
    }

    /// A call that is refused leaves the deadlines of its room alone as well.
    @Test func aRefusedCallDoesNotEndTheRoom() async throws {
        try await self.withAbsence(of: 40_000) { test async throws in
            await #expect(throws: RegistryError.self) { try await test.apply(.resume, "beat") }
            #expect(try await self.states(test) == [.created, .interrupted])
        }
    }

    /// The keeper of a cluster waits too, and so does what runs on the others.
    @Test(.enabled(if: TestPostgres.isOn, "on PostgreSQL"), .timeLimit(.minutes(10))) func aClusterWaits() async throws {
        try await TestCluster.with(["a", "b"], proxied: true) { cluster in
            try await eventually("a keeper") { try await cluster["b"].registry.nodes().contains { $0.isKeeper } }
            var policy = RoomPolicy()
            policy.neverStartedMs = 3_000
            _ = try await cluster["b"].registry.create(cluster.room("first", policy), by: Actor("test"))
            for name in ["a", "b"] { cluster[name].proxy?.mode = .away }
            try await eventually("both to know of a long absence", within: 90) {
                for name in ["a", "b"] {
                    let registry = cluster[name].registry
                    guard await registry.absence.holdsDeadlines(at: registry.clock.steadyMs) else { return false }
                }
                return true
            }
            let back = cluster["a"].registry.clock.now()
            for name in ["a", "b"] { cluster[name].proxy?.mode = .passing }
            try await eventually("the deadline", within: 90) {
                try cluster.value("SELECT state FROM rooms WHERE id = 'first'") == "expired"
            }
            let ended = try #require(try await cluster["a"].registry.room("first").endedAt)
            #expect(ended - back >= 18_000, "\(ended - back)")
            try cluster.check()
        }
    }
}
