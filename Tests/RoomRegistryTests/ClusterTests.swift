import Foundation
import PostgresTestSupport
import Support
import Synchronization
import TestSupport
import Testing

@testable import RoomRegistry
@testable import Store
@testable import Rooms

/// Several registries on one database, each as a server of its own.
@Suite(.enabled(if: TestPostgres.isOn, "on PostgreSQL")) struct ClusterTests {
    // MARK: - Tables and events on all nodes

    @Test func whatOneNodeChangesAllKnow() async throws {
        try await TestCluster.with { cluster in
            let (a, b, c) = (cluster["a"], cluster["b"], cluster["c"])
            let room = try await a.registry.create(cluster.room("cam1"), by: Actor("test"))
            #expect(try await c.registry.room("cam1").id == room.id)
            let path = room.slots[0].path
            _ = try await c.registry.forbid(path, untilMs: a.registry.now + 3_600_000, reason: "test", by: Actor("test"))
            try await eventually("the ban") { [a, b].allSatisfy { $0.registry.playRefusal(path.description) == .forbidden } }
            try await b.registry.resume(path, by: Actor("test"))
            try await eventually("its end") { [a, c].allSatisfy { $0.registry.playRefusal(path.description) == nil } }
            _ = try await b.registry.join("cam1", user: "eve", nick: "")
            try await a.registry.kick("cam1", user: "eve", by: Actor("test"))
            try await eventually("the kick") { c.registry.keptOut("eve", of: path.description) != nil }
            _ = try await b.registry.apply(.close, to: "cam1", action: "close", by: Actor("test"))
            try await eventually("the close") { [a, c].allSatisfy { $0.registry.playRefusal(path.description) == .closed } }
        }
    }

    /// Every node publishes every event once, in the order of their numbers.
    @Test func everyNodeHasAllEvents() async throws {
        try await TestCluster.with { cluster in
            let nodes = ["a", "b", "c"].map { cluster[$0] }
            await withTaskGroup(of: Void.self) { tasks in
                for (number, node) in nodes.enumerated() {
                    tasks.addTask {
                        for round in 0..<20 {
                            _ = try? await node.registry.create(cluster.room("r\(number)-\(round)"), by: Actor("test"))
                            _ = try? await node.registry.like("r\(number)-\(round)", count: 1)
                        }
                    }
                }
            }
            let all = try await nodes[0].registry.events(after: 0, room: nil, limit: 1_000).map(\.id)
            #expect(all.count == 60 && all == Array(1...Int64(all.count)))
            try await eventually("all events on all nodes") { nodes.allSatisfy { $0.events.count >= all.count } }
            for node in nodes { #expect(node.events == all, "\(node.name)") }
        }
    }

    /// What a node undoes within a batch leaves no gap, a part of an operation too.
    @Test func undoneEventsLeaveNoGap() async throws {
        try await TestCluster.with(["a", "b"]) { cluster in
            let (a, b) = (cluster["a"], cluster["b"])
            _ = try await a.registry.create(cluster.room("cam1"), by: Actor("test"))
            try a.registry.store.transaction { store in try undoSomeEvents(store) }
            _ = try await b.registry.create(cluster.room("cam2"), by: Actor("test"))
            try cluster.check()
            #expect(try await b.registry.lastEventID() == 2 + undoneEventsKept)
        }
    }

    /// A node where nobody reads events acts on their marks, and fetches events again when somebody comes.
    @Test func eventsThatNobodyReads() async throws {
        try await TestCluster.with(["a", "b"]) { cluster in
            let (a, b) = (cluster["a"], cluster["b"])
            let isRead = Mutex(false)
            b.registry.update { $0.readsEvents = { isRead.withLock { $0 } } }
            let room = try await a.registry.create(cluster.room("cam1"), by: Actor("test"))
            _ = try await a.registry.apply(.close, to: "cam1", action: "close", by: Actor("test"))
            try await eventually("the marks") { b.marks.count == 2 }
            #expect(
                b.marks == [EventMark(id: 1, kind: .roomCreated, roomID: room.id), EventMark(id: 2, kind: .roomClosed, roomID: room.id)])
            #expect(b.registry.playRefusal(room.slots[0].path.description) == .closed)
            isRead.withLock { $0 = true }
            _ = try await a.registry.create(cluster.room("cam2"), by: Actor("test"))
            try await eventually("the event") { b.events.count == 3 }
            #expect(b.events == [1, 2, 3] && b.marks.count == 2)
        }
    }

    /// The more nodes there are, the longer each waits between two looks.
    @Test func nodesAreCounted() async throws {
        try await TestCluster.with { cluster in
            #expect(cluster["c"].registry.store.membership?.lease.nodeCount == 3)
        }
    }

    /// A change and its reversal on two nodes reach a third in their order, also where one of them is its own.
    @Test func theLastChangeHolds() async throws {
        try await TestCluster.with { cluster in
            let (a, b, c) = (cluster["a"], cluster["b"], cluster["c"])
            let path = StreamPath(app: "live", name: "x")
            for round in 0..<10 {
                let (first, second) = round.isMultiple(of: 2) ? (a, b) : (b, c)
                _ = try await first.registry.forbid(path, untilMs: a.registry.now + 3_600_000, reason: "", by: Actor("test"))
                try await second.registry.resume(path, by: Actor("test"))
            }
            _ = try await a.registry.forbid(path, untilMs: a.registry.now + 3_600_000, reason: "", by: Actor("test"))
            #expect(a.registry.playRefusal("live/x") == .forbidden)
            try await eventually("the last change") { [b, c].allSatisfy { $0.registry.playRefusal("live/x") == .forbidden } }
            try await Task.sleep(for: .milliseconds(500))
            #expect([a, b, c].allSatisfy { $0.registry.playRefusal("live/x") == .forbidden })
        }
    }

    /// Every node hears of a drain, with all that the one it names must know.
    @Test func aDrainIsHeardByAll() async throws {
        try await TestCluster.with(["a", "b"]) { cluster in
            let (a, b) = (cluster["a"], cluster["b"])
            var line = AuditLine("drainServer")
            (line.token, line.tokenID, line.address, line.via, line.requestID) = ("ops", 7, "192.0.2.1", .cli, "r1")
            let orders = [
                DrainOrder(
                    node: b.registry.nodeNumber, timeoutMs: 5_000, reconnectTo: "rtmp://x/live", restarts: true, askedAt: a.registry.now,
                    by: Actor("token:ops"),
                    call: line),
                DrainOrder(
                    node: b.registry.nodeNumber, timeoutMs: nil, reconnectTo: nil, restarts: false, askedAt: a.registry.now, by: Actor("x"),
                    call: AuditLine("drainServer")),
            ]
            for order in orders { try await a.registry.order(order) }
            try await eventually("the order") { b.drains == orders }
            #expect(a.drains == orders && a.registry.nodeName == "a")
            try await eventually("a node that keeps up") {
                let status = try a.registry.nodeStatus.orThrow()
                return status.leaseMs > 1_000 && status.leaseMs <= 10_000 && status.signalLagMs < 5_000
            }
            // One that registers later does not hear of it.
            try await cluster.join("c")
            try await Task.sleep(for: .milliseconds(400))
            #expect(cluster["c"].drains.isEmpty)
        }
    }

    // MARK: - Claims

    @Test func theSameDeviceTakesItsNameAlong() async throws {
        try await TestCluster.with { cluster in
            let (a, b) = (cluster["a"], cluster["b"])
            _ = try await a.registry.create(cluster.room("cam1"), by: Actor("test"))
            let first = try await a.push("live/cam1", as: "device").get()
            a.registry.mediaArrived(first.sequence, MediaSummary())
            await a.settle()
            // Another device does not get the name, an older credential of the same one neither.
            #expect(await b.push("live/cam1", as: "thief") == .failure(.nameTaken))
            #expect(await b.push("live/cam1", as: "device", rank: -1) == .failure(.nameTaken))
            #expect(await b.push("live/cam1", as: "device", .nobody) == .failure(.nameTaken))
            let second = try await b.push("live/cam1", as: "device").get()
            b.registry.mediaArrived(second.sequence, MediaSummary())
            await b.settle()
            try await eventually("the cut of the former push") { a.cuts == ["live/cam1 \(first.sequence.rawValue) takenOver"] }
            let room = try await a.registry.room("cam1")
            #expect(room.state == .live && room.slots[0].sequence == second.sequence.rawValue && room.slots[0].earlier.isEmpty)
            let kinds = try await a.registry.events(after: 0, room: "cam1", limit: 100).map(\.kind)
            #expect(kinds == [.roomCreated, .streamBegin, .roomLive, .streamEnd, .streamBegin], "\(kinds)")
            // Anybody may come where the settings say so.
            #expect(throws: Never.self) { try cluster.check() }
            #expect((try? await a.push("live/cam1", as: "thief", .anybody).get()) != nil)
        }
    }

    @Test func twoDevicesThatFightAreStopped() async throws {
        try await TestCluster.with(["a", "b"]) { cluster in
            _ = try await cluster["a"].registry.create(cluster.room("cam1"), by: Actor("test"))
            var answers: [Bool] = []
            for name in ["a", "b", "a", "b", "a", "a"] {
                switch await cluster[name].push("live/cam1", as: "device") {
                case .success: answers.append(true)
                case .failure(let refusal):
                    #expect(refusal == .flapping)
                    answers.append(false)
                }
            }
            #expect(answers == [true, true, true, true, false, false])
        }
    }

    /// Of claims on all nodes at once one has the name in the end.
    @Test func aNameHasOneOwner() async throws {
        try await TestCluster.with { cluster in
            _ = try await cluster["a"].registry.create(cluster.room("cam1"), by: Actor("test"))
            let grants = await withTaskGroup(of: (String, Result<PushGrant, PushRefusal>).self) { tasks in
                for name in ["a", "b", "c"] {
                    tasks.addTask { (name, await cluster[name].push("live/cam1", as: "device of \(name)", .nobody)) }
                }
                return await tasks.reduce(into: []) { $0.append($1) }
            }
            #expect(grants.count { (try? $0.1.get()) != nil } == 1)
            try cluster.check()
        }
    }

    /// At a far database, each wait for it is a round trip.
    @Test func aClaimIsAFewRoundTrips() async throws {
        try await TestCluster.with(["a", "b"]) { cluster in
            let (a, b) = (cluster["a"], cluster["b"])
            let store = try #require(b.registry.store as? PostgresStore)
            for name in ["cam1", "cam2"] { _ = try await a.registry.create(cluster.room(name), by: Actor("test")) }
            _ = try await b.push("live/cam1", as: "first").get()
            let before = store.roundTrips
            _ = try await b.push("live/cam2", as: "second").get()
            #expect(store.roundTrips - before <= 5, "\(store.roundTrips - before)")
            // A takeover from another node, too.
            let other = try #require(a.registry.store as? PostgresStore)
            _ = try await a.push("live/cam2", as: "second").get()
            // What it has not heard of yet it reads before its own news.
            try await eventually("the former push at the other node") {
                try await String(a.registry.lastSignal) == cluster.value("SELECT signal FROM heads")
            }
            let taken = other.roundTrips
            _ = try await a.push("live/cam1", as: "first").get()
            #expect(other.roundTrips - taken <= 10, "\(other.roundTrips - taken)")
        }
    }

    /// A device that gave up while it waited for its turn takes its stream from nobody, and is no push.
    @Test func aDeviceThatGaveUp() async throws {
        try await TestCluster.with(["a", "b"]) { cluster in
            let (a, b) = (cluster["a"], cluster["b"])
            _ = try await a.registry.create(cluster.room("cam1"), by: Actor("test"))
            let grant = try await a.push("live/cam1", as: "device").get()
            #expect(await b.push("live/cam1", as: "device", isWanted: { false }) == .failure(.gone))
            let room = try await b.registry.room("cam1")
            #expect(room.slots[0].sequence == grant.sequence.rawValue && a.cuts.isEmpty)
        }
    }

    // MARK: - Who may join

    /// A node that starts while another is at a long wave of pushes waits for its turn, for longer than one statement may wait for a lock.
    @Test func aStartAmidAWave() async throws {
        try await TestCluster.with(["a"]) { cluster in
            // Longer than a statement may wait for its turn, and than it may take.
            try cluster.holdWrites(seconds: 7)
            let began = ContinuousClock.now
            try await cluster.join("b")
            #expect(.now - began > .seconds(6), "it waits for its turn")
            #expect(try await cluster["b"].registry.nodes().count { $0.state == .running } == 2)
        }
    }

    @Test func namesAndKeys() async throws {
        try await TestCluster.with([]) { try await self.namesAndKeys($0) }
    }

    private func namesAndKeys(_ cluster: TestCluster) async throws {
        var location = cluster.location
        location.node = "a"
        try PostgresStore(location, isNode: true).close()
        // As of another machine, where it renews its lease.
        let renewal = Task {
            for _ in 0..<1_000 where !Task.isCancelled {
                try cluster.sql(
                    "UPDATE nodes SET process = '\(TestCluster.foreignProcess)', expires_at = clock_timestamp() + interval '10 s' WHERE name = 'a'"
                )
                try await Task.sleep(for: .milliseconds(50))
            }
        }
        defer { renewal.cancel() }
        try await eventually("the other machine") { try cluster.value("SELECT process FROM nodes") == TestCluster.foreignProcess }
        func problem(_ node: String, _ key: String?, and other: String? = nil) async -> String {
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    var location = cluster.location
                    (location.node, location.cluster, location.otherKey) = (node, key, other)
                    do {
                        try PostgresStore(location, isNode: true).close()
                        continuation.resume(returning: "none")
                    } catch {
                        continuation.resume(returning: "\(error)")
                    }
                }
            }
        }
        let name = await problem("a", cluster.location.cluster)
        #expect(name.contains("has a running node with the name a already; give each node a cluster.name of its own"), "\(name)")
        let key = await problem("b", "another")
        #expect(key.contains("whose cluster.key is another one; set the same cluster.key on all nodes"), "\(key)")
        let alone = await problem("b", nil)
        #expect(alone.contains("set cluster.key to the cluster's key to join it"), "\(alone)")
        #expect(await problem("b", cluster.location.cluster) == "none")
        // The key changes: nobody joins before the running node knows the new one.
        let early = await problem("b", "new", and: cluster.location.cluster)
        #expect(early.contains("which does not know this server's cluster.key; set it there as cluster.previousKey"), "\(early)")
        try cluster.sql("UPDATE nodes SET key = key || ' new' WHERE name = 'a'")
        #expect(await problem("b", "new", and: cluster.location.cluster) == "none")
        let forgetful = await problem("b", "new")
        #expect(forgetful.contains("whose cluster.key is another one"), "\(forgetful)")
    }
}
