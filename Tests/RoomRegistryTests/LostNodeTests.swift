import Foundation
import PostgresTestSupport
import Store
import Support
import Synchronization
import TestSupport
import Testing

@testable import RoomRegistry
@testable import Rooms

/// Nodes of a cluster that were killed, stood still or lost their database.
@Suite(.enabled(if: TestPostgres.isOn, "on PostgreSQL")) struct LostNodeTests {
    /// A node that was killed: its publishers may come to another at once, and what does not come back is ended for it.
    @Test func aKilledNode() async throws {
        try await TestCluster.with { cluster in
            let (a, b) = (cluster["a"], cluster["b"])
            for name in ["cam1", "cam2"] { _ = try await a.registry.create(cluster.room(name), by: Actor("test")) }
            var left: [PushGrant] = []
            for name in ["cam1", "cam2"] {
                let grant = try await b.push("live/\(name)", as: name).get()
                b.registry.mediaArrived(grant.sequence, MediaSummary())
                left.append(grant)
            }
            await b.settle()
            await cluster.kill("b")
            // Before anybody knows of its end.
            let back = try await a.push("live/cam1", as: "cam1").get()
            a.registry.mediaArrived(back.sequence, MediaSummary())
            try await eventually("the clearing up", within: 60) {
                let room = try await a.registry.room("cam2")
                return room.state == .interrupted && room.reason == .nodeLost && room.slots[0].sequence == nil
            }
            #expect(try await a.registry.room("cam1").state == .live)
            // Marked in a transaction after that of its last push.
            try await eventually("the node's end") { try await a.registry.nodes()[1].state == .gone }
            let nodes = try await a.registry.nodes()
            #expect(nodes.map(\.name) == ["a", "b", "c"] && nodes[1].state == .gone && nodes.count { $0.isKeeper } == 1, "\(nodes)")
            try cluster.check()
            // The killed one comes back under its name.
            try await cluster.join("b")
            #expect(try await cluster["b"].registry.nodes()[1].state == .running)
            #expect(try await a.registry.room("cam1").state == .live, "a node that starts ends only its own")
        }
    }

    /// A node that was away from the database for longer than its lease, and is back: it was cleared up, learns of that, and goes on.
    @Test func aNodeThatWasAway() async throws {
        try await TestCluster.with(["a", "b"]) { cluster in
            let (a, b) = (cluster["a"], cluster["b"])
            _ = try await a.registry.create(cluster.room("cam1"), by: Actor("test"))
            let grant = try await b.push("live/cam1", as: "cam1").get()
            b.registry.mediaArrived(grant.sequence, MediaSummary())
            await b.settle()
            try await cluster.expireLease(of: "b")
            try await eventually("the cut", within: 60) { b.cuts.contains("live/cam1 \(grant.sequence.rawValue) nodeLost") }
            // Facts of the former life change nothing.
            b.registry.pushEnded(grant.sequence, .connectionLost)
            try await eventually("the return", within: 60) { await b.push("live/cam1", as: "cam1").isSuccess }
            try cluster.check()
        }
    }

    /// A database that was away for less than a lease: the others' may have ended all the same, which says nothing of them.
    @Test func nobodyIsLostWithTheDatabase() async throws {
        try await TestCluster.with([]) { cluster in
            try await cluster.join("a", proxied: true)
            let (registry, proxy) = (cluster["a"].registry, try #require(cluster["a"].proxy))
            let lease = try #require(registry.store.membership?.lease)
            try await eventually("that it has seen the others for long enough", within: 60) { lease.mayClearUp }
            proxy.mode = .away
            var leftMs: Int64 = 0
            try await eventually("a renewal that is missed", within: 60) {
                leftMs = lease.leftMs
                return !lease.mayClearUp
            }
            #expect(leftMs > 0)
            proxy.mode = .passing
            try await eventually("its renewal", within: 60) { lease.leftMs > 8_000 }
            #expect(!lease.mayClearUp)
        }
    }

    /// Deadlines are applied once, by the keeper; after its end another is.
    @Test func deadlinesOutliveTheirKeeper() async throws {
        try await TestCluster.with { cluster in
            try await eventually("a keeper") { try await cluster["c"].registry.nodes().contains { $0.isKeeper } }
            let keeper = try #require(try await cluster["c"].registry.nodes().first { $0.isKeeper }?.name)
            let other = try #require(["a", "b", "c"].first { $0 != keeper })
            var policy = RoomPolicy()
            policy.neverStartedMs = 3_000
            _ = try await cluster[other].registry.create(cluster.room("first", policy), by: Actor("test"))
            try await eventually("the deadline", within: 60) { try await cluster[other].registry.room("first").state == .expired }
            await cluster.kill(keeper)
            _ = try await cluster[other].registry.create(cluster.room("second", policy), by: Actor("test"))
            try await eventually("the deadline without the keeper", within: 90) {
                try await cluster[other].registry.room("second").state == .expired
            }
            let expired = try await cluster[other].registry.events(after: 0, room: nil, limit: 1_000).filter { $0.kind == .roomExpired }
            #expect(expired.count == 2)
        }
    }

    /// A node that was away for longer than signals are kept reads everything anew.
    @Test(arguments: ["WHERE id < (SELECT max(id) FROM signals)", ""]) func signalsThatAreForgotten(_ which: String) async throws {
        try await TestCluster.with(["a", "b"]) { cluster in
            let (a, b) = (cluster["a"], cluster["b"])
            await b.registry.pausePolling(true)
            for name in ["x", "y"] {
                _ = try await a.registry.forbid(
                    StreamPath(app: "live", name: name), untilMs: a.registry.now + 3_600_000, reason: "", by: Actor("test"))
            }
            try cluster.sql("DELETE FROM signals \(which)")
            await b.registry.pausePolling(false)
            try await eventually("both bans") { ["live/x", "live/y"].allSatisfy { b.registry.playRefusal($0) == .forbidden } }
            try await a.registry.resume(StreamPath(app: "live", name: "x"), by: Actor("test"))
            try await eventually("what comes after") { b.registry.playRefusal("live/x") == nil }
        }
    }

    // MARK: - A database that goes away

    /// The answer of a commit is lost, and the node looks for signals before it asks; it may even be fenced meanwhile. Its call is answered, its
    /// tables know the change, and its clients get all events in order.
    @Test(arguments: [false, true]) func aCommitInDoubt(_ isFenced: Bool) async throws {
        try await TestCluster.with(["a"]) { cluster in
            try await cluster.join("b", proxied: true)
            let (a, b) = (cluster["a"], cluster["b"])
            let proxy = try #require(b.proxy)
            _ = try await a.registry.create(cluster.room("cam1"), by: Actor("test"))
            try await eventually("the first event") { b.events == [1] }
            // Only the commit of the call is to be lost, none of a read.
            await b.registry.pausePolling(true)
            proxy.mode = .losingCommit
            let call = Task {
                try await b.registry.forbid(
                    StreamPath(app: "live", name: "x"), untilMs: b.registry.now + 3_600_000, reason: "", by: Actor("test"))
            }
            try await eventually("the loss") { proxy.hasLostCommit && proxy.mode == .away }
            if isFenced {
                try await eventually("the clearing up") { try cluster.value("SELECT state FROM nodes WHERE name = 'b'") == "gone" }
            }
            // What comes behind it waits for it.
            _ = try await a.registry.create(cluster.room("cam3"), by: Actor("test"))
            await b.registry.pausePolling(false)
            proxy.mode = .passing
            #expect(try await call.value.path.name == "x")
            #expect(b.registry.playRefusal("live/x") == .forbidden)
            // A node that was fenced learns of that by its first call.
            if isFenced { _ = try? await b.registry.create(cluster.room("cam2"), by: Actor("test")) }
            try await eventually("the next call") {
                do {
                    _ = try await b.registry.create(cluster.room("cam2"), by: Actor("test"))
                    return true
                } catch RegistryError.idTaken {
                    return true
                } catch RegistryError.storeFailed {
                    return false
                }
            }
            try await eventually("all events on both") { [a, b].allSatisfy { $0.events == [1, 2, 3, 4] } }
            #expect(await b.registry.unpublished.isEmpty)
            try cluster.check()
        }
    }

    /// All leases look ended after a failure of the database. A node that starts then does not end what runs.
    @Test func aStartAfterAFailure() async throws {
        try await TestCluster.with(["a", "b"]) { cluster in
            _ = try await cluster["a"].registry.create(cluster.room("cam1"), by: Actor("test"))
            let grant = try await cluster["a"].push("live/cam1", as: "cam1").get()
            cluster["a"].registry.mediaArrived(grant.sequence, MediaSummary())
            await cluster["a"].settle()
            try cluster.sql("UPDATE nodes SET expires_at = clock_timestamp() - interval '1 minute'")
            // Neither does another device get the name.
            #expect(await cluster["b"].push("live/cam1", as: "thief") == .failure(.nameTaken))
            try await cluster.join("c")
            let room = try await cluster["c"].registry.room("cam1")
            #expect(room.state == .live && room.slots[0].sequence == grant.sequence.rawValue)
            #expect(cluster["a"].cuts.isEmpty)
        }
    }

    /// After a clean end of all nodes, the next one is the first, whatever its name.
    @Test func theFirstAfterACleanEnd() async throws {
        try await TestCluster.with(["a", "b"]) { cluster in
            for name in ["a", "b"] { await cluster[name].registry.stop() }
            try await cluster.join("c")
            let states = try await cluster["c"].registry.nodes().map(\.state)
            #expect(states == [.gone, .gone, .running])
            try cluster.sql("UPDATE nodes SET expires_at = expires_at - interval '25 hours' WHERE name = 'a'")
            #expect(try await cluster["c"].registry.nodes().map(\.name) == ["b", "c"])
            #expect(cluster["c"].registry.store.membership?.lastLeftPush != nil)
        }
    }
}
