import GRDB

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A data directory as its operator handles it: looked at and copied while a server runs on it or not, replaced while none does. All calls
/// block. A value.
package struct StoreFolder: Sendable {
    private let directory: String
    /// Files of secrets that go with the store: without them its credentials and sealed addresses are worth nothing.
    private let secrets: [String]
    private var path: String { RoomStore.path(in: self.directory) }

    package init(directory: String, secrets: [String]) {
        self.directory = directory
        self.secrets = secrets
    }

    /// What a look at the store has found.
    package struct Report: Sendable, Equatable {
        package let path: String
        /// Bytes, and those of the log beside it.
        package let bytes: Int64
        package let logBytes: Int64
        /// A server runs on it.
        package let isInUse: Bool
        package let schema: Int
        package let newestSchema: Int
        /// How many rows there are of what.
        package let rows: [(what: String, count: Int64)]
        /// Empty: nothing is wrong.
        package let problems: [String]

        package static func == (left: Self, right: Self) -> Bool {
            left.path == right.path && left.bytes == right.bytes && left.logBytes == right.logBytes && left.isInUse == right.isInUse
                && left.schema == right.schema && left.newestSchema == right.newestSchema && left.problems == right.problems
                && left.rows.map(\.what) == right.rows.map(\.what) && left.rows.map(\.count) == right.rows.map(\.count)
        }
    }

    /// Of each kind of damage.
    private static let mostProblems = 20

    // MARK: - Check

    /// Reads the whole store. Changes nothing. Throws ``StoreError`` when it cannot be read.
    package func check() throws -> Report {
        try self.explained {
            let isInUse = StoreLock.isHeld(directory: self.directory)
            var problems: [String] = []
            if !isInUse { problems += try StoreInspection(path: self.path, directory: self.directory).notices }
            let store = try self.reader()
            defer { try? store.close() }
            return try store.read { db in
                let schema = try Migrations.version(db)
                if try Migrations.all.hasBeenSuperseded(db) {
                    problems.append("its schema (\(schema)) is newer than this version of earshot knows (\(Migrations.version))")
                }
                problems += try String.fetchAll(db, sql: "PRAGMA integrity_check(\(Self.mostProblems))").filter { $0 != "ok" }
                    .map { $0.split(separator: "\n").joined(separator: " ") }
                if schema >= Migrations.version { problems += try Self.strays(db) }
                return Report(
                    path: self.path, bytes: FileIdentity(path: self.path)?.size ?? 0,
                    logBytes: FileIdentity(path: self.path + "-wal")?.size ?? 0, isInUse: isInUse, schema: schema,
                    newestSchema: Migrations.version, rows: try Self.count(db), problems: problems)
            }
        }
    }

    /// Rows that refer to what is not there, and counters that count wrong.
    private static func strays(_ db: Database) throws -> [String] {
        var problems: [String] = []
        for table in ["slots", "members", "talk_settings", "talk_members", "kicks"] {
            let sql = "SELECT count(*) FROM \(table) WHERE room_id NOT IN (SELECT id FROM rooms)"
            if let count = try Int.fetchOne(db, sql: sql), count > 0 { problems.append("\(count) rows of \(table) belong to no room") }
        }
        let rooms = try Int.fetchOne(db, sql: "SELECT count(*) FROM rooms WHERE id NOT IN (SELECT room_id FROM slots)") ?? 0
        if rooms > 0 { problems.append("\(rooms) rooms have no stream") }
        let counted = try Int.fetchOne(db, sql: "SELECT total(n) FROM room_counts WHERE owner = ''") ?? 0
        let there = try Int.fetchOne(db, sql: "SELECT count(*) FROM rooms") ?? 0
        if counted != there { problems.append("the counters have \(counted) rooms, and there are \(there)") }
        return problems
    }

    private static func count(_ db: Database) throws -> [(what: String, count: Int64)] {
        var rows: [(what: String, count: Int64)] = []
        for table in ["rooms", "events", "recordings", "tokens"] where try db.tableExists(table) {
            rows.append((table, try Int64.fetchOne(db, sql: "SELECT count(*) FROM \(table)") ?? 0))
        }
        return rows
    }

    /// Does not write, nor take up changes into the store's own file.
    private func reader() throws -> DatabaseQueue {
        guard let size = FileIdentity(path: self.path)?.size, size > 0 else {
            throw StoreError(path: self.path, problem: "is missing or empty", advice: "name the server's data directory")
        }
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        return try DatabaseQueue(path: self.path, configuration: configuration)
    }

    // MARK: - Backup

    /// Copies the store, as it is at one moment, and the secrets into a new folder. Whole or not at all. Throws ``StoreError``.
    package func backup(to folder: String) throws {
        try self.explained {
            guard !FileManager.default.fileExists(atPath: folder) else {
                throw StoreError(path: folder, problem: "is there already", advice: "name a folder that is not there yet", isConflict: true)
            }
            if !StoreLock.isHeld(directory: self.directory),
                let notice = try StoreInspection(path: self.path, directory: self.directory).notices.first
            {
                throw StoreError(
                    path: self.path, problem: notice, advice: "start the server once, which says what is left, or restore a backup")
            }
            let partial = "\(folder).partial-\(getpid())"
            guard mkdir(partial, 0o700) == 0 else { throw FileFailure("make", partial) }
            defer { try? FileManager.default.removeItem(atPath: partial) }
            let store = try self.reader()
            defer { try? store.close() }
            guard try !store.read({ try Migrations.all.hasBeenSuperseded($0) }) else { throw RoomStore.newer(self.path) }
            try StoreCopy.make(of: store, at: RoomStore.path(in: partial))
            for name in self.secrets where FileManager.default.fileExists(atPath: "\(self.directory)/\(name)") {
                try StoreCopy.copy("\(self.directory)/\(name)", to: "\(partial)/\(name)")
            }
            try StoreCopy.sync(partial)
            // Fails where a folder with something in it has come meanwhile.
            guard rename(partial, folder) == 0 else { throw FileFailure("make", folder) }
            try StoreCopy.sync(StoreCopy.folder(of: folder))
        }
    }

    // MARK: - Restore

    /// Puts a backup's files into the data directory, and what was there into a folder beside them, whose path is returned (nil: there was
    /// nothing). One that is cut off is to be run again: the server does not start before. Throws ``StoreError``.
    package func restore(from backup: String) throws -> String? {
        let copy = StoreFolder(directory: backup, secrets: self.secrets)
        let report = try copy.check()
        guard report.problems.isEmpty else {
            throw StoreError(path: report.path, problem: "is no whole backup: \(report.problems[0])", advice: "take another one")
        }
        return try self.explained {
            if mkdir(self.directory, 0o700) != 0, errno != EEXIST { throw FileFailure("make", self.directory) }
            let lock = try StoreLock(directory: self.directory, store: self.path)
            defer { withExtendedLifetime(lock) {} }
            let staged = "\(self.directory)/restore-\(getpid())"
            try? FileManager.default.removeItem(atPath: staged)
            guard mkdir(staged, 0o700) == 0 else { throw FileFailure("make", staged) }
            defer { try? FileManager.default.removeItem(atPath: staged) }
            let source = try copy.reader()
            try StoreCopy.make(of: source, at: RoomStore.path(in: staged))
            try source.close()
            for name in self.secrets where FileManager.default.fileExists(atPath: "\(backup)/\(name)") {
                try StoreCopy.copy("\(backup)/\(name)", to: "\(staged)/\(name)")
            }
            return try self.exchange(staged)
        }
    }

    /// From the mark on, a server that is started says that the restore was not finished.
    private func exchange(_ staged: String) throws -> String? {
        let mark = StoreInspection.restoreMark(in: self.directory)
        guard FileManager.default.createFile(atPath: mark, contents: nil, attributes: [.posixPermissions: 0o600]) else {
            throw FileFailure("make", mark)
        }
        try StoreCopy.sync(self.directory)
        let names = [RoomStore.fileName] + ["-wal", "-shm"].map { RoomStore.fileName + $0 } + self.secrets
        let left = names.filter { FileIdentity(path: "\(self.directory)/\($0)") != nil }
        var aside: String?
        if !left.isEmpty {
            let folder = StoreFiles.free("\(self.directory)/before-restore-\(StoreFiles.stamp())")
            guard mkdir(folder, 0o700) == 0 else { throw FileFailure("make", folder) }
            for name in left {
                guard rename("\(self.directory)/\(name)", "\(folder)/\(name)") == 0 else {
                    throw FileFailure("move", "\(self.directory)/\(name)")
                }
            }
            try StoreCopy.sync(folder)
            aside = folder
        }
        for name in names where FileIdentity(path: "\(staged)/\(name)") != nil {
            guard rename("\(staged)/\(name)", "\(self.directory)/\(name)") == 0 else {
                throw FileFailure("make", "\(self.directory)/\(name)")
            }
        }
        try StoreCopy.sync(self.directory)
        guard unlink(mark) == 0 else { throw FileFailure("remove", mark) }
        try StoreCopy.sync(self.directory)
        return aside
    }

    /// Turns what went wrong into what an operator is told.
    private func explained<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as FileFailure {
            throw StoreError(path: self.directory, problem: error.description, advice: "check disk space and permissions")
        } catch {
            throw RoomStore.explain(error, path: self.path)
        }
    }
}
