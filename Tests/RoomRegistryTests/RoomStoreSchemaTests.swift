import Foundation
import GRDB
import Testing

@testable import RoomRegistry
@testable import Store
@testable import Rooms

/// The steps of the schema, by a made-up second one: a store becomes the newer version's with its contents, wherever the process is killed.
@Suite struct RoomStoreSchemaTests {
    private static let second = StoreSchema.Step(
        sqlite: """
            ALTER TABLE rooms ADD COLUMN colour TEXT NOT NULL DEFAULT 'red';
            CREATE TABLE paints (name TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
            INSERT INTO paints SELECT DISTINCT colour FROM rooms;
            """,
        postgres: "")

    private static let steps = StoreSchema.steps + [second]

    /// A store of the first version with some rooms.
    private static func make(in folder: String) async throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let registry = try RoomRegistry(.folder(folder), settings: .init())
        for name in ["cam1", "cam2"] {
            var room = NewRoom(policy: RoomPolicy())
            room.id = try RoomID(checking: name)
            _ = try await registry.create(room, by: Actor("test"))
        }
        await registry.stop()
    }

    /// All rows as text, by table, and the schema.
    private static func contents(_ folder: String) throws -> (rows: [String: [String]], schema: [String]) {
        let queue = try DatabaseQueue(path: folder + "/earshot.db")
        defer { try? queue.close() }
        return try queue.read { db in
            let tables = try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            var rows: [String: [String]] = [:]
            for table in tables where !table.hasPrefix("room_words_") {
                rows[table] = try Row.fetchAll(db, sql: "SELECT * FROM \(table)").map { row in
                    row.filter { $0.0 != "colour" }.map { "\($0.0)=\($0.1)" }.joined(separator: " ")
                }
            }
            let schema = try String.fetchAll(db, sql: "SELECT type || ' ' || name || ' ' || ifnull(sql, '') FROM sqlite_master ORDER BY 1")
            return (rows, schema.sorted())
        }
    }

    private static func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = NSTemporaryDirectory() + "earshot-schema-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder)
    }

    /// The schema of a fresh store of the second version.
    private static func newest() async throws -> [String] {
        var schema: [String] = []
        try await self.withFolder { folder in
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try SQLiteStore(directory: folder, steps: Self.steps).close()
            schema = try self.contents(folder).schema
        }
        return schema
    }

    @Test func aStoreBecomesTheNewerVersions() async throws {
        let newest = try await Self.newest()
        try await Self.withFolder { folder in
            try await Self.make(in: folder)
            let before = try Self.contents(folder)
            let store = try SQLiteStore(directory: folder, isAlone: true, steps: Self.steps)
            #expect(store.notices.count == 1 && store.notices[0].contains("migrated from 1 to 2"), "\(store.notices)")
            #expect(try store.readNow { try $0.room("cam1") }?.id.rawValue == "cam1")
            #expect(try store.readNow { try $0.storeID() } ?? 0 != 0)
            store.close()
            let after = try Self.contents(folder)
            #expect(after.schema == newest && after.rows["paints"] == ["name=\"red\""])
            for (table, rows) in before.rows where table != "grdb_migrations" { #expect(after.rows[table] == rows, "\(table)") }
            // A copy of the former store is kept beside it.
            let copies = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.contains(".schema-") }
            #expect(copies == ["earshot.db.schema-1"])
            let copy = try DatabaseQueue(path: "\(folder)/earshot.db.schema-1")
            #expect(try await copy.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM rooms") } == 2)
            #expect(try await copy.read { try SQLiteSchema.state($0) } == .version(1))
            let mode = try FileManager.default.attributesOfItem(atPath: "\(folder)/earshot.db.schema-1")[.posixPermissions] as? Int
            #expect(mode == 0o600)
            // Nothing is left to do at the next start, and the former version refuses it.
            let again = try SQLiteStore(directory: folder, isAlone: true, steps: Self.steps)
            #expect(again.notices == [])
            again.close()
            let former = #expect(throws: StoreError.self) { try SQLiteStore(directory: folder, isAlone: true) }
            #expect(former?.problem == "was written by a newer version of earshot")
        }
    }

    @Test func whoseTablesTheyAre() {
        typealias State = StoreSchema.State
        #expect(State(applied: [], hasTables: false) == .empty)
        #expect(State(applied: [], hasTables: true) == .foreign)
        #expect(State(applied: ["v1"], hasTables: true) == .foreign)
        #expect(State(applied: ["1"], hasTables: true) == .version(1))
        #expect(State(applied: ["1", "2"], hasTables: true) == .newer)
        #expect(State(applied: ["1", "2"], hasTables: true, known: 2) == .version(2))
        #expect(State(applied: ["1", "future"], hasTables: true, known: 2) == .newer)
        #expect(State(applied: ["1 rooms", "13 audit tools"], hasTables: true) == .unreleased)
    }

    /// A store that a build from before the first release has made is refused in words, and left as it is.
    @Test(arguments: [true, false]) func anUnreleasedStoreIsRefused(_ isAlone: Bool) async throws {
        try await Self.withFolder { folder in
            try await Self.make(in: folder)
            let queue = try DatabaseQueue(path: folder + "/earshot.db")
            try await queue.write { try $0.execute(sql: "UPDATE grdb_migrations SET identifier = '1 rooms'") }
            try queue.close()
            let before = try Data(contentsOf: URL(fileURLWithPath: folder + "/earshot.db"))
            let refused = #expect(throws: StoreError.self) { try SQLiteStore(directory: folder, isAlone: isAlone) }
            #expect(refused?.problem.contains("before the first release") == true && refused?.advice.contains("move the file away") == true)
            let check = try StoreFolder(directory: folder, secrets: []).check()
            #expect(check.problems.first?.contains("before the first release") == true, "\(check.problems)")
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder + "/earshot.db")) == before)
        }
    }

    /// The files as a kill leaves them at each statement of the migration. The next start continues from there and loses nothing.
    @Test func killedInBetween() async throws {
        let newest = try await Self.newest()
        try await Self.withFolder { folder in
            try await Self.make(in: folder)
            let before = try Self.contents(folder).rows["rooms"]
            let images = Images(of: folder)
            var configuration = Configuration()
            configuration.foreignKeysEnabled = false
            configuration.prepareDatabase { db in db.trace { _ in images.copy() } }
            let pool = try DatabasePool(path: folder + "/earshot.db", configuration: configuration)
            try SQLiteSchema.migrate(pool, Self.steps)
            try pool.close()
            #expect(images.folders.count >= 2, "\(images.folders.count)")
            for image in images.folders {
                let store = try SQLiteStore(directory: image, isAlone: true, steps: Self.steps)
                store.close()
                let after = try Self.contents(image)
                #expect(after.schema == newest, "\(image)")
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

        func copy() {
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

    @Test func aNewerOneIsLeftAsItIs() async throws {
        try await Self.withFolder { folder in
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try SQLiteStore(directory: folder).close()
            try await DatabaseQueue(path: folder + "/earshot.db").write {
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
