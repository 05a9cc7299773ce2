import Dispatch
import Testing

@testable import RoomRegistry
@testable import Store
@testable import Rooms

/// Many calls at once, races, and a store that cannot be written.
@Suite struct RoomRegistryConcurrencyTests {
    @Test func aThousandCallsShareFewCommits() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        // Stands in for a slow disk: the first commit does not end before all calls have arrived.
        let gate = DispatchSemaphore(value: 0)
        async let first = test.registry.result { _ in gate.wait() }
        try await withThrowingTaskGroup(of: Room.self) { group in
            for index in 0..<1_000 { group.addTask { try await test.create("cam\(index)") } }
            try await test.eventually { test.registry.intake.waiting == 1_001 }
            gate.signal()
            try await group.waitForAll()
        }
        _ = await first
        let counters = test.registry.counters
        #expect(counters.operations == 1_001 && counters.commits > 0)
        // The waiting call may have shared its commit with some of the others.
        #expect(counters.commits <= 1 + (1_000 + RoomRegistry.batch - 1) / RoomRegistry.batch, "\(counters.commits) commits")
        // Every event once, and stored in the order in which it was published.
        let stored = try await test.registry.events(after: 0, room: nil, limit: 10_000)
        #expect(stored.map(\.id) == Array(1...1_000))
        #expect(stored == test.events)
        #expect(Set(stored.compactMap(\.roomID)).count == 1_000)
        #expect(try await test.registry.roomCounts()[.created] == 1_000)
        #expect(try await test.registry.lastEventID() == 1_000)
    }

    /// Operations of one batch that are undone leave no gap in the events' numbers, a part of an operation neither.
    @Test func undoneEventsLeaveNoGap() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        try test.registry.store.transaction { store in try undoSomeEvents(store) }
        try await test.create("cam2")
        let ids = try await test.registry.events(after: 0, room: nil, limit: 100).map(\.id)
        #expect(ids == Array(1...(2 + undoneEventsKept)))
        #expect(try await test.registry.lastEventID() == ids.last)
    }

    /// All who close a room have it closed, by one event.
    @Test func oneOfTwoRacingTransitionsWins() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        for index in 0..<50 {
            let id = "cam\(index)"
            try await test.create(id)
            let results = await withTaskGroup(of: Result<Room, RegistryError>.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        do throws(RegistryError) {
                            return .success(try await test.registry.apply(.close, to: id, action: "close", by: Actor("racer")))
                        } catch {
                            return .failure(error)
                        }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            let rooms = try results.map { try $0.get() }
            #expect(rooms.allSatisfy { $0.state == .closed && $0.lastEvent == 2 })
            #expect(try await test.registry.events(after: 0, room: id, limit: 10).map(\.kind) == [.roomCreated, .roomClosed])
        }
    }

    @Test func aFailedOperationLeavesNothingBehind() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1") { $0.slots = 2 }
        // In one batch with calls that succeed. A room whose stream name turns out to be in use leaves nothing behind.
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<20 {
                group.addTask { _ = try? await test.create(index % 2 == 0 ? "ok\(index)" : "cam1-2") }
            }
        }
        #expect(try test.sql(Int.self, "SELECT count(*) FROM rooms") == 11)
        #expect(test.events.count == 11)
        #expect(try test.sql(Int.self, "SELECT count(*) FROM events") == 11)
    }

    @Test func aFullDiskFailsCallsAndTellsNothing() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        try test.fill(true)
        let custom = "{\"a\":\"" + String(repeating: "x", count: 4_000) + "\"}"
        var failures = 0
        for index in 0..<40 {
            do {
                try await test.create("full\(index)") { $0.custom = custom }
            } catch let error as RegistryError {
                if case .storeFailed(let text) = error, text.contains("full") { failures += 1 }
            }
        }
        #expect(failures > 20)
        #expect(test.registry.counters.failedCommits == failures)
        #expect(test.registry.counters.lastFailure?.contains("xxx") == false, "the store's words do not quote what was to be written")
        #expect(try await test.registry.events(after: 0, room: nil, limit: 1_000) == test.events, "what was not stored is not told")
        #expect(try await test.registry.roomCounts()[.created] == test.events.count)
        try test.fill(false)
        try await test.create("later") { $0.custom = custom }
        let all = try await test.registry.events(after: 0, room: nil, limit: 1_000)
        #expect(all == test.events)
        #expect(all.map(\.id) == Array(1...Int64(all.count)))
    }

    @Test func factsWaitForAStoreThatTakesThem() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let grant = try await test.goLive("live/cam1")
        try test.refuseWrites(true)
        test.registry.pushEnded(grant.sequence, .connectionLost)
        #expect(await test.refusal("live/cam1")?.contains(StoreWords.readOnly) == true)
        await #expect(throws: RegistryError.self) { try await test.create("cam2") }
        #expect(try await test.registry.room("cam1").state == .live)
        let told = test.kinds
        try test.refuseWrites(false)
        // Retried by itself, or with the next operation.
        try await test.eventually { try await test.registry.room("cam1").state == .interrupted }
        #expect(Array(test.kinds.dropFirst(told.count)) == [.streamEnd, .roomInterrupted])
        #expect(test.registry.counters.lostFacts == 0)
    }

    /// A store that takes no writes is tried again a second later, not at once: it would have no time for anything else.
    @Test func aStoreThatTakesNothingIsGivenTime() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let grant = try await test.goLive("live/cam1")
        try test.refuseWrites(true)
        let begin = ContinuousClock.now
        test.registry.pushEnded(grant.sequence, .connectionLost)
        try await test.eventually { test.registry.counters.failedCommits >= 2 }
        #expect(ContinuousClock.now - begin >= .milliseconds(990))
        try test.refuseWrites(false)
    }

    @Test func callsAfterTheStopAreRefused() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.registry.start()
        try await test.create("cam1")
        async let many: Void = withTaskGroup(of: Void.self) { group in
            for index in 0..<100 { group.addTask { _ = try? await test.create("late\(index)") } }
        }
        await test.registry.stop()
        await many
        await test.registry.stop()
        await #expect(throws: RegistryError.storeFailed("the server is stopping")) { try await test.create("cam2") }
        if case .failure(.unavailable) = await test.push("live/x", mayCreateRoom: true) {} else { Issue.record("admitted") }
        // Everything that was answered is stored.
        let next = try await test.restarted()
        #expect(try await next.registry.events(after: 0, room: nil, limit: 1_000) == test.events)
    }
}

extension TestRegistry {
    /// Sets a pragma on the writing connection.
    func pragma(_ text: String) throws { try self.registry.store.writerRead { _ = try $0.number("PRAGMA \(text)") } }

    /// Why the store refuses a push; nil if it does not.
    func refusal(_ path: String) async -> String? {
        if case .failure(.unavailable(let text)) = await self.push(path) { text } else { nil }
    }

    func eventually(_ condition: () async throws -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < end {
            if try await condition() { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        Issue.record("did not come true in a minute")
    }

    /// Viewer counts do not pile up while they cannot be written: they are soon measured again.
    @Test func reportsOfViewersDoNotPileUp() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let id = try RoomID(checking: "cam1")
        try test.refuseWrites(true)
        #expect(test.registry.reportViewers([id: 1]))
        for viewers in 2...50 { #expect(!test.registry.reportViewers([id: viewers])) }
        try await test.eventually { test.registry.counters.failedCommits > 0 }
        let before = test.registry.counters.operations
        try test.refuseWrites(false)
        // The row is there before the registry has heard that it is.
        try await test.eventually { test.registry.counters.operations > before }
        #expect(try await test.registry.room("cam1").peak == 1)
        #expect(test.registry.counters.operations == before + 1)
        try await test.eventually { test.registry.reportViewers([id: 7]) }
        await test.settle()
        #expect(try await test.registry.room("cam1").peak == 7)
    }
}

/// How many events ``undoSomeEvents(_:)`` leaves.
let undoneEventsKept: Int64 = 5

/// Adds events and undoes some: those of the first operation, of one behind others, and of a part of the last.
func undoSomeEvents(_ store: StoreAccess) throws {
    struct Undone: Error {}
    func add(_ count: Int) throws {
        for _ in 0..<count {
            _ = try store.insertEvent(.roomRenewed, number: 1, roomID: nil, instance: 0, at: 0, data: "{}", app: nil, subject: nil)
        }
    }
    func undone(_ body: () throws -> Void) throws {
        do {
            try store.savepoint {
                try body()
                throw Undone()
            }
        } catch is Undone {}
    }
    try undone { try add(2) }
    try store.savepoint { try add(2) }
    try undone { try add(3) }
    try store.savepoint {
        try add(2)
        try undone { try add(1) }
        try add(1)
    }
}
