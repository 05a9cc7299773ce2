import Foundation
import PostgresTestSupport
import TestSupport
import Testing

@testable import RoomRegistry
@testable import Store
@testable import Rooms

/// A registry whose database is away, silent, slow or taken over.
@Suite(.enabled(if: TestPostgres.isOn, "needs EARSHOT_STORE=postgres")) struct PostgresTroubleTests {
    /// A registry that reaches its database through a proxy.
    private final class Case: Sendable {
        let folder: String
        let proxy: TestProxy
        let location: PostgresLocation
        let registry: RoomRegistry

        init(_ change: (inout PostgresLocation) -> Void = { _ in }) throws {
            self.folder = NSTemporaryDirectory() + "earshot-postgres-\(UUID().uuidString)"
            try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: true)
            var location = try #require(try TestPostgres.location(of: self.folder))
            let address = try #require(URLComponents(string: location.url))
            self.proxy = try TestProxy(to: UInt16(address.port ?? 5_432))
            location.url = location.url.replacingOccurrences(of: ":\(address.port ?? 0)/", with: ":\(self.proxy.port)/")
            // Texts show in every message: the proxy looks for COMMIT.
            location.prepares = false
            change(&location)
            self.location = location
            self.registry = try RoomRegistry(.postgres(location), settings: RoomRegistry.Settings())
        }

        func create(_ id: String) async throws -> Room {
            var new = NewRoom(policy: RoomPolicy())
            new.id = try RoomID(checking: id)
            return try await self.registry.create(new, by: Actor("test"))
        }

        func push(_ name: String, _ claim: PushClaim = .none) async throws -> PushGrant {
            let request = PushRequest(
                path: StreamPath(app: "live", name: name), clientAddress: "192.0.2.1", session: 7, parameters: "", mayCreateRoom: false,
                claim: claim)
            return try await self.registry.admitPush(request).get()
        }

        /// Reads the database beside the proxy.
        func number(_ sql: String) throws -> Int64? {
            guard let connection = try TestPostgres.connect(self.folder) else { return nil }
            return try StoreAccess(connection).number(sql)
        }

        func end() async {
            await self.registry.stop()
            self.proxy.close()
            TestPostgres.remove(self.folder)
            try? FileManager.default.removeItem(atPath: self.folder)
        }
    }

    private static func with(_ body: (Case) async throws -> Void) async throws {
        let test = try Case()
        do {
            try await test.registry.start()
            try await body(test)
        } catch {
            await test.end()
            throw error
        }
        await test.end()
    }

    /// Facts wait, calls fail with what is wrong, and all goes on when the database is back.
    @Test(.timeLimit(.minutes(10))) func aDatabaseThatGoesAwayAndComesBack() async throws {
        try await Self.with { test in
            _ = try await test.create("cam1")
            let grant = try await test.push("cam1")
            test.proxy.mode = .away
            test.registry.mediaArrived(grant.sequence, MediaSummary())
            await #expect(throws: RegistryError.self) { _ = try await test.create("cam2") }
            await #expect(throws: PushRefusal.self) { _ = try await test.push("cam1") }
            #expect(await test.registry.storeProblem() != nil)
            #expect(test.registry.storeStatus.isFailing)
            // What reads memory does not notice.
            #expect(test.registry.playRefusal("live/cam1") == nil)
            test.proxy.mode = .passing
            try await eventually("the fact is stored") { try test.number("SELECT count(*) FROM events WHERE kind = 'stream.begin'") == 1 }
            #expect(try await test.create("cam2").id.rawValue == "cam2")
            try await eventually("the store is well") { await test.registry.storeProblem() == nil }
        }
    }

    /// Stored once, although nobody heard of it, and its caller is told so.
    @Test(.timeLimit(.minutes(10))) func aCommitWithoutAnAnswerIsNeitherLostNorDoubled() async throws {
        try await Self.with { test in
            _ = try await test.create("cam1")
            let grant = try await test.push("cam1")
            test.proxy.mode = .losingCommit
            test.registry.mediaArrived(grant.sequence, MediaSummary())
            try await eventually("the answer is lost") { test.proxy.hasLostCommit && test.proxy.mode == .away }
            #expect(try test.number("SELECT count(*) FROM events WHERE kind = 'stream.begin'") == 1)
            // Asked for as soon as there is somebody to ask; what came later waits until then.
            test.registry.pushEnded(grant.sequence, .clientStopped)
            test.proxy.mode = .passing
            try await eventually("the later fact is stored") {
                try test.number("SELECT count(*) FROM events WHERE kind = 'stream.end'") == 1
            }
            #expect(try test.number("SELECT count(*) FROM events WHERE kind = 'stream.begin'") == 1)
            #expect(try test.number("SELECT count(*) - max(id) FROM events") == 0)
        }
    }

    /// An end whose commit is in doubt may be in the store: its push goes on only when it is known that it is not.
    @Test(.timeLimit(.minutes(10))) func anEndInDoubtIsNotTakenBack() async throws {
        try await Self.with { test in
            let claim = PushClaim(identity: "key", rank: 0, takeover: .sameIdentity)
            _ = try await test.create("cam1")
            let grant = try await test.push("cam1", claim)
            test.registry.mediaArrived(grant.sequence, MediaSummary())
            try await eventually("the beginning") { try test.number("SELECT count(*) FROM events WHERE kind = 'stream.begin'") == 1 }
            test.proxy.mode = .losingCommit
            test.registry.pushEnded(grant.sequence, .connectionLost)
            try await eventually("the answer is lost") { test.proxy.hasLostCommit && test.proxy.mode == .away }
            await #expect(throws: PushRefusal.self) { _ = try await test.push("cam1", claim) }
            test.proxy.mode = .passing
            try await eventually("the truth") { test.registry.runningPushes.count == 0 }
            #expect(try test.number("SELECT count(*) FROM events WHERE kind = 'stream.end'") == 1)
            #expect(try await test.push("cam1", claim).sequence > grant.sequence)
        }
    }

    /// Away for real: the device goes on, and a server whose place another has taken keeps none.
    @Test(.timeLimit(.minutes(10)), arguments: [false, true]) func aDeviceComesBackMeanwhile(_ isReplaced: Bool) async throws {
        try await Self.with { test in
            let claim = PushClaim(identity: "key", rank: 0, takeover: .sameIdentity)
            _ = try await test.create("cam1")
            let grant = try await test.push("cam1", claim)
            test.registry.mediaArrived(grant.sequence, MediaSummary())
            try await eventually("the beginning") { try test.number("SELECT count(*) FROM events WHERE kind = 'stream.begin'") == 1 }
            if isReplaced {
                let connection = try #require(try TestPostgres.connect(test.folder))
                try connection.run("UPDATE fences SET incarnation = incarnation + 1")
                try connection.flush()
                test.registry.pushEnded(grant.sequence, .connectionLost)
                await #expect(throws: PushRefusal.self) { _ = try await test.push("cam1", claim) }
                return
            }
            test.proxy.mode = .away
            test.registry.pushEnded(grant.sequence, .connectionLost)
            let again = try await test.push("cam1", claim)
            #expect(again.sequence == grant.sequence && again.returns == 1)
            test.registry.pushReturned(again)
            test.proxy.mode = .passing
            try await eventually("the store is well") { await test.registry.storeProblem() == nil }
            try await eventually("no fact waits") { test.registry.storeStatus.waitingFacts == 0 }
            #expect(try test.number("SELECT count(*) FROM events WHERE kind IN ('stream.end', 'room.interrupted')") == 0)
        }
    }

    /// A call whose commit was never answered waits for the truth.
    @Test(.timeLimit(.minutes(10))) func aCallWhoseCommitIsLostIsAnswered() async throws {
        try await Self.with { test in
            test.proxy.mode = .losingCommit
            async let room = test.create("cam1")
            try await eventually("the answer is lost") { test.proxy.hasLostCommit && test.proxy.mode == .away }
            test.proxy.mode = .passing
            #expect(try await room.id.rawValue == "cam1")
            await #expect(throws: RegistryError.self) { _ = try await test.create("cam1") }
        }
    }

    /// One that is silent is given up after a while, not waited for.
    @Test(.timeLimit(.minutes(10))) func aDatabaseThatSaysNothing() async throws {
        try await Self.with { test in
            _ = try await test.create("cam1")
            test.proxy.mode = .silent
            await #expect(throws: RegistryError.self) { _ = try await test.create("cam2") }
            test.proxy.mode = .away
            test.proxy.mode = .passing
            try await eventually("it goes on") { await test.registry.storeProblem() == nil }
            #expect(try await test.create("cam2").id.rawValue == "cam2")
        }
    }

    /// A server that stops with a commit in doubt does not wait for the truth.
    @Test(.timeLimit(.minutes(10))) func aStopWithACommitInDoubt() async throws {
        try await Self.with { test in
            test.proxy.mode = .losingCommit
            let room = Task { try await test.create("cam1") }
            try await eventually("the answer is lost") { test.proxy.hasLostCommit && test.proxy.mode == .away }
            await test.registry.stop()
            await #expect(throws: RegistryError.self) { _ = try await room.value }
        }
    }

    /// One whose COMMIT is still under way at the server is in doubt, not undone.
    @Test(.timeLimit(.minutes(10))) func aCommitThatTakesLongIsWaitedFor() async throws {
        try await Self.with { test in
            _ = try await test.create("cam1")
            let store = try #require(test.registry.store as? PostgresStore)
            let other = try #require(try TestPostgres.connect(test.folder))
            try other.begin()
            #expect(try StoreAccess(other).number("SELECT batch FROM fences FOR UPDATE") != nil)
            let lost = CommitLost(batch: 1, cause: PostgresFailure(state: nil, "test"))
            #expect(throws: PostgresFailure.self) { try store.wasCommitted(lost) }
            other.rollback()
            #expect(try !store.wasCommitted(CommitLost(batch: .max, cause: lost.cause)))
        }
    }

    /// The server ends connections with a message before their end, as at a restart of PostgreSQL; that costs no call.
    @Test(.timeLimit(.minutes(10))) func endedConnectionsCostNoCall() async throws {
        try await Self.with { test in
            _ = try await test.create("cam1")
            #expect(try await test.registry.room("cam1").id.rawValue == "cam1")
            let ended = try test.number(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            #expect(ended ?? 0 >= 2)
            try await eventually("their ends") {
                // The lease's comes again by itself.
                try test.number(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name NOT LIKE '% lease'"
                ) == 0
            }
            #expect(try await test.registry.room("cam1").id.rawValue == "cam1")
            #expect(try await test.create("cam2").id.rawValue == "cam2")
        }
    }

    /// A server whose lease has ended is fenced by the next one, whatever that one's name is.
    @Test(.timeLimit(.minutes(10))) func theNextServerFencesTheFormer() async throws {
        try await Self.with { test in
            _ = try await test.create("cam1")
            var location = test.location
            location.node = "other"
            // In this process it takes the place at once.
            let next = try RoomRegistry(.postgres(location), settings: RoomRegistry.Settings())
            await #expect(throws: RegistryError.self) { _ = try await test.create("cam2") }
            await next.stop()
            #expect(try test.number("SELECT count(*) FROM rooms") == 1)
        }
    }

    /// The database ends idle connections when it restarts; that costs no call.
    @Test(.timeLimit(.minutes(10))) func aRestartBetweenCallsIsNotNoticed() async throws {
        try await Self.with { test in
            _ = try await test.create("cam1")
            #expect(try await test.registry.room("cam1").id.rawValue == "cam1")
            test.proxy.mode = .away
            test.proxy.mode = .passing
            // The ends of connections arrive.
            try await Task.sleep(for: .milliseconds(300))
            #expect(try await test.registry.room("cam1").id.rawValue == "cam1")
            #expect(try await test.create("cam2").id.rawValue == "cam2")
        }
    }

    /// A node whose place another process has taken writes nothing more.
    @Test(.timeLimit(.minutes(10))) func aFencedNodeWritesNothing() async throws {
        try await Self.with { test in
            _ = try await test.create("cam1")
            guard let connection = try TestPostgres.connect(test.folder) else { return }
            try connection.run("UPDATE fences SET incarnation = incarnation + 1")
            try connection.flush()
            do {
                _ = try await test.create("cam2")
                Issue.record("it was created")
            } catch RegistryError.storeFailed(let text) {
                #expect(text.contains("another process has taken this node's place"))
            }
            #expect(try test.number("SELECT count(*) FROM rooms") == 1)
        }
    }

    /// A second server is refused while one runs; one that ended leaves its place at once.
    @Test(.timeLimit(.minutes(10))) func aNameIsOneProcess() async throws {
        try await Self.with { test in
            var other = test.location
            other.node = "other"
            // As if the first were another machine's: it renews its lease all the same.
            let connection = try #require(try TestPostgres.connect(test.folder))
            let store = StoreAccess(connection)
            let process = try store.first("SELECT process FROM nodes") { (row: inout RowReader) -> String in row.next() }
            try connection.run("UPDATE nodes SET process = 'another machine 1 1'")
            try connection.flush()
            let error = #expect(throws: StoreError.self) { try RoomRegistry(.postgres(other), settings: RoomRegistry.Settings()) }
            #expect(error?.description.contains("is in use by the running server earshot") == true, "\(String(describing: error))")
            #expect(error?.isConflict == true)
            try connection.run("UPDATE nodes SET process = $1", [process])
            try connection.flush()
            await test.registry.stop()
            let next = try RoomRegistry(.postgres(other), settings: RoomRegistry.Settings())
            await next.stop()
        }
    }

    /// A push costs at most ten round trips, however many statements it takes.
    @Test func aClaimCostsFewRoundTrips() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let store = try #require(test.registry.store as? PostgresStore)
        // Once, so that its statements are known to the server.
        let first = try await test.push("live/cam1").get()
        test.registry.pushEnded(first.sequence, .clientStopped)
        await test.settle()
        let before = store.roundTrips
        _ = try await test.push("live/cam1").get()
        #expect(store.roundTrips - before <= 10, "\(store.roundTrips - before)")
    }

    /// PostgreSQL stores no U+0000.
    @Test func aTextThatCannotBeStoredIsRefused() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        await #expect(throws: RegistryError.self) { try await test.create("cam1") { $0.title = "a\u{0}b" } }
        #expect(try await test.create("cam1").id.rawValue == "cam1")
    }
}
