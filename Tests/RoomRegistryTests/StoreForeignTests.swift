import Foundation
import GRDB
import Testing

@testable import RoomRegistry
@testable import Store
@testable import Rooms

/// `earshot store` and the server's start with foreign or incomplete files. Shows what they leave untouched.
@Suite struct StoreForeignTests {
    private static let secrets = ["keys.json", "links.key", "admin-token"]

    private static func withFolders(_ body: (_ data: String, _ base: String) async throws -> Void) async throws {
        let base = NSTemporaryDirectory() + "earshot-foreign-\(UUID().uuidString)"
        let data = base + "/data"
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: base) }
        try await body(data, base)
    }

    private static func folder(_ directory: String) -> StoreFolder {
        StoreFolder(directory: directory, secrets: self.secrets, ofStore: ["admin-token"])
    }

    private static func write(_ text: String, _ path: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }

    /// Every file's bytes, by its path.
    private static func files(_ folder: String) throws -> [String: Data] {
        var files: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: folder) {
            files[name] = FileManager.default.contents(atPath: "\(folder)/\(name)") ?? Data()
        }
        return files
    }

    /// Another program's database, with or without migrations of its own.
    private static func makeForeign(_ path: String, hasMigrations: Bool) async throws {
        let queue = try DatabaseQueue(path: path)
        try await queue.write { db in
            try db.execute(sql: "CREATE TABLE foo (x); INSERT INTO foo VALUES (1)")
            if hasMigrations {
                try db.execute(
                    sql: "CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY); INSERT INTO grdb_migrations VALUES ('v1')")
            }
        }
        try queue.close()
    }

    private static func text(_ error: (any Error)?) -> String { error.map { "\($0)" } ?? "nothing was thrown" }

    /// Also when that program was killed in mid-change, which SQLite would roll back.
    @Test(arguments: [true, false], [true, false])
    func anotherProgramsDatabaseIsLeftAlone(_ hasMigrations: Bool, _ hasJournal: Bool) async throws {
        try await Self.withFolders { data, base in
            try await Self.makeForeign(data + "/earshot.db", hasMigrations: hasMigrations)
            if hasJournal {
                let pages = try Self.files(data)["earshot.db"].map { UInt8($0.count / 4_096) } ?? 0
                try RoomStoreFilesTests.journal(pages: pages).write(to: URL(fileURLWithPath: data + "/earshot.db-journal"))
            }
            let before = try Self.files(data)
            let problems = try Self.folder(data).check().problems
            #expect(problems.first?.contains("another program's database") == true, "\(problems)")
            #expect(try Self.files(data) == before)
            let backup = #expect(throws: StoreError.self) { try Self.folder(data).backup(to: base + "/backup") }
            #expect(Self.text(backup).contains("another program's database"))
            for isAlone in [true, false] {
                let start = #expect(throws: StoreError.self) { try SQLiteStore(directory: data, isAlone: isAlone) }
                #expect(Self.text(start).contains("another program's database") && Self.text(start).contains("another data directory"))
            }
            #expect(try Self.files(data) == before)
            // Restoring it over a directory that has a store.
            let own = base + "/own"
            try FileManager.default.createDirectory(atPath: own, withIntermediateDirectories: true)
            try SQLiteStore(directory: own).close()
            try Self.write("keys", own + "/keys.json")
            let mine = try Self.files(own)
            let restore = #expect(throws: StoreError.self) { try Self.folder(own).restore(from: data) }
            #expect(Self.text(restore).contains("not a complete backup"))
            #expect(try Self.files(own) == mine)
        }
    }

    @Test func aDatabaseWithoutTablesIsNoBackup() async throws {
        try await Self.withFolders { data, base in
            let queue = try DatabaseQueue(path: data + "/earshot.db")
            try await queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = 5") }
            try queue.close()
            #expect(try Self.folder(data).check().problems.first?.contains("no tables") == true)
            #expect(throws: StoreError.self) { try Self.folder(base + "/other").restore(from: data) }
            // A server creates its own store there.
            try SQLiteStore(directory: data, isAlone: true).close()
            #expect(try Self.folder(data).check().problems == [])
            try await DatabaseQueue(path: data + "/earshot.db").write { try $0.execute(sql: "DROP TABLE rooms") }
            #expect(try Self.folder(data).check().problems.first?.contains("rooms") == true)
        }
    }

    @Test func aBackupWithoutTheKeysIsRefused() async throws {
        try await Self.withFolders { data, base in
            try SQLiteStore(directory: data).close()
            let folder = Self.folder(data)
            try folder.backup(to: base + "/backup")
            try Self.write("the keys", data + "/keys.json")
            try Self.write("the token", data + "/admin-token")
            let before = try Self.files(data)
            let refused = #expect(throws: StoreError.self) { try folder.restore(from: base + "/backup") }
            #expect(Self.text(refused).contains("has no keys.json") && Self.text(refused).contains("copy \(data)/keys.json"))
            #expect(try Self.files(data).filter { $0.key != "earshot.lock" } == before)
            try FileManager.default.copyItem(atPath: data + "/keys.json", toPath: base + "/backup/keys.json")
            #expect(try folder.restore(from: base + "/backup")?.missing == ["admin-token"])
            #expect(FileManager.default.contents(atPath: data + "/keys.json") == Data("the keys".utf8))
        }
    }

    @Test func theDataDirectoryIsNoPlaceForBackups() async throws {
        try await Self.withFolders { data, base in
            try SQLiteStore(directory: data).close()
            let link = base + "/link"
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: data)
            for location in [data, link] {
                let itself = #expect(throws: StoreError.self) { try Self.folder(data).restore(from: location) }
                #expect(Self.text(itself).contains("the data directory itself"))
                let inside = #expect(throws: StoreError.self) { try Self.folder(data).backup(to: location + "/backup") }
                #expect(Self.text(inside).contains("in the data directory itself"))
            }
            try Self.folder(data).backup(to: base + "/data-backup")
            #expect(try Self.folder(base + "/data-backup").check().problems == [])
        }
    }

    /// Without a server, check and backup change no file. That includes the index, the only trace of a log's lost end.
    @Test(arguments: [1.0, 0.6, 0]) func lookingChangesNothing(_ share: Double) async throws {
        try await Self.withFolders { data, base in
            let live = base + "/live"
            try FileManager.default.createDirectory(atPath: live, withIntermediateDirectories: true)
            let registry = try RoomRegistry(.folder(live), settings: RoomRegistry.Settings())
            try await registry.start()
            for number in 1...20 {
                var new = NewRoom(policy: RoomPolicy())
                new.id = try RoomID(checking: "room\(number)")
                _ = try await registry.create(new, by: Actor("test"))
            }
            // As a kill leaves them. Copied by another process: closing these files in this one would release SQLite's locks.
            let copy = Process()
            copy.executableURL = URL(fileURLWithPath: "/bin/cp")
            copy.arguments = ["", "-wal", "-shm"].map { "\(live)/earshot.db\($0)" } + [data]
            try copy.run()
            copy.waitUntilExit()
            await registry.stop()
            let log = data + "/earshot.db-wal"
            if share == 0 {
                try FileManager.default.removeItem(atPath: log)
            } else {
                let bytes = try Data(contentsOf: URL(fileURLWithPath: log))
                try bytes.prefix(Int(Double(bytes.count) * share)).write(to: URL(fileURLWithPath: log))
            }
            let before = try Self.files(data)
            #expect(before.keys.contains("earshot.db-shm"))
            for _ in 0..<2 {
                let report = try Self.folder(data).check()
                #expect(report.problems.isEmpty == (share == 1), "\(report.problems)")
                if share == 1 { #expect(report.rows.first { $0.what == "rooms" }?.count == 20) }
                if share == 0.6 { #expect(report.problems.first?.contains("cut off") == true, "\(report.problems)") }
                if share == 0 { #expect(report.problems.first?.contains("missing or empty") == true, "\(report.problems)") }
                #expect(try Self.files(data) == before)
            }
            if share == 1 {
                try Self.folder(data).backup(to: base + "/backup")
                #expect(try Self.files(data) == before)
                #expect(try Self.folder(base + "/backup").check().rows.first { $0.what == "rooms" }?.count == 20)
            }
            let store = try SQLiteStore(directory: data, isAlone: true)
            #expect(store.notices.isEmpty == (share == 1), "\(store.notices)")
            if share == 0.6 { #expect(store.notices.first?.contains("cut off") == true, "\(store.notices)") }
            if share == 0 { #expect(store.notices.first?.contains("newest changes are lost") == true, "\(store.notices)") }
            store.close()
        }
    }

    /// Left by processes killed between a copy and its rename.
    @Test func unfinishedCopiesGoAtTheStart() async throws {
        try await Self.withFolders { data, _ in
            let dead = Process()
            dead.executableURL = URL(fileURLWithPath: "/bin/true")
            try dead.run()
            dead.waitUntilExit()
            let (gone, alive) = (dead.processIdentifier, getpid())
            let stale = ["earshot.db.schema-8.partial-\(gone)", "earshot.db.schema-8.partial-\(gone)-journal", "earshot.db.view-\(gone)"]
            let kept = [
                "earshot.db.schema-8.partial-\(alive)", "earshot.db.schema-8", "earshot.db-wal.20261122T101500Z",
                "keys.json.partial-\(gone)",
                "earshot.db.partial-\(gone)x", "before-restore-20261122T101500Z", "restore-notes",
            ]
            for name in stale + kept { try Self.write("x", "\(data)/\(name)") }
            try FileManager.default.createDirectory(atPath: "\(data)/restore-\(gone)", withIntermediateDirectories: true)
            try Self.write("x", "\(data)/restore-\(gone)/earshot.db")
            try SQLiteStore(directory: data, isAlone: true).close()
            let names = Set(try FileManager.default.contentsOfDirectory(atPath: data))
            #expect(names.isDisjoint(with: stale + ["restore-\(gone)"]), "\(names)")
            #expect(names.isSuperset(of: kept), "\(names)")
        }
    }
}
