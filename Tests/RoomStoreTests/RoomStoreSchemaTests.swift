import Foundation
import GRDB
import Testing

@testable import RoomStore
@testable import Rooms

/// Stores of earlier versions. Every former schema becomes today's with its contents, wherever the process is killed.
@Suite struct RoomStoreSchemaTests {
    /// A store as an earlier version left it, with a row in each table.
    private static func make(_ schema: FormerSchemas.Schema, in folder: String) throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        let pool = try DatabasePool(path: folder + "/earshot.db", configuration: configuration)
        try pool.write { db in
            try db.execute(sql: "CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)")
            for step in schema.steps {
                try db.execute(sql: step.sql)
                try db.execute(sql: "INSERT INTO grdb_migrations VALUES (?)", arguments: [step.name])
            }
            try db.execute(sql: Self.rows)
            if schema.has.contains("2 recordings") { try db.execute(sql: Self.recording) }
            if schema.has.contains("3 relay tasks") {
                try db.execute(sql: "INSERT INTO relay_tasks VALUES (5, 'push', 'live', 'cam1', 'sealed1:x', 0, 10)")
            }
            if schema.has.contains("4 talk") {
                try db.execute(
                    sql: "INSERT INTO talk_settings VALUES ('cam1', 'ptt', 3, 4, 1, 1000, 0, 0), ('gone', 'ptt', 3, 4, 1, 1000, 0, 0)")
            }
            if schema.has.contains("5 recording orders") {
                try db.execute(sql: "INSERT INTO recording_orders VALUES ('t2', 'live', 'cam1', 'cam1', 1, 10, 1)")
            }
            if schema.has.contains("6 snapshots") {
                try db.execute(sql: "INSERT INTO snapshots VALUES (3, 's', 'live', 'cam1', 'cam1', 1, 'f.jpg', 10, 7, 6, 5)")
            }
            if schema.has.contains("7 talk members") {
                try db.execute(sql: "INSERT INTO talk_members VALUES ('cam1', 'u', 1, 0.5, NULL, 10), ('gone', 'u', 1, 0.5, NULL, 10)")
            }
            if schema.has.contains("8 kicks") {
                try db.execute(sql: "INSERT INTO kicks VALUES ('cam1', 'u', 9000000000000), ('gone', 'u', 9000000000000)")
            }
            if schema.has.contains("11 gatherings") {
                try db.execute(sql: "INSERT INTO gatherings VALUES ('plain-cam1', 'plain', 'cam1', '{}', 10, 11)")
            }
            if schema.has.contains("11 keys") {
                try db.execute(sql: "INSERT INTO access_keys VALUES ('AKID1', 'shop', 'app', 'secret', 10, NULL)")
            }
            if schema.has.contains("10 audit") {
                try db.execute(
                    sql: """
                        INSERT INTO audit (id, at, address, request_id, operation, result, status, is_refused)
                        VALUES (4, 10, '192.0.2.1', 'r', 'closeRoom', 'ok', 200, 0)
                        """)
            }
            if schema.has.contains("12 board strokes") {
                try db.execute(sql: "INSERT INTO board_strokes VALUES ('cam1', 'b', 1, 0, '{}')")
            }
            if schema.has.contains("9 clock") {
                // This step deletes what gone rooms left behind.
                for table in ["talk_settings", "talk_members", "kicks"] {
                    try db.execute(sql: "DELETE FROM \(table) WHERE room_id = 'gone'")
                }
            }
        }
        try pool.close()
    }

    private static let rows = """
        INSERT INTO rooms (row, id, instance, state, reason, title, custom, is_public, is_ad_hoc, created_at, waiting_since, peak, likes, members,
            last_event, policy_neverStarted, policy_grace, policy_cleanStop, policy_mediaIdle, policy_idleGrace, policy_pauseGrace,
            policy_heartbeat, policy_heartbeatMisses, policy_ownerOffline, policy_maxDuration, policy_retention, policy_urlLifetime)
        VALUES (7, 'cam1', 2, 'created', 'created', 'A title', '{"a":1}', 1, 0, 10, 10, 3, 4, 1, 9, 1000000000, 30000, 3000, 15000, 120000, 120000,
            15000, 3, 300000, 43200000, 86400000, 86400000);
        INSERT INTO room_words (rowid, words) VALUES (7, 'a title cam1');
        INSERT INTO members VALUES ('cam1', 'u', 'nick', 10, 11);
        INSERT INTO slots VALUES ('live', 'cam1', 'cam1', 1, NULL, '', 0, NULL, NULL, NULL, NULL);
        INSERT INTO pushes (sequence, app, name, room_id, slot, client_address, session, parameters, started_at)
        VALUES (6, 'live', 'cam1', 'cam1', 1, '192.0.2.1', 1, '', 10);
        INSERT INTO bans VALUES ('live', 'bad', 10, 9000000000000, 'why');
        INSERT INTO events (id, room_id, number, kind, instance, at, data) VALUES (8, 'cam1', 9, 'room.created', 2, 10, '{}');
        INSERT INTO outbox (id, url, format, lane, event_id, room_id, number, kind, instance, at, data, state, is_head, attempts, due_at)
        VALUES (4, 'http://x/', 'earshot', 'cam1', 8, 'cam1', 9, 'room.created', 2, 10, '{}', 'pending', 1, 0, 10);
        INSERT INTO tokens (id, name, role, hash, created_at) VALUES (3, 'ops', 'admin', 'hash', 10);
        INSERT INTO answers VALUES (3, 'key', 'print', 10, 200, '{}');
        """

    private static let recording = """
        INSERT INTO recordings VALUES (2, 'r', 't', 1, 'live', 'cam1', 'cam1', 1, 'finished', 'stopped', 'f.mp4', 10, 20, 10, 5, 'avc1', 'mp4a',
            640, 480, 0, 1);
        """

    /// Columns that later versions added.
    private static let added: Set<String> = ["kept_from", "policy_record", "app", "subject", "apps", "rooms", "redelivered_as", "via"]

    /// All rows as text, by table, and the schema.
    private static func contents(_ folder: String) throws -> (rows: [String: [String]], schema: [String]) {
        let queue = try DatabaseQueue(path: folder + "/earshot.db")
        defer { try? queue.close() }
        return try queue.read { db in
            let tables = try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            var rows: [String: [String]] = [:]
            for table in tables where !table.hasPrefix("room_words_") && table != "grdb_migrations" && table != "clock" {
                rows[table] = try Row.fetchAll(db, sql: "SELECT * FROM \(table)").map { row in
                    // Columns added later have their defaults.
                    row.filter { !Self.added.contains($0.0) }.map { "\($0.0)=\($0.1)" }.joined(separator: " ")
                }
            }
            let schema = try String.fetchAll(db, sql: "SELECT type || ' ' || name || ' ' || ifnull(sql, '') FROM sqlite_master ORDER BY 1")
            return (rows, schema)
        }
    }

    private static func withFolder(_ body: (String) throws -> Void) throws {
        let folder = NSTemporaryDirectory() + "earshot-schema-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try body(folder)
    }

    /// The schema of a fresh store.
    private static func newest() throws -> [String] {
        var schema: [String] = []
        try self.withFolder { folder in
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try SQLiteStore(directory: folder).close()
            schema = try self.contents(folder).schema
        }
        return schema
    }

    @Test(arguments: FormerSchemas.all) func everySchemaBecomesTodays(_ schema: FormerSchemas.Schema) throws {
        let newest = try Self.newest()
        try Self.withFolder { folder in
            try Self.make(schema, in: folder)
            let before = try Self.contents(folder)
            let store = try SQLiteStore(directory: folder, isAlone: true)
            #expect(store.notices.count == 1 && store.notices[0].contains(".schema-"), "\(store.notices)")
            #expect(try store.readNow { try $0.room("cam1") }?.title == "A title")
            #expect(try store.readNow { try $0.storeID() } ?? 0 != 0)
            store.close()
            let after = try Self.contents(folder)
            #expect(after.schema.sorted() == newest.sorted())
            for (table, rows) in before.rows {
                let kept = ["talk_settings", "talk_members", "kicks"].contains(table) ? rows.filter { !$0.contains("gone") } : rows
                #expect(after.rows[table] == kept, "\(table)")
            }
            // A copy of the former store is kept beside it.
            let copies = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.contains(".schema-") }
            #expect(copies.count == 1)
            let copy = try DatabaseQueue(path: "\(folder)/\(copies[0])")
            #expect(try copy.read { Set(try String.fetchAll($0, sql: "SELECT identifier FROM grdb_migrations")) } == schema.has)
            #expect(try copy.read { try String.fetchOne($0, sql: "SELECT title FROM rooms") } == "A title")
            let mode = try FileManager.default.attributesOfItem(atPath: "\(folder)/\(copies[0])")[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
    }

    @Test func theStepsAreInTheOrderOfTheirVersions() throws {
        let names = Migrations.steps.map(\.name)
        #expect(Set(names).count == names.count && Migrations.all.migrations == names)
        let versions = try names.map { try #require(Int($0.prefix { $0 != " " })) }
        #expect(versions == versions.sorted() && versions.last == Migrations.version)
    }

    /// An empty file, a store of this version, one of a newer, and another program's, with GRDB's table or without.
    @Test func whoseTablesTheyAre() throws {
        func facts(_ sql: [String]) throws -> String {
            let queue = try DatabaseQueue()
            return try queue.write { db in
                for statement in sql { try db.execute(sql: statement) }
                let store = StoreAccess(db)
                return try "\(Migrations.version(store)) \(Migrations.areForeign(store)) \(Migrations.areNewer(store))"
            }
        }
        let noted = "CREATE TABLE grdb_migrations (identifier TEXT)"
        func step(_ name: String) -> String { "INSERT INTO grdb_migrations VALUES ('\(name)')" }
        #expect(try facts([]) == "0 false false")
        #expect(try facts([noted]) == "0 false false")
        #expect(try facts([noted, step("1 rooms"), step("13 audit tools"), "CREATE TABLE rooms (id)"]) == "13 false false")
        #expect(try facts([noted, step("1 rooms"), step("14 more"), "CREATE TABLE rooms (id)"]) == "14 false true")
        #expect(try facts(["CREATE TABLE notes (id)"]) == "0 true false")
        #expect(try facts([noted, step("v1"), "INSERT INTO grdb_migrations VALUES (NULL)", "CREATE TABLE notes (id)"]) == "0 true true")
    }

    /// The files as a kill leaves them at each statement of the migration. The next start continues from there and loses nothing.
    @Test(arguments: FormerSchemas.all) func killedInBetween(_ schema: FormerSchemas.Schema) throws {
        let newest = try Self.newest().sorted()
        try Self.withFolder { folder in
            try Self.make(schema, in: folder)
            let before = try Self.contents(folder).rows["rooms"]
            let images = Images(of: folder)
            var configuration = Configuration()
            configuration.foreignKeysEnabled = false
            configuration.prepareDatabase { db in db.trace { _ in images.take() } }
            let pool = try DatabasePool(path: folder + "/earshot.db", configuration: configuration)
            try Migrations.all.migrate(pool)
            try pool.close()
            let steps = Migrations.all.migrations.count - schema.steps.count
            #expect(images.folders.count >= steps, "\(images.folders.count)")
            for image in images.folders {
                let store = try SQLiteStore(directory: image, isAlone: true)
                store.close()
                let after = try Self.contents(image)
                #expect(after.schema.sorted() == newest, "\(image)")
                #expect(after.rows["rooms"] == before, "\(image)")
            }
        }
    }

    /// Copies of a store's files, taken while it is being changed.
    private final class Images: @unchecked Sendable {
        // Filled only on the connection's queue, read when nothing runs on it.
        private(set) var folders: [String] = []
        private let folder: String

        private var last: [Int64?] = []

        init(of folder: String) { self.folder = folder }

        func take() {
            let names = ["earshot.db", "earshot.db-wal", "earshot.db-shm"].filter {
                FileManager.default.fileExists(atPath: "\(self.folder)/\($0)")
            }
            // Files change when a transaction commits, or starts to.
            let sizes = names.map { FileIdentity(path: "\(self.folder)/\($0)")?.size }
            guard sizes != self.last else { return }
            self.last = sizes
            let image = "\(self.folder)/image-\(self.folders.count)"
            do {
                try FileManager.default.createDirectory(atPath: image, withIntermediateDirectories: true)
                // Copied by another process: closing these files in this one would release SQLite's locks.
                let copy = Process()
                copy.executableURL = URL(fileURLWithPath: "/bin/cp")
                copy.arguments = names.map { "\(self.folder)/\($0)" } + [image]
                try copy.run()
                copy.waitUntilExit()
                self.folders.append(image)
            } catch {
                Issue.record("\(error)")
            }
        }
    }

    @Test func aNewerOneIsLeftAsItIs() throws {
        try Self.withFolder { folder in
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try SQLiteStore(directory: folder).close()
            try DatabaseQueue(path: folder + "/earshot.db").write {
                try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('99 future')")
            }
            let before = try Data(contentsOf: URL(fileURLWithPath: folder + "/earshot.db"))
            do {
                _ = try SQLiteStore(directory: folder, isAlone: true)
                Issue.record("opened")
            } catch {
                #expect("\(error)".contains("newer version"))
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder + "/earshot.db")) == before)
        }
    }
}
