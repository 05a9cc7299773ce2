#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Inspects the store's files before SQLite opens them. SQLite would delete or overwrite files that it cannot use. Blocks; only while no
/// other process has the store open.
struct StoreInspection {
    let path: String
    private var log: String { self.path + "-wal" }
    private var index: String { self.path + "-shm" }

    /// Tolerable problems with the files, one log line each.
    private(set) var notices: [String] = []
    /// How to preserve the log: moved if SQLite cannot use it anyway, otherwise copied.
    private(set) var keeping: Keeping?

    enum Keeping { case moved, copied }

    /// A file that exists until a restore is finished.
    static func restoreMark(in directory: String) -> String { "\(directory)/earshot.restoring" }

    /// Throws ``StoreError`` when opening the store would lose what is in its files.
    init(path: String, directory: String) throws {
        self.path = path
        if FileManager.default.fileExists(atPath: Self.restoreMark(in: directory)) {
            throw StoreError(
                path: path, problem: "a restore into its folder was not finished",
                advice: "run `earshot store restore` again; the former files are in the folders before-restore-…")
        }
        let index = WriteAheadIndex(path: self.index)
        guard let logSize = FileIdentity(path: self.log)?.size, logSize > 0 else {
            if let index, index.frames > index.backfilled, FileIdentity(path: path) != nil {
                self.notices.append(
                    "the write-ahead log \(self.log) is missing or empty, though \(index.frames - index.backfilled) pages of changes were in it:"
                        + " the newest changes are lost")
            }
            return
        }
        guard let size = FileIdentity(path: path)?.size, size > 0 else {
            throw StoreError(
                path: path, problem: "is missing or empty, but the write-ahead log beside it is not",
                advice: "put the file back, or move the log away to begin with an empty store")
        }
        try self.inspect(index: index, logSize: logSize)
    }

    private mutating func inspect(index: WriteAheadIndex?, logSize: Int64) throws {
        guard let log = try WriteAheadLog(path: self.log) else {
            // A power cut may leave the beginning of a log that nothing was committed to.
            if logSize <= 32, index?.frames ?? 0 == 0 { return }
            self.notices.append(
                "the write-ahead log \(self.log) (\(logSize) bytes) is damaged or not such a log: changes that are only in it are lost")
            self.keeping = .moved
            return
        }
        // An index behind its log says nothing about it.
        let index = index.flatMap { $0.isBehind(log) ? nil : $0 }
        let store = try self.header()
        if let id = log.storeID, let own = store?.id, id != 0, own != 0, id != own { throw self.foreign("it belongs to another store") }
        if let store, log.pageSize != store.pageSize { throw self.foreign("its page size differs") }
        if let index, index.frames > 0, index.salts != log.salts {
            self.notices.append("the write-ahead log \(self.log) is not the one that the store was last used with")
            self.keeping = .copied
            if let problem = try self.trial() { throw self.foreign("with it \(problem)") }
            return
        }
        if let index, index.salts == log.salts, log.committed < index.frames {
            guard log.committed >= index.backfilled else {
                throw StoreError(
                    path: self.path,
                    problem: "its write-ahead log was cut off: \(log.committed) of \(index.frames) pages are left, and the"
                        + " store has newer ones already",
                    advice: "restore a backup, or move the log away to continue with the store itself; no file was changed")
            }
            self.notices.append(
                "the write-ahead log \(self.log) is damaged or cut off: \(log.committed) of \(index.frames) pages of changes are left,"
                    + " and the newest changes are lost")
            self.keeping = .copied
        } else if log.isTorn {
            // The index shows no more once somebody has opened the store: SQLite rebuilds it from what is left.
            self.notices.append(
                "the write-ahead log \(self.log) ends in the middle of a change, after \(log.committed) pages; that change is dropped,"
                    + " which is normal after a kill or a power cut")
            self.keeping = .copied
        }
    }

    private func foreign(_ why: String) -> StoreError {
        StoreError(
            path: self.path, problem: "the write-ahead log beside it does not belong to it (\(why))",
            advice: "put the store's own log back, or move this one away; no file was changed")
    }

    /// The page size and the store's id, from the database's first page. Nil if it is no database.
    private func header() throws -> (pageSize: Int, id: UInt32)? {
        guard let bytes = try FileReader(path: self.path)?.read(100), bytes.count == 100,
            bytes.starts(with: Array("SQLite format 3\0".utf8))
        else { return nil }
        let pageSize = Int(bytes[16]) << 8 | Int(bytes[17])
        let id = bytes[60..<64].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        return (pageSize == 1 ? 65_536 : pageSize, id)
    }

    /// Opens copies of the files. Returns their problem; nil if there is none.
    private func trial() throws -> String? {
        let folder = "\(self.path)-trial"
        let files = FileManager.default
        try? files.removeItem(atPath: folder)
        try files.createDirectory(atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? files.removeItem(atPath: folder) }
        let copy = "\(folder)/\(SQLiteStore.fileName)"
        try files.copyItem(atPath: self.path, toPath: copy)
        try files.copyItem(atPath: self.log, toPath: copy + "-wal")
        do {
            let problem = try StoreAccess.reading(copy) { store in
                try store.first("PRAGMA quick_check(1)") { (row: inout RowReader) -> String in row.next() }
            }
            return problem == "ok" ? nil : "the store is damaged"
        } catch {
            return "the store cannot be read"
        }
    }

    /// Preserves a log that SQLite would overwrite. Returns the notices for the server's log.
    func keep() throws -> [String] {
        guard let keeping else { return self.notices }
        let aside = StoreFiles.free("\(self.log).\(StoreFiles.stamp())")
        switch keeping {
        case .moved: try FileManager.default.moveItem(atPath: self.log, toPath: aside)
        case .copied: try FileManager.default.copyItem(atPath: self.log, toPath: aside)
        }
        return self.notices.map { "\($0); it is kept as \(aside)" }
    }
}
