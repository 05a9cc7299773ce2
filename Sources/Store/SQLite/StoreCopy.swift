import GRDB
import LibC

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Whole copies of a store, made while it is in use. All calls block.
enum StoreCopy {
    /// Makes a self-contained file without a log: complete, checked and on disk, or none. Only the owner may read it.
    static func make(of source: any DatabaseReader, at path: String) throws {
        let partial = StoreFiles.ownedName("\(path).partial-")
        defer { for end in ["", "-journal", "-wal", "-shm"] { unlink(partial + end) } }
        guard FileManager.default.createFile(atPath: partial, contents: nil, attributes: [.posixPermissions: 0o600]) else {
            throw FileFailure("make", partial)
        }
        let copy = try DatabaseQueue(path: partial)
        try source.backup(to: copy)
        try copy.writeWithoutTransaction { db in
            // The backup copies WAL mode too, which would need a log.
            _ = try String.fetchOne(db, sql: "PRAGMA journal_mode = DELETE")
            if let problem = try String.fetchOne(db, sql: "PRAGMA integrity_check(1)"), problem != "ok" {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: problem)
            }
        }
        try copy.close()
        try self.sync(partial)
        // Never overwrites another file.
        guard link(partial, path) == 0 else { throw FileFailure("make", path) }
        try self.sync(folder(of: path))
    }

    /// Copies a small file of secrets.
    static func copy(_ path: String, to copy: String) throws {
        guard let bytes = FileManager.default.contents(atPath: path) else { throw FileFailure("read", path) }
        guard FileManager.default.createFile(atPath: copy, contents: bytes, attributes: [.posixPermissions: 0o600]) else {
            throw FileFailure("write", copy)
        }
        try self.sync(copy)
    }

    /// Flushes a file or folder to disk.
    static func sync(_ path: String) throws {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileFailure("open", path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw FileFailure("write", path) }
    }

    static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
