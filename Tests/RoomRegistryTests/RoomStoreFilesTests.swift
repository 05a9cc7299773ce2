import Foundation
import GRDB
import PostgresTestSupport
import Testing

@testable import RoomRegistry
@testable import Store
@testable import Rooms

/// The store and files that were changed while it was closed.
@Suite struct RoomStoreFilesTests {
    private static func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = NSTemporaryDirectory() + "earshot-files-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder)
    }

    /// A store as kill -9 leaves it: changes are only in the log.
    private static func killed(in folder: String, rooms: Int = 20) async throws {
        let live = folder + "-live"
        defer { try? FileManager.default.removeItem(atPath: live) }
        try FileManager.default.createDirectory(atPath: live, withIntermediateDirectories: true)
        let registry = try RoomRegistry(.folder(live), settings: RoomRegistry.Settings())
        try await registry.start()
        for number in 1...rooms {
            var new = NewRoom(policy: RoomPolicy())
            new.id = try RoomID(checking: "room\(number)")
            _ = try await registry.create(new, by: Actor("test"))
        }
        // Copied by another process: closing these files in this one would release SQLite's locks.
        try self.run("/bin/cp", ["\(live)/earshot.db", "\(live)/earshot.db-wal", "\(live)/earshot.db-shm", folder])
        await registry.stop()
    }

    private static func run(_ program: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        try process.run()
        process.waitUntilExit()
    }

    private static func rooms(_ store: SQLiteStore) throws -> Int {
        Int(try store.readNow { try $0.number("SELECT count(*) FROM rooms") ?? 0 })
    }

    private static func asides(_ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasPrefix("earshot.db-wal.") }
    }

    @Test func aKillLosesNothingAndIsNoNews() async throws {
        try await Self.withFolder { folder in
            try await Self.killed(in: folder)
            let store = try SQLiteStore(directory: folder, isAlone: true)
            #expect(store.notices == [])
            #expect(try Self.rooms(store) == 20)
            store.close()
            #expect(try Self.asides(folder) == [])
        }
    }

    /// Nothing syncs the index: after a power cut it may belong to an earlier log. An index of a later log is reported.
    @Test(arguments: [(1, false), (3, false), (-1, true)]) func anIndexThatIsBehindItsLogIsNoNews(_ restarts: Int, _ isNews: Bool)
        async throws
    {
        try await Self.withFolder { folder in
            try await Self.killed(in: folder)
            let index = folder + "/earshot.db-shm"
            var bytes = try Data(contentsOf: URL(fileURLWithPath: index))
            for header in [0, 48] {
                let salt = bytes[(header + 32)..<(header + 36)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
                let before = UInt32(truncatingIfNeeded: Int(salt) - restarts)
                withUnsafeBytes(of: before.bigEndian) { bytes.replaceSubrange((header + 32)..<(header + 36), with: $0) }
            }
            try bytes.write(to: URL(fileURLWithPath: index))
            let store = try SQLiteStore(directory: folder, isAlone: true)
            #expect(store.notices.isEmpty == !isNews, "\(store.notices)")
            #expect(try Self.rooms(store) == 20)
            #expect(try Self.asides(folder).isEmpty == !isNews)
            store.close()
        }
    }

    @Test func aCleanStopLeavesEverythingInOneFile() async throws {
        try await Self.withFolder { folder in
            for run in 1...3 {
                let registry = try RoomRegistry(.folder(folder), settings: RoomRegistry.Settings())
                try await registry.start()
                #expect(registry.notices == [])
                var new = NewRoom(policy: RoomPolicy())
                new.id = try RoomID(checking: "room\(run)")
                _ = try await registry.create(new, by: Actor("test"))
                await registry.stop()
                #expect(registry.endProblem == nil)
            }
            #expect(FileIdentity(path: folder + "/earshot.db-wal")?.size ?? 0 == 0)
            // The file alone is the whole store.
            let alone = folder + "/alone.db"
            try FileManager.default.copyItem(atPath: folder + "/earshot.db", toPath: alone)
            #expect(try await DatabaseQueue(path: alone).read { try Int.fetchOne($0, sql: "SELECT count(*) FROM rooms") } == 3)
        }
    }

    @Test(arguments: [0.5, 0.95, 0.001]) func aLogThatWasCutOffIsToldAndKept(_ share: Double) async throws {
        try await Self.withFolder { folder in
            try await Self.killed(in: folder)
            let path = folder + "/earshot.db-wal"
            let whole = try Data(contentsOf: URL(fileURLWithPath: path))
            let cut = whole.prefix(Int(Double(whole.count) * share))
            try cut.write(to: URL(fileURLWithPath: path))
            let store = try SQLiteStore(directory: folder, isAlone: true)
            #expect(store.notices.count == 1, "\(store.notices)")
            #expect(store.notices[0].contains("cut off") || store.notices[0].contains("damaged"), "\(store.notices)")
            let asides = try Self.asides(folder)
            #expect(asides.count == 1)
            #expect(try asides.first.map { try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\($0)")) } == cut)
            #expect(try Self.rooms(store) < 20)
            store.close()
        }
    }

    /// Cut off between two changes, which only the index beside it reveals.
    @Test func aLogThatEndsTooEarlyIsTold() async throws {
        try await Self.withFolder { folder in
            try await Self.killed(in: folder)
            let path = folder + "/earshot.db-wal"
            let log = try #require(try WriteAheadLog(path: path))
            #expect(log.committed > 10 && !log.isTorn && log.storeID ?? 0 != 0)
            let whole = try Data(contentsOf: URL(fileURLWithPath: path))
            var frames = Int(log.committed) - 1
            // Back to the frame that ends the previous change.
            func size(after frame: Int) -> UInt32 {
                whole[(32 + (frame - 1) * (24 + log.pageSize) + 4)...].prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
            }
            while size(after: frames) == 0 { frames -= 1 }
            try whole.prefix(32 + frames * (24 + log.pageSize)).write(to: URL(fileURLWithPath: path))
            let store = try SQLiteStore(directory: folder, isAlone: true)
            #expect(
                store.notices.count == 1 && store.notices[0].contains("\(frames) of \(log.committed) pages of changes are left"),
                "\(store.notices)")
            store.close()
        }
    }

    @Test func aLogThatIsGoneIsTold() async throws {
        try await Self.withFolder { folder in
            try await Self.killed(in: folder)
            try FileManager.default.removeItem(atPath: folder + "/earshot.db-wal")
            let inspection = try StoreInspection(path: folder + "/earshot.db", directory: folder)
            #expect(inspection.notices.count == 1 && inspection.notices[0].contains("newest changes are lost"), "\(inspection.notices)")
        }
    }

    @Test func aDamagedPageInTheLogIsTold() async throws {
        try await Self.withFolder { folder in
            try await Self.killed(in: folder)
            let path = folder + "/earshot.db-wal"
            var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
            bytes[bytes.count / 2] ^= 0xFF
            try bytes.write(to: URL(fileURLWithPath: path))
            let store = try SQLiteStore(directory: folder, isAlone: true)
            #expect(store.notices.count == 1 && store.notices[0].contains("damaged or cut off"), "\(store.notices)")
            #expect(try Self.asides(folder).count == 1)
            store.close()
        }
    }

    @Test func rubbishIsMovedAside() async throws {
        try await Self.withFolder { folder in
            try SQLiteStore(directory: folder).close()
            let rubbish = Data(repeating: 0x5A, count: 10_000)
            try rubbish.write(to: URL(fileURLWithPath: folder + "/earshot.db-wal"))
            let store = try SQLiteStore(directory: folder, isAlone: true)
            #expect(store.notices.count == 1 && store.notices[0].contains("10000 bytes"), "\(store.notices)")
            let asides = try Self.asides(folder)
            #expect(try asides.map { try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\($0)")) } == [rubbish])
            store.close()
        }
    }

    /// SQLite would treat the other log's pages as its own.
    @Test(arguments: [true, false]) func anotherStoresLogIsRefused(_ hasIndex: Bool) async throws {
        try await Self.withFolder { folder in
            let (own, other) = (folder + "/own", folder + "/other")
            for each in [own, other] {
                try FileManager.default.createDirectory(atPath: each, withIntermediateDirectories: true)
                try await Self.killed(in: each)
            }
            try FileManager.default.removeItem(atPath: own + "/earshot.db-wal")
            try FileManager.default.copyItem(atPath: other + "/earshot.db-wal", toPath: own + "/earshot.db-wal")
            if !hasIndex { try FileManager.default.removeItem(atPath: own + "/earshot.db-shm") }
            let names = try FileManager.default.contentsOfDirectory(atPath: own).sorted()
            let before = try names.map { try Data(contentsOf: URL(fileURLWithPath: "\(own)/\($0)")) }
            do {
                _ = try SQLiteStore(directory: own, isAlone: true)
                Issue.record("opened")
            } catch {
                #expect("\(error)".contains("does not belong to it"), "\(error)")
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: own).sorted() == names)
            #expect(try names.map { try Data(contentsOf: URL(fileURLWithPath: "\(own)/\($0)")) } == before)
        }
    }

    /// SQLite would delete the log.
    @Test(arguments: [true, false]) func aMissingFileBesideItsLogIsRefused(_ isEmpty: Bool) async throws {
        try await Self.withFolder { folder in
            try await Self.killed(in: folder)
            try FileManager.default.removeItem(atPath: folder + "/earshot.db")
            if isEmpty { try Data().write(to: URL(fileURLWithPath: folder + "/earshot.db")) }
            let log = try Data(contentsOf: URL(fileURLWithPath: folder + "/earshot.db-wal"))
            do {
                _ = try SQLiteStore(directory: folder, isAlone: true)
                Issue.record("opened")
            } catch {
                #expect("\(error)".contains("missing or empty"), "\(error)")
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder + "/earshot.db-wal")) == log)
        }
    }

    /// A rollback journal (SQLite's file format, §3) back to `pages` pages of 4,096 bytes. It changes none of these.
    static func journal(pages: UInt8) -> Data {
        var bytes = Data([0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7])
        bytes += [0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, pages, 0, 0, 2, 0, 0, 0, 0x10, 0]
        return bytes + Data(repeating: 0, count: 512 - bytes.count)
    }

    /// The first page is written but not yet committed.
    @Test func aPowerCutWhileItIsMadeIsUndone() async throws {
        try await Self.withFolder { folder in
            let (whole, path) = (folder + "/whole", folder + "/earshot.db")
            try FileManager.default.createDirectory(atPath: whole, withIntermediateDirectories: true)
            try SQLiteStore(directory: whole).close()
            let page = try Data(contentsOf: URL(fileURLWithPath: whole + "/earshot.db")).prefix(4_096)
            try page.write(to: URL(fileURLWithPath: path))
            try Self.journal(pages: 0).write(to: URL(fileURLWithPath: path + "-journal"))
            let check = #expect(throws: StoreError.self) { try StoreFolder(directory: folder, secrets: [], ofStore: []).check() }
            #expect(check?.problem.contains("contains no data") == true, "\(String(describing: check))")
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == page)
            let store = try SQLiteStore(directory: folder, isAlone: true)
            #expect(try Self.rooms(store) == 0 && store.notices == [])
            store.close()
            let names = try FileManager.default.contentsOfDirectory(atPath: folder)
            #expect(names.filter { $0.contains("journal") || $0.contains(".view-") } == [])
        }
    }

    @Test func aDamagedPageIsFoundAtTheStart() async throws {
        try await Self.withFolder { folder in
            try SQLiteStore(directory: folder).close()
            let path = folder + "/earshot.db"
            var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
            for at in (bytes.count / 2)..<(bytes.count / 2 + 8_192) { bytes[at] = 0xAA }
            try bytes.write(to: URL(fileURLWithPath: path))
            do {
                _ = try SQLiteStore(directory: folder, isAlone: true)
                Issue.record("opened")
            } catch {
                #expect("\(error)".contains("damaged") && "\(error)".contains("backup"), "\(error)")
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == bytes)
        }
    }

    // MARK: - While it is open

    @Test(.disabled(if: TestPostgres.isOn, "about SQLite's files")) func aDeletedDirectoryTakesNothing() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.registry.start()
        try await test.create("before")
        #expect(try await self.eventually { await test.registry.storeProblem() == nil })
        let away = test.directory + "-away"
        try FileManager.default.moveItem(atPath: test.directory, toPath: away)
        defer { try? FileManager.default.removeItem(atPath: away) }
        await #expect(throws: RegistryError.storeGone) { try await test.create("lost") }
        #expect(await test.push("live/lost", mayCreateRoom: true).isRefused)
        #expect(try await self.eventually { await test.registry.storeProblem()?.contains("deleted or replaced") ?? false })
        // Another store in its place is no better.
        try FileManager.default.createDirectory(atPath: test.directory, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: away + "/earshot.db", toPath: test.directory + "/earshot.db")
        await #expect(throws: RegistryError.storeGone) { try await test.create("lost") }
        // Back again.
        try FileManager.default.removeItem(atPath: test.directory)
        try FileManager.default.moveItem(atPath: away, toPath: test.directory)
        try await test.create("after")
        #expect(try await self.eventually { await test.registry.storeProblem() == nil })
        #expect(try test.sql(Int.self, "SELECT count(*) FROM rooms") == 2)
    }

    /// Polls for up to a minute, since answers are cached for a second.
    private func eventually(_ condition: () async -> Bool) async throws -> Bool {
        let begin = ContinuousClock.now
        while begin.duration(to: .now) < .seconds(60) {
            if await condition() { return true }
            try await Task.sleep(for: .milliseconds(100))
        }
        return false
    }

    @Test func manyWhoAskCostOneWrite() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.registry.start()
        await test.settle()
        let before = test.registry.counters.operations
        let problems = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<500 { group.addTask { await test.registry.storeProblem() } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        // A machine that stalls for two seconds delays the answer as long.
        #expect(problems.count == 500 && problems.allSatisfy { $0 == nil || $0?.contains("not answered") == true })
        // A busy machine may need more than a second for them.
        #expect(test.registry.counters.operations - before < 20)
        #expect(try await self.eventually { await test.registry.storeProblem() == nil })
    }

    /// Locks the store for another session. Returns what releases it.
    private static func lock(_ test: TestRegistry) async throws -> () async throws -> Void {
        if let other = try TestPostgres.connect(test.directory) {
            try other.runScript("SET idle_in_transaction_session_timeout = 0; BEGIN; LOCK TABLE clock")
            try other.flush()
            return { other.close() }
        }
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        configuration.busyMode = .timeout(60)
        let other = try DatabaseQueue(path: test.directory + "/earshot.db", configuration: configuration)
        try await other.writeWithoutTransaction { db in try db.execute(sql: "BEGIN IMMEDIATE") }
        return { try await other.writeWithoutTransaction { db in try db.execute(sql: "COMMIT") } }
    }

    @Test func aStoreThatIsBusyIsNotReady() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.registry.start()
        let release = try await Self.lock(test)
        // An answer from just before the lock may still count. PostgreSQL gives a waiting statement up after two seconds itself.
        #expect(
            try await self.eventually {
                let problem = await test.registry.storeProblem()
                return problem?.contains("not answered") == true || problem?.contains("55P03") == true
            })
        try await release()
        #expect(try await self.eventually { await test.registry.storeProblem() == nil })
    }
}

extension Result {
    fileprivate var isRefused: Bool { if case .failure = self { true } else { false } }
}
