import Foundation
import LibC
import Support

/// A view of a closed store that leaves its files unchanged. Blocks.
///
/// SQLite writes to the index beside the log even when it only reads. That index may be the only evidence that the log has lost its end. So
/// the view gives the store and its log other names in a folder of their own, where SQLite makes another index. The names are links. If the
/// folder supports no links, the files are copied to the system's temporary folder.
///
/// A journal beside the store is rolled back first, in a copy of both. It stems from a power cut while the store was made, or another
/// program.
struct StoreView {
    /// The store's path in the view.
    let path: String
    private let folder: String

    private static let infix = ".view-"

    /// Whether a journal must be rolled back first, which SQLite refuses on a read-only connection.
    static func isNeeded(for store: String) -> Bool { (FileIdentity(path: store + "-journal")?.size ?? 0) > 0 }

    /// Throws ``FileFailure``, and `DatabaseError` if the journal cannot be rolled back.
    init(of store: String) throws {
        let name = StoreFiles.ownedName(store + Self.infix)
        let hasJournal = Self.isNeeded(for: store)
        let ends = hasJournal ? ["", "-wal", "-journal"] : ["", "-wal"]
        do {
            try self.init(of: store, ends, in: name, hasJournal ? Self.copy : { link($0, $1) == 0 })
        } catch {
            let copy = StoreFiles.ownedName("\(FileManager.default.temporaryDirectory.path)/earshot\(Self.infix)")
            try self.init(of: store, ends, in: copy, Self.copy)
        }
        guard hasJournal else { return }
        do {
            _ = try StoreAccess.reading(self.path) { try $0.number("PRAGMA schema_version") }
        } catch {
            self.remove()
            throw error
        }
    }

    private static func copy(_ source: String, _ target: String) -> Bool {
        do {
            try FileManager.default.copyItem(atPath: source, toPath: target)
            return true
        } catch {
            return false
        }
    }

    private init(of store: String, _ ends: [String], in folder: String, _ make: (String, String) -> Bool) throws {
        self.folder = folder
        self.path = SQLiteStore.path(in: folder)
        // Left by a process that had the same id.
        try? FileManager.default.removeItem(atPath: folder)
        guard mkdir(folder, 0o700) == 0 else { throw FileFailure("make", folder) }
        for end in ends where FileIdentity(path: store + end) != nil {
            guard make(store + end, self.path + end) else {
                let failure = FileFailure("make", self.path + end)
                self.remove()
                throw failure
            }
        }
    }

    func remove() { try? FileManager.default.removeItem(atPath: self.folder) }
}

/// Names of files beside the store.
enum StoreFiles {
    /// "20261122T101500Z", by the wall clock.
    static func stamp() -> String { Instant.secondsText(WallClock.ms).filter { $0 != "-" && $0 != ":" } }

    /// Returns `path`, numbered if a file has that name.
    static func free(_ path: String) -> String {
        guard FileManager.default.fileExists(atPath: path) else { return path }
        var number = 2
        while FileManager.default.fileExists(atPath: "\(path)-\(number)") { number += 1 }
        return "\(path)-\(number)"
    }

    // MARK: Unfinished files

    private static let unfinished = [".partial-", ".view-", "restore-"]

    /// A name for this process's own files, which may stay unfinished if it is killed. Ends with the process id.
    static func ownedName(_ prefix: String) -> String { "\(prefix)\(getpid())" }

    /// Removes files beside the store that dead processes left unfinished. Best effort.
    static func removeUnfinished(in directory: String) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? [] {
            guard let owner = self.owner(of: name), kill(owner, 0) != 0, errno == ESRCH else { continue }
            try? FileManager.default.removeItem(atPath: "\(directory)/\(name)")
        }
    }

    /// The process id in an unfinished file's name, "earshot.db.schema-8.partial-4711-journal"; nil for other names.
    static func owner(of name: String) -> pid_t? {
        for mark in self.unfinished {
            guard let range = name.ranges(of: mark).last else { continue }
            guard name.hasPrefix(SQLiteStore.fileName) || (mark == "restore-" && range.lowerBound == name.startIndex) else { continue }
            let digits = name[range.upperBound...].prefix { $0.isASCII && $0.isNumber }
            guard ["", "-journal", "-wal", "-shm"].contains(name[digits.endIndex...]), let number = pid_t(digits), number > 0 else {
                continue
            }
            return number
        }
        return nil
    }
}
