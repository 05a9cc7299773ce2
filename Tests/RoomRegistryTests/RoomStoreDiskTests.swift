import Synchronization
import Testing

@testable import RoomRegistry
@testable import Rooms

/// The store when its disk is nearly full, or cannot be written.
@Suite struct RoomStoreDiskTests {
    /// Free bytes, as set by a test.
    private final class Disk: Sendable {
        let free = Mutex<Int64>(1_000)
        var floor: DiskFloor { DiskFloor(minFreeBytes: 100) { self.free.withLock { $0 } } }
    }

    @Test func nothingNewBeginsAndWhatRunsGoesOn() async throws {
        let disk = Disk()
        let test = try TestRegistry { $0.disk = disk.floor }
        defer { test.remove() }
        try await test.create("cam1")
        try await test.create("cam2")
        let running = try await test.goLive("live/cam1")
        #expect(test.registry.storeStatus.problem == nil)
        disk.free.withLock { $0 = 99 }
        let refusal = PushRefusal.diskFull(freeBytes: 99, minFreeBytes: 100)
        #expect(await test.push("live/new", mayCreateRoom: true) == .failure(refusal))
        #expect(await test.push("live/cam2") == .failure(refusal), "a room that has not begun")
        await #expect(throws: RegistryError.diskFull(freeBytes: 99, minFreeBytes: 100)) { try await test.create("cam3") }
        #expect(test.registry.storeStatus.isShortOfDisk)
        #expect(test.registry.storeStatus.problem?.contains("data.minFree") == true)
        // The stream's connection breaks, and its device comes back.
        test.registry.pushEnded(running.sequence, .connectionLost)
        await test.settle()
        #expect(try await test.registry.room("cam1").state == .interrupted)
        try await test.goLive("live/cam1")
        #expect(try await test.registry.room("cam1").state == .live)
        try await test.apply(.close, "cam1")
        disk.free.withLock { $0 = 100 }
        #expect(try await test.push("live/new", mayCreateRoom: true).get().roomID.rawValue == "new")
        #expect(test.registry.storeStatus.problem == nil)
    }

    /// Facts that wait for a store that cannot be written are limited in number. Calls do not wait behind them.
    @Test func waitingFactsAreBounded() async throws {
        let test = try TestRegistry { $0.intake = SubmissionQueue.Limits(calls: 100_000, facts: 800, factBytes: 1 << 30) }
        defer { test.remove() }
        try await test.create("cam1")
        let grant = try await test.goLive("live/cam1")
        try test.refuseWrites(true)
        test.registry.pushEnded(grant.sequence, .connectionLost)
        for index in 0..<3_000 {
            test.registry.floorChanged(grant.roomID, [FloorRecord(kind: .granted, user: "u\(index)", reason: "test", mode: "open")])
        }
        #expect(await test.refusal("live/cam1")?.contains(StoreWords.readOnly) == true)
        try await test.eventually { test.registry.storeStatus.isFailing }
        let status = test.registry.storeStatus
        // The batch being tried just now does not count as waiting.
        #expect(status.waitingFacts <= 800 && status.droppedFacts >= 3_001 - 800 - 256, "\(status)")
        #expect(status.problem?.contains("cannot be written") == true)
        try test.refuseWrites(false)
        try await test.eventually { try await test.registry.room("cam1").state == .interrupted }
        try await test.eventually { !test.registry.storeStatus.isFailing && test.registry.storeStatus.waitingFacts == 0 }
        await test.settle()
        // The push's end was the oldest fact but no audit trail: it was not dropped. The trail keeps its newest entries.
        let last = try await test.registry.events(after: 0, room: "cam1", limit: 10_000).last { $0.kind == .floorGranted }
        #expect(last?.data.contains("u2999") == true, "\(String(describing: last))")
    }

    @Test func theOldestOfTheTrailGoFirst() {
        let intake = SubmissionQueue(SubmissionQueue.Limits(calls: 100, facts: 16, factBytes: 1 << 20))
        let clock = RoomClock(now: { 0 })
        let dropped = Mutex<[Int]>([])
        func submit(_ kind: Operation.Kind, _ number: Int, bytes: Int = 512) {
            _ = intake.submit(kind, clock: clock) { now in
                Operation(kind: kind, bytes: bytes, now: now, run: { _ in {} }, fail: { _ in dropped.withLock { $0.append(number) } })
            }
        }
        for number in 0..<16 { submit(number % 2 == 0 ? .fact : .trail, number) }
        submit(.call, 100)
        #expect(dropped.withLock { $0 } == [])
        submit(.trail, 16)
        #expect(dropped.withLock { $0 } == [1, 3, 5])
        for number in 17..<40 { submit(.fact, number) }
        // Facts are kept as long as there is a trail to drop.
        #expect(Array(dropped.withLock { $0 }.prefix(9)) == [1, 3, 5, 7, 9, 11, 13, 15, 16])
        #expect(intake.facts.waiting <= 16 && intake.facts.dropped == dropped.withLock { $0.count })
        #expect(!dropped.withLock { $0 }.contains(100) && !dropped.withLock { $0 }.contains(39))
        // The byte limit drops entries too.
        submit(.trail, 40, bytes: 2 << 20)
        #expect(dropped.withLock { $0.contains(40) } && intake.facts.bytes <= 1 << 20)
        // Facts that the store rejected go back in front; waiting calls are returned.
        let first = intake.pop(3)
        let waiting = intake.facts.waiting
        #expect(first.map(\.kind) == [.call, .fact, .fact])
        submit(.call, 101)
        #expect(intake.putBack(first.filter(\.kind.isFact)).map(\.kind) == [.call])
        #expect(intake.facts.waiting == waiting + 2)
    }

    /// Each limit drops for itself: too many facts of just as many bytes as may wait cost an eighth of the facts, not of the bytes.
    @Test func bytesAtTheirLimitDropNothing() {
        let intake = SubmissionQueue(SubmissionQueue.Limits(calls: 100, facts: 16, factBytes: 1_016))
        let clock = RoomClock(now: { 0 })
        for bytes in Array(repeating: 1, count: 16) + [1_000] {
            _ = intake.submit(.fact, clock: clock) { Operation(kind: .fact, bytes: bytes, now: $0, run: { _ in {} }, fail: { _ in }) }
        }
        #expect(intake.facts == (14, 1_013, 3))
        // One byte over the limit: down to seven eighths.
        _ = intake.submit(.fact, clock: clock) { Operation(kind: .fact, bytes: 4, now: $0, run: { _ in {} }, fail: { _ in }) }
        #expect(intake.facts == (1, 4, 17))
    }

    /// A refused push to a name in use leaves nothing behind.
    @Test func refusedPushesAreNotKept() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let first = try await test.goLive("live/cam1")
        for _ in 0..<20 {
            let second = try await test.push("live/cam1", from: "192.0.2.9").get()
            test.registry.pushEnded(second.sequence, .refused)
        }
        await test.settle()
        #expect(try test.sql(Int.self, "SELECT count(*) FROM pushes") == 1)
        #expect(try await test.registry.room("cam1").slots[0].sequence == first.sequence.rawValue)
        // Numbers are never reused.
        #expect(try await test.push("live/cam1").get().sequence.rawValue > first.sequence.rawValue + 20)
    }

    @Test func ofALongQueryTheBeginningIsKept() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let query = String(repeating: "a", count: 511) + "ä" + String(repeating: "b", count: 4_000)
        let request = PushRequest(
            path: StreamPath(app: "live", name: "cam1"), clientAddress: "192.0.2.1", session: 1, parameters: query, mayCreateRoom: false)
        let grant = try await test.registry.admitPush(request).get()
        test.registry.mediaArrived(grant.sequence, MediaSummary())
        await test.settle()
        let kept = try test.sql(String.self, "SELECT parameters FROM pushes")
        #expect(kept == String(repeating: "a", count: 511))
        let begin = try #require(test.events.first { $0.kind == .streamBegin })
        #expect(try fields(begin)["parameters"] == kept)
    }

    /// The pacing check runs for each room to be created, and for no other push.
    @Test func roomsArePacedWherePushesMakeThem() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let left = Mutex(2)
        func push(_ name: String) async -> Result<PushGrant, PushRefusal> {
            await test.registry.admitPush(
                PushRequest(
                    path: StreamPath(app: "live", name: name), clientAddress: "192.0.2.1", session: 1, parameters: "", mayCreateRoom: true)
            ) {
                left.withLock { left in
                    left -= 1
                    return left < 0 ? 2.5 : nil
                }
            }
        }
        for name in ["a", "b", "a", "b"] { _ = try await push(name).get() }
        #expect(await push("c") == .failure(.tooManyRooms(waitSeconds: 2.5)))
        #expect(try test.sql(Int.self, "SELECT count(*) FROM rooms") == 2)
        #expect(try test.sql(Int.self, "SELECT count(*) FROM pushes") == 4)
    }
}
