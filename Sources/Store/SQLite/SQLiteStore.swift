import GRDB
import Rooms
import Support

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A store in a file of SQLite's. One writer on the registry's queue; readers on queues of their own.
final class SQLiteStore: RoomStore {
    static let fileName = "earshot.db"
    /// How long a write waits for one of another process (the command line's token commands).
    private static let busySeconds = 5.0

    /// Maximum bytes of a store checked fully at each start: a fraction of a second.
    private static let quickCheckBytes: Int64 = 64 << 20

    let path: String
    private let pool: DatabasePool
    /// Problems with the files at the start and their remedies, one log line each.
    let notices: [String]
    /// Paths and identities of the open files.
    private let files: [(path: String, identity: FileIdentity?)]

    static func path(in directory: String) -> String {
        directory.hasSuffix("/") ? directory + self.fileName : "\(directory)/\(self.fileName)"
    }

    /// Opens or creates the store and migrates its schema. `isAlone`: no other process has it open; its files are inspected first. Blocks.
    init(directory: String, isAlone: Bool = false, steps: [StoreSchema.Step] = StoreSchema.steps) throws(StoreError) {
        let path = Self.path(in: directory)
        self.path = path
        do {
            var notices: [String] = []
            if isAlone {
                StoreFiles.removeUnfinished(in: directory)
                notices = try StoreInspection(path: path, directory: directory).keep()
            }
            try Self.inspect(at: path, wholly: isAlone, known: steps.count)
            if !FileManager.default.fileExists(atPath: path) {
                // SQLite gives its other files the permissions of this one.
                _ = FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
            }
            var configuration = Configuration()
            configuration.label = "earshot.store"
            configuration.foreignKeysEnabled = false
            configuration.busyMode = .timeout(Self.busySeconds)
            configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -8000") }
            let pool = try DatabasePool(path: path, configuration: configuration)
            try pool.writeWithoutTransaction { db in
                // Acknowledged writes survive a power cut; group commit pays for it.
                try db.execute(sql: "PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864")
            }
            let former = try pool.read { db in
                try SQLiteSchema.check(db, of: path, known: steps.count)
                return try SQLiteSchema.state(db, known: steps.count).number
            }
            if (1..<steps.count).contains(former) { notices.append(try Self.keepFormer(pool, path: path, from: former, to: steps.count)) }
            try SQLiteSchema.migrate(pool, steps)
            if isAlone {
                if let notice = try pool.write({ try StoreAccess($0).giveUpUnknownDeliveries() }) { notices.append(notice) }
                // The file itself gets the schema, and the id that reveals a foreign log. Best effort: somebody may be reading.
                _ = try pool.writeWithoutTransaction { try $0.checkpoint(.passive) }
            }
            self.pool = pool
            self.notices = notices
            self.files = [path, path + "-wal"].map { ($0, FileIdentity(path: $0)) }
        } catch {
            throw Self.explain(error, path: path)
        }
    }

    /// Throws for a file that must not be opened, before anything is written. `wholly` also checks for damage.
    private static func inspect(at path: String, wholly: Bool, known: Int) throws {
        let view = StoreView.isNeeded(for: path) ? try StoreView(of: path) : nil
        defer { view?.remove() }
        let file = view?.path ?? path
        guard let size = FileIdentity(path: file)?.size, size > 0 else { return }
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(Self.busySeconds)
        let queue = try DatabaseQueue(path: file, configuration: configuration)
        try queue.read { db in
            try SQLiteSchema.check(db, of: path, known: known)
            if wholly, size <= Self.quickCheckBytes, let problem = try String.fetchOne(db, sql: "PRAGMA quick_check(1)"), problem != "ok" {
                // SQLite's message may have several lines; a log entry has one.
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: problem.split(separator: "\n").joined(separator: " "))
            }
        }
        try queue.close()
    }

    /// Copies a store with an older schema before it is migrated. Returns a notice for the log.
    private static func keepFormer(_ pool: DatabasePool, path: String, from former: Int, to newest: Int) throws -> String {
        let copy = "\(path).schema-\(former)"
        if !FileManager.default.fileExists(atPath: copy) { try StoreCopy.make(of: pool, at: copy) }
        return "the store's schema is migrated from \(former) to \(newest); the former store is kept as \(copy)"
    }

    /// Throws ``StoreGone`` if the open files have left their paths, as writes would be lost.
    private func checkFiles() throws {
        for (path, identity) in self.files where identity != nil && FileIdentity(path: path) != identity { throw StoreGone() }
    }

    /// Converts an error into an explanation for the operator.
    func explain(_ error: any Error) -> StoreError { Self.explain(error, path: self.path) }

    static func explain(_ error: any Error, path: String) -> StoreError {
        switch error {
        case let error as StoreError: error
        case let error as StoreAccess.TransactionLost: self.explain(error.cause, path: path)
        case let error as DatabaseError: self.explain(error, path: path)
        case let error as FileFailure: StoreError(path: path, problem: error.description, advice: "check disk space and permissions")
        case is StoreGone:
            StoreError(path: path, problem: "was deleted or replaced while it was open", advice: "put it back, or restart the server")
        default: StoreError(path: path, problem: "cannot be read (\(error))", advice: "check which version of earshot wrote it")
        }
    }

    private static func explain(_ error: DatabaseError, path: String) -> StoreError {
        let text = error.text
        switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB:
            return StoreError(
                path: path, problem: "is damaged or not a database (\(text))",
                advice: "restore a backup (`earshot store restore`), or move it and its -wal and -shm away to begin with an empty store")
        case .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM:
            return StoreError(
                path: path, problem: "cannot be opened (\(text))", advice: "check that its folder exists and may be written to")
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            return StoreError(
                path: path, problem: "is in use by another process (\(text))",
                advice: "stop that process, or give this one its own data directory")
        default:
            return StoreError(path: path, problem: "cannot be used (\(text))", advice: "check disk space and permissions")
        }
    }

    /// Moves all changes into the store's own file, then closes all connections. Later reads and writes fail. Returns any problem; the next
    /// start then moves them.
    @discardableResult
    func close(emptiesLog: Bool) -> String? {
        var problem: String?
        do {
            if emptiesLog {
                try self.pool.barrierWriteWithoutTransaction { db in
                    // Shutdown has few seconds; a reader of another process may hold the log.
                    try db.execute(sql: "PRAGMA busy_timeout = 500")
                    _ = try db.checkpoint(.truncate)
                }
            }
        } catch {
            problem = RegistryError(of: error).storeProblem
        }
        do { try self.pool.close() } catch { problem = problem ?? RegistryError(of: error).storeProblem }
        return problem
    }

    /// Runs a transaction, committed and on disk when this returns. At most one at a time; blocks.
    func transaction<T>(_ body: (StoreAccess) throws -> T) throws -> T {
        try self.pool.writeWithoutTransaction { db in
            try self.checkFiles()
            try db.beginTransaction(.immediate)
            do {
                let result = try body(StoreAccess(SQLiteStoreConnection(db), memory: TransactionMemory()))
                try db.commit()
                return result
            } catch {
                if db.isInsideTransaction { try? db.rollback() }
                throw error
            }
        }
    }

    /// A file answers every commit.
    func wasCommitted(_ lost: CommitLost) -> Bool { false }

    /// Empties the write-ahead log into the store, so that no file holds overwritten data. Throws while it is being read; blocks.
    func emptyLog() throws { try self.pool.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) } }

    /// Reads committed data on a reader's own queue.
    func read<T: Sendable>(_ body: @Sendable @escaping (StoreAccess) throws -> T) async throws(RegistryError) -> T {
        do {
            return try await self.pool.read { db in try body(StoreAccess(db)) }
        } catch {
            throw RegistryError(of: error)
        }
    }

    /// Reads committed data; blocks. For start-up and the command line.
    func readNow<T>(_ body: (StoreAccess) throws -> T) throws -> T {
        try self.pool.read { db in try body(StoreAccess(db)) }
    }

    /// Reads with the writer's connection, without a hop to a reader; blocks. For the registry's queue.
    func writerRead<T>(_ body: (StoreAccess) throws -> T) throws -> T {
        try self.pool.writeWithoutTransaction { try body(StoreAccess($0)) }
    }

}

extension DatabaseError: DatabaseFailure {
    var text: String { "SQLite \(self.extendedResultCode.rawValue): \(self.message ?? "no message")" }
}
