import Foundation
import PostgresTestSupport
import GRDB
import Testing

@testable import RoomRegistry
@testable import Store
@testable import Rooms

/// `earshot store copy`, on real files and a real PostgreSQL.
@Suite(.enabled(if: TestPostgres.isOn)) struct StoreTransferTests {
    private static let actor = Actor("test")

    /// A data directory, an empty database of PostgreSQL's, and a folder for more.
    private static func withLocations(_ body: (_ data: String, _ database: PostgresLocation, _ base: String) async throws -> Void)
        async throws
    {
        let base = NSTemporaryDirectory() + "earshot-transfer-\(UUID().uuidString)"
        for folder in ["", "/data", "/database"] {
            try FileManager.default.createDirectory(atPath: base + folder, withIntermediateDirectories: true)
        }
        defer {
            TestPostgres.remove(base + "/database")
            try? FileManager.default.removeItem(atPath: base)
        }
        try await body(base + "/data", try #require(try TestPostgres.location(of: base + "/database")), base)
    }

    private static func registry(_ location: StoreLocation, _ time: TestTime) async throws -> RoomRegistry {
        var settings = RoomRegistry.Settings()
        settings.webhooks = [WebhookTarget(url: "http://192.0.2.9/", format: .earshot)]
        let registry = try RoomRegistry(location, settings: settings, clock: RoomClock(now: { time.now }))
        try await registry.start()
        return registry
    }

    private static func create(_ id: String, in registry: RoomRegistry, _ change: (inout NewRoom) -> Void = { _ in }) async throws {
        var new = NewRoom(policy: RoomPolicy())
        new.id = try RoomID(checking: id)
        change(&new)
        _ = try await registry.create(new, by: self.actor)
    }

    private static func goLive(_ path: String, in registry: RoomRegistry) async throws -> PushSequence {
        let request = PushRequest(
            path: try #require(StreamPath(path)), clientAddress: "192.0.2.1", session: 7, parameters: "a=1", mayCreateRoom: false, room: nil
        )
        let grant = try await registry.admitPush(request).get()
        registry.mediaArrived(grant.sequence, MediaSummary())
        _ = await registry.result { _ in }
        return grant.sequence
    }

    /// A registry with rows in every table, whose highest numbers are no longer those of rows.
    private static func fill(_ data: String, _ time: TestTime) async throws {
        let registry = try await self.registry(.folder(data), time)
        for id in ["created", "live", "gone", "closed", "expired", "forbidden", "deleted"] {
            try await self.create(id, in: registry) {
                // Two forms of é, a word of two scripts, and what an escape could break.
                $0.title = "Caf\u{E9} cafe\u{301} 東京 \\ ' \" \(id)"
                $0.owner = "owner-\(id)"
            }
        }
        _ = try await self.goLive("live/live", in: registry)
        registry.pushEnded(try await self.goLive("live/gone", in: registry), .connectionLost)
        _ = try await registry.join("live", user: "ann", nick: "Ann")
        _ = try await registry.join("live", user: "bob", nick: "B\u{FC}b")
        try await registry.kick("live", user: "bob", by: self.actor)
        _ = try await registry.like("live", count: 5)
        _ = try await registry.forbid(
            try #require(StreamPath("live/forbidden")), untilMs: time.now + 3_600_000, reason: "why", by: self.actor)
        _ = try await registry.apply(.close, to: "closed", action: "close", by: self.actor)
        _ = try await registry.apply(.expire, to: "expired", action: "expire", by: self.actor)
        let (token, _) = try await registry.createToken(name: "ops", role: .admin)
        let (gone, _) = try await registry.createToken(name: "gone", role: .backend)
        try await registry.keep(StoredAnswer(status: 200, body: "{}"), for: IdempotencyKey(tokenID: token.id, key: "k", fingerprint: "f"))
        try await registry.delete("deleted", by: self.actor)
        await registry.stop()
        let queue = try DatabaseQueue(path: data + "/earshot.db")
        try await queue.writeWithoutTransaction { db in
            try db.execute(sql: self.rows)
            // Numbers that retention has deleted are not used again.
            try db.execute(sql: "DELETE FROM events WHERE id = (SELECT max(id) FROM events); DELETE FROM tokens WHERE id = \(gone.id)")
        }
        try queue.close()
        try self.reading(.folder(data)) { side in
            for table in try StoreTable.all(side.store) {
                #expect(try table.hasRows(side.store), "no row of table \(table.name) is copied in these tests")
            }
        }
    }

    private static let rows = """
        INSERT INTO recordings VALUES (2, 'r', 't', 1, 'live', 'cam1', 'live', 1, 'finished', 'stopped', 'f.mp4', 10, 20, 10, 5, 'avc1', 'mp4a',
            640, 480, 0, 1);
        INSERT INTO recording_orders VALUES ('t2', 'live', 'live', NULL, 1, 10, 0);
        INSERT INTO snapshots VALUES (3, 's', 'live', 'live', 'live', 1, 's.jpg', 10, 5, 640, 480);
        INSERT INTO links VALUES (4, 'push', 'live', 'live', 'sealed', 1, 10);
        INSERT INTO talk_settings VALUES ('live', 'ptt', 2, 3, 4, 5000, 1, 0);
        INSERT INTO talk_members VALUES ('live', 'ann', 1, -0.1, NULL, 10), ('live', 'bob', 0, 1e-300, 20, 10);
        INSERT INTO webhooks VALUES (5, 'hook', 'http://192.0.2.8/', 'earshot', 'room.created', '', 0, 'secret', 10);
        INSERT INTO gatherings VALUES ('g', 'class', 'live', '{"a":1}', 10, 11);
        INSERT INTO board_strokes VALUES ('live', 'b', 9007199254740993, 2, '{"x":[1,2]}');
        INSERT INTO access_keys VALUES ('AK1', 'key', 'admin', 'secret', 10, NULL);
        INSERT INTO audit VALUES (6, 10, 1, 'ops', 'h', '192.0.2.1', 'q', 'createRoom', 'live', NULL, NULL, 'ok', 201, NULL, '{}', 0, 'cli');
        """

    private static func reading<T>(_ location: StoreLocation, _ body: (TransferSide) throws -> T) throws -> T { try location.reading(body) }

    /// Compares two stores in full, with the sums and the numbers to come.
    private static func compare(_ first: StoreLocation, _ second: StoreLocation) throws {
        try first.reading { first in
            try second.reading { second in
                for table in try StoreTable.common(first, second) {
                    _ = try StoreComparison(table: table, source: first, target: second).run()
                    if table.isNumbered {
                        #expect(try table.lastNumber(first.store) == table.lastNumber(second.store), "\(table.name)")
                    }
                }
                try StoreComparison.counts(first, second)
            }
        }
    }

    @Test func everyRowToPostgresAndBack() async throws {
        try await Self.withLocations { data, database, base in
            let time = TestTime()
            try await Self.fill(data, time)
            let (first, second, third) = (
                StoreLocation.folder(data), StoreLocation.postgres(database), StoreLocation.folder(base + "/again")
            )
            var steps: Set<StoreTransfer.Progress.Step> = []
            let there = try StoreTransfer(from: first, to: second).run { steps.insert($0.step) }
            #expect(steps == [.copies, .compares])
            #expect(there.tables.first { $0.name == "rooms" }?.rows == 6)
            #expect(there.tables.allSatisfy { $0.rows > 0 }, "\(there.tables)")
            #expect(try StoreTransfer(from: second, to: third).run() == there)
            for (one, other) in [(first, second), (second, third), (first, third)] { try Self.compare(one, other) }
            #expect(try StoreFolder(directory: base + "/again", secrets: []).check().problems == [])
            var last: [Int64] = []
            for location in [first, second, third] { last.append(try await Self.goesOn(location, time)) }
            #expect(Set(last).count == 1)
        }
    }

    /// Uses the registry, and returns its last event's id.
    private static func goesOn(_ location: StoreLocation, _ time: TestTime) async throws -> Int64 {
        let before = try location.reading { side in
            let tables = try StoreTable.all(side.store)
            func last(_ name: String) throws -> Int64? { try tables.first { $0.name == name }?.lastNumber(side.store) }
            return (event: try last("events"), token: try last("tokens"), push: try last("pushes"))
        }
        let registry = try await self.registry(location, time)
        // The start says that the server restarted.
        let started = try await registry.lastEventID()
        #expect(started >= before.event ?? 0)
        try await self.create("new", in: registry)
        let created = try await registry.lastEventID()
        #expect(created > started)
        let (token, _) = try await registry.createToken(name: "new", role: .admin)
        #expect(token.id == (before.token ?? 0) + 1)
        let sequence = try await self.goLive("live/new", in: registry)
        #expect(sequence.rawValue == (before.push ?? 0) + 1)
        #expect(try await registry.room("new").state == .live)
        #expect(try await registry.room("closed").state == .closed)
        var query = RoomQuery()
        query.text = "tokyo"
        #expect(try await registry.rooms(query).rooms.isEmpty)
        query.text = "CAFE live"
        #expect(try await registry.rooms(query).rooms.map(\.id.rawValue) == ["live"])
        #expect(try await registry.roomCounts().values.reduce(0, +) == 7)
        let last = try await registry.lastEventID()
        await registry.stop()
        return last
    }

    private static func error(
        _ from: StoreLocation, _ to: StoreLocation, _ progress: (StoreTransfer.Progress) -> Void = { _ in }
    ) -> StoreError? {
        #expect(throws: StoreError.self) { try StoreTransfer(from: from, to: to).run(progress) }
    }

    private static func rows(_ location: PostgresLocation) throws -> Int64 {
        try StoreLocation.postgres(location).reading { side in
            try StoreTable.all(side.store).reduce(0) { try $0 + (side.store.number("SELECT count(*) FROM \($1.name)") ?? 0) }
        }
    }

    @Test func whatIsInUseOrFullIsRefused() async throws {
        try await Self.withLocations { data, database, base in
            let time = TestTime()
            let (folder, postgres) = (StoreLocation.folder(data), StoreLocation.postgres(database))
            let missing = Self.error(.folder(base + "/nothing"), postgres)
            #expect(missing?.problem == "holds no registry")
            #expect(Self.error(folder, .folder(base + "/other"))?.advice.contains("store backup") == true)
            try await Self.fill(data, time)
            // A server on the source.
            let server = try RoomRegistry(folder, settings: RoomRegistry.Settings())
            let used = Self.error(folder, postgres)
            #expect(used?.isConflict == true && used?.problem == "is in use by a server")
            await server.stop()
            // A server on the target.
            let node = try PostgresStore(database, isNode: true)
            let busy = Self.error(folder, postgres)
            #expect(busy?.isConflict == true && busy?.problem == "is in use by the server with the name earshot", "\(busy?.problem ?? "")")
            node.close()
            #expect(try Self.rows(database) == 0)
            _ = try StoreTransfer(from: folder, to: postgres).run()
            let full = Self.error(folder, postgres)
            #expect(full?.isConflict == true && full?.problem.hasPrefix("is not empty: its table ") == true)
            #expect(Self.error(postgres, folder)?.problem.hasPrefix("is not empty: its table ") == true)
            // A server on PostgreSQL as the source.
            let again = try PostgresStore(database, isNode: true)
            #expect(Self.error(postgres, .folder(base + "/again"))?.isConflict == true)
            again.close()
        }
    }

    /// While a copy runs no server can begin, and another copy cannot either.
    @Test func nobodyBeginsMeanwhile() async throws {
        try await Self.withLocations { data, database, base in
            let time = TestTime()
            try await Self.fill(data, time)
            var errors: [String] = []
            _ = try StoreTransfer(from: .folder(data), to: .postgres(database)).run { _ in
                guard errors.isEmpty else { return }
                errors.append(Self.error(.folder(base + "/data"), .postgres(database))?.problem ?? "")
                let second = #expect(throws: StoreError.self) { try PostgresStore(database, isNode: true) }
                errors.append(second?.advice ?? "")
            }
            #expect(
                errors.count == 2 && errors.first == "is in use by a server" && errors.last?.contains("store copy") == true, "\(errors)")
        }
    }

    @Test func aBrokenCopyLeavesNothing() async throws {
        try await Self.withLocations { data, database, base in
            try await Self.fill(data, TestTime())
            let other = try #require(try TestPostgres.connect(base + "/database"))
            let kill = """
                SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE application_name = 'earshot store copy' AND datname = current_database()
                """
            var killed: [Int64?] = []
            let error = Self.error(.folder(data), .postgres(database)) { progress in
                guard killed.isEmpty, progress.table == "rooms" else { return }
                killed.append(try? StoreAccess(other).number(kill))
            }
            other.close()
            #expect(killed == [1] && error?.path == database.description, "\(error.map { "\($0)" } ?? "")")
            #expect(try Self.rows(database) == 0)
            // The same copy succeeds afterwards.
            _ = try StoreTransfer(from: .folder(data), to: .postgres(database)).run()
            try Self.compare(.folder(data), .postgres(database))
        }
    }

    @Test func aDifferenceUndoesTheCopy() async throws {
        try await Self.withLocations { data, database, base in
            try await Self.fill(data, TestTime())
            let other = try #require(try TestPostgres.connect(base + "/database"))
            // Another form of the same character, which Swift holds for equal.
            try other.runDefinitions(
                """
                CREATE FUNCTION spoil() RETURNS TRIGGER LANGUAGE plpgsql AS $$
                BEGIN NEW.title = normalize(NEW.title, NFD); RETURN NEW; END $$;
                CREATE TRIGGER spoil BEFORE INSERT ON rooms FOR EACH ROW WHEN (NEW.id = 'live') EXECUTE FUNCTION spoil()
                """)
            let error = Self.error(.folder(data), .postgres(database))
            #expect(error?.problem.contains("table rooms, key ") == true && error?.problem.hasSuffix(": column title differs") == true)
            other.close()
            #expect(try Self.rows(database) == 0)
        }
    }

    @Test func aTextThatPostgresCannotStoreIsNamed() async throws {
        try await Self.withLocations { data, database, _ in
            try await Self.fill(data, TestTime())
            let queue = try DatabaseQueue(path: data + "/earshot.db")
            try await queue.writeWithoutTransaction {
                try $0.execute(sql: "UPDATE talk_members SET \"user\" = 'a' || char(0) || 'b' WHERE \"user\" = 'ann'")
            }
            try queue.close()
            let error = Self.error(.folder(data), .postgres(database))
            #expect(error?.problem.contains("table talk_members, key live, a") == true, "\(error?.problem ?? "")")
            #expect(error?.problem.contains("column user: the text holds the character U+0000") == true)
            #expect(try Self.rows(database) == 0)
        }
    }
}
