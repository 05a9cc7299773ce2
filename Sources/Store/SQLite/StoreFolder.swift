import GRDB
import LibC

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A data directory, for its operator. It can be checked and copied whether or not a server runs on it, and restored only while none does.
/// All calls block. A value.
package struct StoreFolder: Sendable {
    private let directory: String
    /// Secret files that go with the store. Without them its credentials and sealed addresses are useless.
    private let secrets: [String]
    /// Those of `secrets` that are useful only with this store.
    private let ofStore: [String]
    private var path: String { SQLiteStore.path(in: self.directory) }

    package init(directory: String, secrets: [String], ofStore: [String] = []) {
        self.directory = directory
        self.secrets = secrets
        self.ofStore = ofStore
    }

    /// Whether it has a store; a server makes one at its first start.
    package var hasStore: Bool { access(self.path, F_OK) == 0 }

    /// The result of a check of the store.
    package struct Report: Sendable, Equatable {
        package let path: String
        /// Bytes of the store, and of the log beside it.
        package let bytes: Int64
        package let logBytes: Int64
        /// Whether a server runs on the directory.
        package let isInUse: Bool
        package let schema: Int
        package let newestSchema: Int
        /// Row counts by table.
        package let rows: [(what: String, count: Int64)]
        /// Empty if nothing is wrong.
        package let problems: [String]

        package static func == (left: Self, right: Self) -> Bool {
            left.path == right.path  // compares files
                && left.bytes == right.bytes && left.logBytes == right.logBytes && left.isInUse == right.isInUse
                && left.schema == right.schema && left.newestSchema == right.newestSchema && left.problems == right.problems
                && left.rows.map(\.what) == right.rows.map(\.what) && left.rows.map(\.count) == right.rows.map(\.count)
        }
    }

    /// Maximum problems reported by SQLite's integrity check.
    private static let mostProblems = 20

    // MARK: - Check

    /// Reads the whole store. Changes nothing. Throws ``StoreError`` when it cannot be read.
    package func check() throws -> Report {
        try self.explained {
            let isInUse = StoreLock.isHeld(directory: self.directory)
            let report = try self.inspect(isInUse: isInUse)
            // A server that started meanwhile writes to the files just read.
            guard !report.problems.isEmpty, !isInUse, StoreLock.isHeld(directory: self.directory) else { return report }
            return try self.inspect(isInUse: true)
        }
    }

    private func inspect(isInUse: Bool) throws -> Report {
        var problems: [String] = []
        if !isInUse { problems += try StoreInspection(path: self.path, directory: self.directory).notices }
        return try self.reading(isInUse: isInUse) { store in
            try store.read { db in
                let state = try SQLiteSchema.state(db)
                if let objection = StoreSchema.objection(to: state, in: self.path, isDatabase: false) {
                    problems.append("it \(objection.problem)")
                } else if state == .empty {
                    problems.append("it is not an earshot store: it has no tables")
                } else if try !db.tableExists("rooms") {
                    problems.append("its table of rooms is missing")
                }
                problems += try String.fetchAll(db, sql: "PRAGMA integrity_check(\(Self.mostProblems))").filter { $0 != "ok" }
                    .map { $0.split(separator: "\n").joined(separator: " ") }
                if state == .version(StoreSchema.version), problems.isEmpty { problems += try Self.strays(db) }
                return Report(
                    path: self.path, bytes: FileIdentity(path: self.path)?.size ?? 0,
                    logBytes: FileIdentity(path: self.path + "-wal")?.size ?? 0, isInUse: isInUse, schema: state.number,
                    newestSchema: StoreSchema.version, rows: try Self.count(db), problems: problems)
            }
        }
    }

    /// Finds rows that refer to missing rooms, rooms without streams, and wrong counters.
    private static func strays(_ db: Database) throws -> [String] {
        var problems: [String] = []
        for table in ["slots", "members", "talk_settings", "talk_members", "kicks", "board_strokes"] {
            let sql = "SELECT count(*) FROM \(table) WHERE room_id NOT IN (SELECT id FROM rooms)"
            if let count = try Int.fetchOne(db, sql: sql), count > 0 { problems.append("\(count) rows of \(table) belong to no room") }
        }
        let rooms = try Int.fetchOne(db, sql: "SELECT count(*) FROM rooms WHERE id NOT IN (SELECT room_id FROM slots)") ?? 0
        if rooms > 0 { problems.append("\(rooms) rooms have no stream") }
        let counted = try Int.fetchOne(db, sql: "SELECT total(n) FROM room_counts WHERE owner = ''") ?? 0
        let there = try Int.fetchOne(db, sql: "SELECT count(*) FROM rooms") ?? 0
        if counted != there { problems.append("the counters count \(counted) rooms, but the store has \(there)") }
        return problems
    }

    private static func count(_ db: Database) throws -> [(what: String, count: Int64)] {
        var rows: [(what: String, count: Int64)] = []
        for table in ["rooms", "events", "recordings", "tokens"] where try db.tableExists(table) {
            rows.append((table, try Int64.fetchOne(db, sql: "SELECT count(*) FROM \(table)") ?? 0))
        }
        return rows
    }

    /// Opens the store without writing, or moving changes into its own file. While a server runs, reads the store as the server does.
    private func reading<T>(isInUse: Bool, _ body: (DatabaseQueue) throws -> T) throws -> T {
        guard let size = FileIdentity(path: self.path)?.size, size > 0 else {
            throw StoreError(path: self.path, problem: "is missing or empty", advice: "name the server's data directory")
        }
        let view = isInUse ? nil : try StoreView(of: self.path)
        defer { view?.remove() }
        guard FileIdentity(path: view?.path ?? self.path)?.size ?? 0 > 0 else {
            throw StoreError(
                path: self.path, problem: "contains no data: the power failed while it was created",
                advice: "start the server, which creates it again")
        }
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        let store = try DatabaseQueue(path: view?.path ?? self.path, configuration: configuration)
        defer { try? store.close() }
        return try body(store)
    }

    /// Reads one state of a store that nobody uses, whole and known to this version. Changes no file. Throws ``StoreError``.
    func whole<T>(_ body: (StoreAccess, Int) throws -> T) throws -> T {
        try self.explained {
            if let notice = try StoreInspection(path: self.path, directory: self.directory).notices.first {
                throw StoreError(
                    path: self.path, problem: notice, advice: "start the server once to recover what is left, or restore a backup")
            }
            return try self.reading(isInUse: false) { store in
                try store.read { db in
                    try SQLiteSchema.check(db, of: self.path)
                    return try body(StoreAccess(db), SQLiteSchema.state(db).number)
                }
            }
        }
    }

    // MARK: - Backup

    /// Copies a snapshot of the store, and the secrets, into a new folder. Complete or not at all. Throws ``StoreError``.
    package func backup(to folder: String) throws {
        try self.explained {
            guard !FileManager.default.fileExists(atPath: folder) else {
                throw StoreError(path: folder, problem: "already exists", advice: "name a folder that does not exist yet", isConflict: true)
            }
            guard !Self.lies(StoreCopy.folder(of: folder), in: self.directory) else {
                throw StoreError(
                    path: folder, problem: "is in the data directory itself, and would be lost with it",
                    advice: "name a folder elsewhere, on another disk if there is one")
            }
            let isInUse = StoreLock.isHeld(directory: self.directory)
            if !isInUse, let notice = try StoreInspection(path: self.path, directory: self.directory).notices.first {
                throw StoreError(
                    path: self.path, problem: notice, advice: "start the server once to recover what is left, or restore a backup")
            }
            let partial = StoreFiles.ownedName("\(folder).partial-")
            guard mkdir(partial, 0o700) == 0 else { throw FileFailure("make", partial) }
            defer { try? FileManager.default.removeItem(atPath: partial) }
            try self.reading(isInUse: isInUse) { store in
                try store.read { db in
                    try SQLiteSchema.check(db, of: self.path)
                }
                try StoreCopy.make(of: store, at: SQLiteStore.path(in: partial))
            }
            for name in self.secrets where FileManager.default.fileExists(atPath: "\(self.directory)/\(name)") {
                try StoreCopy.copy("\(self.directory)/\(name)", to: "\(partial)/\(name)")
            }
            try StoreCopy.sync(partial)
            // Fails if a folder that is not empty has appeared there.
            guard rename(partial, folder) == 0 else { throw FileFailure("make", folder) }
            try StoreCopy.sync(StoreCopy.folder(of: folder))
        }
    }

    // MARK: - Restore

    /// The files that a restore moved away.
    package struct Former: Sendable, Equatable {
        /// The folder with the data directory's former files.
        package let folder: String
        /// Secrets that the backup lacks; only that folder has them.
        package let missing: [String]
    }

    /// Copies a backup into the data directory. Moves the former files into a folder there and returns it; nil if there were none. An
    /// interrupted restore must be run again: the server does not start before. Throws ``StoreError``.
    package func restore(from backup: String) throws -> Former? {
        if let source = FileIdentity(path: backup), source == FileIdentity(path: self.directory) {
            throw StoreError(
                path: backup, problem: "is the data directory itself", advice: "name a folder that `earshot store backup` has made")
        }
        let copy = StoreFolder(directory: backup, secrets: self.secrets)
        let report = try copy.check()
        guard report.problems.isEmpty else {
            throw StoreError(path: report.path, problem: "is not a complete backup: \(report.problems[0])", advice: "restore another one")
        }
        return try self.explained {
            if mkdir(self.directory, 0o700) != 0, errno != EEXIST { throw FileFailure("make", self.directory) }
            let lock = try StoreLock(directory: self.directory, store: self.path)
            defer { withExtendedLifetime(lock) {} }
            let missing = try self.secretsWithoutSuccessor(in: backup)
            StoreFiles.removeUnfinished(in: self.directory)
            let staged = StoreFiles.ownedName("\(self.directory)/restore-")
            try? FileManager.default.removeItem(atPath: staged)
            guard mkdir(staged, 0o700) == 0 else { throw FileFailure("make", staged) }
            defer { try? FileManager.default.removeItem(atPath: staged) }
            try copy.reading(isInUse: report.isInUse) { try StoreCopy.make(of: $0, at: SQLiteStore.path(in: staged)) }
            for name in self.secrets where FileManager.default.fileExists(atPath: "\(backup)/\(name)") {
                try StoreCopy.copy("\(backup)/\(name)", to: "\(staged)/\(name)")
            }
            return try self.exchange(staged).map { Former(folder: $0, missing: missing) }
        }
    }

    /// Secrets that the data directory has and the backup lacks. Throws if one of them is needed for more than the replaced store.
    private func secretsWithoutSuccessor(in backup: String) throws -> [String] {
        let missing = self.secrets.filter {
            FileIdentity(path: "\(self.directory)/\($0)") != nil && FileIdentity(path: "\(backup)/\($0)") == nil
        }
        if let secret = missing.first(where: { !self.ofStore.contains($0) }) {
            throw StoreError(
                path: backup,
                problem: "has no \(secret), but the data directory has one: everything signed or sealed with it would become useless",
                advice: "to keep it, copy \(self.directory)/\(secret) into the backup; to do without it, move it out of the data directory")
        }
        return missing
    }

    /// Whether an existing folder is `other` or lies in it.
    private static func lies(_ folder: String, in other: String) -> Bool {
        guard let real = realpath(folder, nil) else { return false }
        defer { free(real) }
        guard let base = realpath(other, nil) else { return false }
        defer { free(base) }
        let (path, start) = (String(cString: real), String(cString: base))
        return path == start || path.hasPrefix(start.hasSuffix("/") ? start : start + "/")  // compares files
    }

    /// Swaps in the staged files. While the mark exists, a server refuses to start and reports the unfinished restore.
    private func exchange(_ staged: String) throws -> String? {
        let mark = StoreInspection.restoreMark(in: self.directory)
        guard FileManager.default.createFile(atPath: mark, contents: nil, attributes: [.posixPermissions: 0o600]) else {
            throw FileFailure("make", mark)
        }
        try StoreCopy.sync(self.directory)
        let names = [SQLiteStore.fileName] + ["-wal", "-shm"].map { SQLiteStore.fileName + $0 } + self.secrets
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

    /// Converts errors into explanations for the operator.
    private func explained<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as FileFailure {
            throw StoreError(path: self.directory, problem: error.description, advice: "check disk space and permissions")
        } catch {
            throw SQLiteStore.explain(error, path: self.path)
        }
    }
}
