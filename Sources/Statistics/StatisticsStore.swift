package import Logging
import Support
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The file stats.db: opens it, writes batches, deletes old rows. An actor on a queue of its own; reads run concurrently.
///
/// Problems never affect the server. A damaged file is moved aside, and an empty one takes its place. While the file cannot be written, the
/// statistics pause: writes fail, and each is another attempt.
package actor StatisticsStore {
    private nonisolated let executor = QueueExecutor(label: "earshot.statistics")
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    package static let fileName = "stats.db"
    package nonisolated let path: String
    let settings: StatisticsSettings
    private let log: Logger
    private var file: StatisticsFile?
    private var isClosed = false
    /// Time of day of the last merge and deletion of rows.
    private var housekeptMs: Int64 = .min
    private nonisolated let trouble = Mutex<String?>(nil)
    private nonisolated let surplus = Atomic<UInt64>(0)

    /// Time between two deletions of old rows.
    private static let housekeepingMs: Int64 = 60_000
    /// A file up to this size is checked completely when it is opened, within a fraction of a second.
    private static let quickCheckBytes: UInt64 = 64 << 20

    package init(directory: String, settings: StatisticsSettings, log: Logger) {
        self.path = directory.hasSuffix("/") ? directory + Self.fileName : "\(directory)/\(Self.fileName)"
        self.settings = settings
        self.log = log
    }

    /// The reason why nothing can be written now; nil if there is none. Any thread.
    package nonisolated var problem: String? { self.trouble.withLock { $0 } }

    /// Rows deleted early since the start, because there were more than ``StatisticsSettings/maxRows``. Any thread.
    package nonisolated var surplusRows: UInt64 { self.surplus.load(ordering: .relaxed) }

    // MARK: Opening

    /// Opens or creates the file. Does not fail: see ``problem``.
    package func open(nowMs: Int64) {
        guard self.opened() != nil else { return }
        self.housekeep(nowMs: nowMs)
    }

    /// The open file; opens it if it is not. Nil while that is impossible.
    private func opened() -> StatisticsFile? {
        if self.isClosed { return nil }
        if let file = self.file {
            if FileManager.default.fileExists(atPath: self.path) { return file }
            self.log.warning("The statistics' file was removed; a new one is made", metadata: ["file": "\(self.path)"])
            self.closeFile()
        }
        do {
            return try self.make()
        } catch {
            guard StatisticsFile.isDamage(error) else {
                self.pause(error)
                return nil
            }
            self.moveAside(error)
        }
        do { return try self.make() } catch {
            self.pause(error)
            return nil
        }
    }

    private func make() throws -> StatisticsFile {
        if !FileManager.default.fileExists(atPath: self.path) {
            // SQLite gives its other files the permissions of this one.
            _ = FileManager.default.createFile(atPath: self.path, contents: nil, attributes: [.posixPermissions: 0o600])
        }
        let file = try StatisticsFile(path: self.path) { try StatisticsSchema.prepare($0) }
        let size = try FileManager.default.attributesOfItem(atPath: self.path)[.size] as? UInt64 ?? 0
        if size <= Self.quickCheckBytes { try file.check() }
        self.file = file
        return file
    }

    private func closeFile() {
        // A failure loses nothing: the next connection reads the log.
        try? self.file?.close()
        self.file = nil
    }

    /// Renames the damaged file. It replaces an earlier one, so that repeated damage does not fill the disk.
    private func moveAside(_ error: any Error) {
        self.closeFile()
        let aside = self.path + ".damaged"
        for ending in ["", "-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: aside + ending)
            try? FileManager.default.moveItem(atPath: self.path + ending, toPath: aside + ending)
        }
        self.log.error(
            "The statistics were damaged: the file was moved aside, and they begin anew",
            metadata: ["movedTo": "\(aside)", "problem": "\(StatisticsFile.describe(error))"])
    }

    // MARK: Pausing

    private func pause(_ error: any Error) { self.pause(StatisticsFile.describe(error)) }

    private func pause(_ problem: String) {
        let isNews = self.trouble.withLock { trouble in
            defer { trouble = problem }
            return trouble == nil
        }
        guard isNews else { return }
        self.log.error(
            "Statistics pause: they cannot be written; what comes waits in memory, within bounds",
            metadata: ["file": "\(self.path)", "problem": "\(problem)"])
    }

    private func resume() {
        let wasPaused = self.trouble.withLock { trouble in
            defer { trouble = nil }
            return trouble != nil
        }
        guard wasPaused else { return }
        self.log.notice("Statistics are written again", metadata: ["file": "\(self.path)"])
    }

    // MARK: Writing

    /// Writes the rows in one transaction, and deletes old rows once a minute. Returns whether the rows are written.
    func write(_ rows: PendingRows, nowMs: Int64) -> Bool {
        guard self.settings.hasSpace() else {
            self.pause("the disk has less free space than data.minFree")
            return false
        }
        // Tries once more after damage, with a new file.
        for _ in 0..<2 {
            guard let file = self.opened() else { return false }
            do {
                if !rows.isEmpty { try file.write { db in try Self.insert(rows, into: db) } }
                self.resume()
                self.housekeep(nowMs: nowMs)
                return true
            } catch {
                guard StatisticsFile.isDamage(error) else {
                    self.pause(error)
                    return false
                }
                self.moveAside(error)
            }
        }
        return false
    }

    /// Runs at most once a minute.
    private func housekeep(nowMs: Int64) {
        guard let file = self.file, self.housekeptMs == .min || abs(nowMs - self.housekeptMs) >= Self.housekeepingMs else { return }
        self.housekeptMs = nowMs
        do {
            let housekeeping = StatisticsHousekeeping(settings: self.settings, nowMs: nowMs)
            let surplus = try file.write { db in try housekeeping.run(db) }
            self.surplus.add(UInt64(surplus), ordering: .relaxed)
        } catch {
            // The rows stay longer; damage shows at the next write.
            self.log.warning("Old statistics could not be deleted", metadata: ["problem": "\(StatisticsFile.describe(error))"])
        }
    }

    /// Limits the file's size, in pages of 4 KiB: for tests of full disks.
    func limitPages(_ pages: Int) throws { try self.opened()?.limitPages(pages) }

    /// Closes the file; later writes fail.
    package func close() {
        self.isClosed = true
        self.closeFile()
    }

    // MARK: Reading

    /// The statistics cannot be read at the moment.
    package struct Unreadable: Error, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// Reads committed rows, on a reader's own queue.
    nonisolated func read<Value: Sendable>(
        _ body: @escaping @Sendable (StatisticsConnection) throws -> Value
    ) async throws(Unreadable) -> Value {
        guard let file = await self.openedForReading() else { throw Unreadable(description: self.problem ?? "the server is shutting down") }
        do {
            return try await file.read(body)
        } catch {
            throw Unreadable(description: StatisticsFile.describe(error))
        }
    }

    private func openedForReading() -> StatisticsFile? { self.opened() }
}
