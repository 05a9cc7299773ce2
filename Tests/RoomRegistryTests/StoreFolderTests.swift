import Foundation
import GRDB
import Testing

@testable import RoomRegistry
@testable import Store
@testable import Rooms

/// `earshot store`: checks, backups and restores on real files.
@Suite struct StoreFolderTests {
    private static let secrets = ["keys.json", "links.key", "admin-token"]

    private static func withFolders(_ body: (_ data: String, _ base: String) async throws -> Void) async throws {
        let base = NSTemporaryDirectory() + "earshot-backup-\(UUID().uuidString)"
        let data = base + "/data"
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: base) }
        for name in Self.secrets.dropLast() { try Data("secret of \(name)".utf8).write(to: URL(fileURLWithPath: "\(data)/\(name)")) }
        try await body(data, base)
    }

    private static func create(_ id: String, in registry: RoomRegistry) async throws {
        var new = NewRoom(policy: RoomPolicy())
        new.id = try RoomID(checking: id)
        _ = try await registry.create(new, by: Actor("test"))
    }

    private static func rooms(_ folder: String) throws -> [String] {
        let queue = try DatabaseQueue(path: folder + "/earshot.db")
        defer { try? queue.close() }
        return try queue.read { try String.fetchAll($0, sql: "SELECT id FROM rooms ORDER BY id") }
    }

    private static func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test func backupBesideAServerAndRestore() async throws {
        try await Self.withFolders { data, base in
            let folder = StoreFolder(directory: data, secrets: Self.secrets, ofStore: ["admin-token"])
            let registry = try RoomRegistry(.folder(data), settings: RoomRegistry.Settings())
            try await registry.start()
            try await Self.create("kept", in: registry)
            let report = try folder.check()
            #expect(report.isInUse && report.problems == [] && report.schema == StoreSchema.version)
            #expect(report.rows.first { $0.what == "rooms" }?.count == 1)
            let backup = base + "/backup"
            try folder.backup(to: backup)
            #expect(try FileManager.default.contentsOfDirectory(atPath: backup).sorted() == ["earshot.db", "keys.json", "links.key"])
            #expect(try Self.mode(backup) == 0o700)
            for name in ["earshot.db", "keys.json", "links.key"] { #expect(try Self.mode("\(backup)/\(name)") == 0o600, "\(name)") }
            // Never over an existing backup.
            let error = #expect(throws: StoreError.self) { try folder.backup(to: backup) }
            #expect(error?.isConflict == true)
            try await Self.create("later", in: registry)
            // Not under a running server.
            let busy = #expect(throws: StoreError.self) { try folder.restore(from: backup) }
            #expect(busy?.isConflict == true && "\(busy.map { "\($0)" } ?? "")".contains("another server"))
            await registry.stop()
            try Data("other".utf8).write(to: URL(fileURLWithPath: data + "/keys.json"))
            try Data("token".utf8).write(to: URL(fileURLWithPath: data + "/admin-token"))
            let former = try #require(try folder.restore(from: backup))
            let aside = former.folder
            #expect(former.missing == ["admin-token"])
            #expect(try Self.rooms(data) == ["kept"])
            #expect(try Self.rooms(aside) == ["kept", "later"])
            #expect(FileManager.default.contents(atPath: data + "/keys.json") == Data("secret of keys.json".utf8))
            #expect(FileManager.default.contents(atPath: aside + "/keys.json") == Data("other".utf8))
            #expect(FileManager.default.contents(atPath: aside + "/admin-token") == Data("token".utf8))
            #expect(!FileManager.default.fileExists(atPath: data + "/admin-token"))
            #expect(try Self.mode(aside) == 0o700)
            let left = try FileManager.default.contentsOfDirectory(atPath: data).filter {
                $0.hasPrefix("restore-") || $0.hasSuffix(".restoring")
            }
            #expect(left == [])
            // Into an empty directory as well.
            let fresh = StoreFolder(directory: base + "/fresh", secrets: Self.secrets)
            #expect(try fresh.restore(from: backup) == nil)
            let again = try RoomRegistry(.folder(base + "/fresh"), settings: RoomRegistry.Settings())
            try await again.start()
            #expect(try await again.room("kept").state == .created)
            await again.stop()
        }
    }

    /// A backup taken while rooms are created at full speed is consistent.
    @Test func backupUnderWrites() async throws {
        try await Self.withFolders { data, base in
            let registry = try RoomRegistry(.folder(data), settings: RoomRegistry.Settings())
            try await registry.start()
            let writer = Task {
                var number = 0
                while !Task.isCancelled {
                    try await Self.create("r\(number)", in: registry)
                    number += 1
                }
                return number
            }
            let folder = StoreFolder(directory: data, secrets: [])
            while try await registry.roomCounts()[.created] ?? 0 < 10 { try await Task.sleep(for: .milliseconds(5)) }
            for number in 0..<5 {
                try folder.backup(to: "\(base)/backup\(number)")
                let report = try StoreFolder(directory: "\(base)/backup\(number)", secrets: []).check()
                #expect(report.problems == [], "\(report.problems)")
            }
            writer.cancel()
            #expect(try await writer.value > 0)
            await registry.stop()
        }
    }

    @Test func aRestoreThatWasCutOffKeepsTheServerFromStarting() async throws {
        try await Self.withFolders { data, base in
            try SQLiteStore(directory: data).close()
            let folder = StoreFolder(directory: data, secrets: Self.secrets)
            try folder.backup(to: base + "/backup")
            // As after a kill with the former files moved away and the new ones not there yet.
            #expect(FileManager.default.createFile(atPath: data + "/earshot.restoring", contents: nil))
            try FileManager.default.moveItem(atPath: data + "/earshot.db", toPath: base + "/away.db")
            let error = #expect(throws: StoreError.self) { try RoomRegistry(.folder(data), settings: RoomRegistry.Settings()) }
            #expect("\(error.map { "\($0)" } ?? "")".contains("was not finished"))
            #expect(!FileManager.default.fileExists(atPath: data + "/earshot.db"))
            _ = try folder.restore(from: base + "/backup")
            #expect(try folder.check().problems == [])
            let registry = try RoomRegistry(.folder(data), settings: RoomRegistry.Settings())
            await registry.stop()
        }
    }

    @Test func checkFindsWhatIsWrong() async throws {
        try await Self.withFolders { data, base in
            let folder = StoreFolder(directory: data, secrets: [])
            let none = #expect(throws: StoreError.self) { try folder.check() }
            #expect("\(none.map { "\($0)" } ?? "")".contains("missing or empty"))
            let registry = try RoomRegistry(.folder(data), settings: RoomRegistry.Settings())
            try await registry.start()
            for number in 0..<200 { try await Self.create("room\(number)", in: registry) }
            await registry.stop()
            #expect(try folder.check().problems == [])
            try folder.backup(to: base + "/good")
            let path = data + "/earshot.db"
            let good = try Data(contentsOf: URL(fileURLWithPath: path))
            try await DatabaseQueue(path: path).writeWithoutTransaction { db in
                try db.execute(
                    sql:
                        "PRAGMA foreign_keys = OFF; INSERT INTO kicks VALUES ('gone', 'u', 1); UPDATE room_counts SET n = n + 5 WHERE owner = ''"
                )
            }
            let problems = try folder.check().problems
            #expect(problems.contains { $0.contains("rows of kicks") } && problems.contains { $0.contains("counters") }, "\(problems)")
            // A damaged page.
            var bad = good
            for at in (bad.count / 2)..<(bad.count / 2 + 4_096) { bad[at] = 0x33 }
            try bad.write(to: URL(fileURLWithPath: path))
            let damage = Result { try folder.check().problems }
            switch damage {
            case .success(let problems): #expect(!problems.isEmpty)
            case .failure(let error): #expect("\(error)".contains("damaged"), "\(error)")
            }
            // It can be neither backed up nor restored from.
            #expect(throws: StoreError.self) { try folder.backup(to: base + "/bad") }
            #expect(!FileManager.default.fileExists(atPath: base + "/bad"))
            #expect(throws: StoreError.self) {
                try StoreFolder(directory: base + "/other", secrets: []).restore(from: data)
            }
            #expect(!FileManager.default.fileExists(atPath: base + "/other/earshot.db"))
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == bad)
            _ = try folder.restore(from: base + "/good")
            #expect(try folder.check().problems == [])
        }
    }

    @Test func aNewerBackupIsRefused() async throws {
        try await Self.withFolders { data, base in
            try SQLiteStore(directory: data).close()
            let folder = StoreFolder(directory: data, secrets: [])
            try folder.backup(to: base + "/backup")
            let queue = try DatabaseQueue(path: base + "/backup/earshot.db")
            try await queue.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('10 future')") }
            try queue.close()
            let error = #expect(throws: StoreError.self) { try folder.restore(from: base + "/backup") }
            #expect("\(error.map { "\($0)" } ?? "")".contains("newer"))
        }
    }
}
