import Foundation
import GRDB
import ServerTestSupport
import Streaming
import Support
import Synchronization
import TestSupport
import Testing

@testable import Statistics

/// Damage, full disks, foreign files: the statistics suffer, nothing else does.
@Suite struct StatisticsTroubleTests {
    @Test(arguments: ["text", "zeros", "truncated", "page"])
    func damageIsMovedAside(_ kind: String) async throws {
        let first = try TestStatistics()
        await first.statistics.start()
        for index in 0..<2_000 { first.play("live/\(index)", session: UInt64(index)) }
        await first.statistics.stop()
        var bytes = try Data(contentsOf: URL(fileURLWithPath: first.file))
        #expect(bytes.count > 100_000)
        switch kind {
        case "text": bytes = Data("this is no database\n".utf8) + bytes.dropFirst(20)
        case "zeros": bytes = Data(count: bytes.count)
        case "truncated": bytes = bytes.prefix(10_000)
        default: for index in 4_096..<(bytes.count / 2) { bytes[index] = UInt8(truncatingIfNeeded: index &* 31) }
        }
        try bytes.write(to: URL(fileURLWithPath: first.file))
        let second = try TestStatistics(directory: first.directory)
        await second.statistics.start()
        second.play()
        await second.statistics.write()
        #expect(try await second.store.plays(FinishedFilter()).count == 1)
        #expect(second.store.problem == nil)
        let lines = second.lines.all
        #expect(lines.count == 1 && lines.first?.contains("moved aside") == true, "\(lines)")
        #expect(FileManager.default.fileExists(atPath: second.file + ".damaged"))
        await second.remove()
    }

    /// A database that is not ours, or of a newer version, keeps what it holds.
    @Test(arguments: ["foreign", "newer"])
    func othersFilesAreLeftAlone(_ kind: String) async throws {
        let test = try TestStatistics()
        if kind == "foreign" {
            let other = try DatabaseQueue(path: test.file)
            try await other.write { try $0.execute(sql: "CREATE TABLE notes (text TEXT)") }
            try other.close()
        } else {
            let former = try TestStatistics(directory: test.directory)
            await former.statistics.start()
            await former.statistics.stop()
            let other = try DatabaseQueue(path: test.file)
            try await other.write { try $0.execute(sql: "PRAGMA user_version = 99") }
            try other.close()
        }
        await test.statistics.start()
        test.play()
        await test.statistics.write()
        #expect(test.store.problem?.contains(kind == "foreign" ? "another program's" : "newer version") == true)
        await #expect(throws: StatisticsStore.Unreadable.self) { try await test.store.plays(FinishedFilter()) }
        #expect(test.statistics.waiting == 1 && test.lines.all.count == 1)
        await test.remove()
    }

    /// The disk fills up: statistics pause, then go on when there is room, and what was too much is counted.
    @Test func aFullDiskIsWaitedFor() async throws {
        let test = try TestStatistics { $0.mostPending = 500 }
        await test.statistics.start()
        // A limit of the file's pages fails writes as a full disk does: SQLITE_FULL.
        try await test.store.limitPages(1)
        for index in 0..<300 { test.play(session: UInt64(index)) }
        await test.statistics.write()
        #expect(test.store.problem?.contains("SQLite 13") == true, "\(test.store.problem ?? "none")")
        #expect(test.statistics.waiting == 300 && test.statistics.lost == 0)
        for index in 300..<700 { test.play(session: UInt64(index)) }
        #expect(test.statistics.waiting == 500 && test.statistics.lost == 200)
        await test.statistics.write()
        try await test.store.limitPages(1_000_000)
        await test.statistics.write()
        #expect(test.store.problem == nil && test.statistics.waiting == 0 && test.statistics.lost == 200)
        var filter = FinishedFilter()
        filter.limit = 1_000
        // The oldest were kept, in order.
        #expect(try await test.store.plays(filter).map(\.value.session.session) == Array((0..<500).reversed().map(UInt64.init)))
        #expect(test.lines.all.count == 2, "one line when it begins, one when it ends: \(test.lines.all)")
        await test.remove()
    }

    /// Without the room that the store of rooms needs, nothing is written.
    @Test func theDiskFloorIsKept() async throws {
        let room = RoomFlag()
        let test = try TestStatistics { $0.hasSpace = { room.value } }
        await test.statistics.start()
        test.play()
        await test.statistics.write()
        #expect(test.statistics.waiting == 1 && test.store.problem?.contains("data.minFree") == true)
        room.set(true)
        await test.statistics.write()
        #expect(test.statistics.waiting == 0 && test.store.problem == nil)
        await test.remove()
    }

    @Test func aDeletedFileIsMadeAgain() async throws {
        let test = try TestStatistics()
        await test.statistics.start()
        test.play()
        await test.statistics.write()
        for ending in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: test.file + ending) }
        test.play()
        await test.statistics.write()
        #expect(try await test.store.plays(FinishedFilter()).count == 1)
        #expect(test.lines.contains("was removed") && FileManager.default.fileExists(atPath: test.file))
        await test.remove()
    }

    /// A folder that cannot be written: no file, no end of the server.
    @Test func withoutAFolderNothingIsKept() async throws {
        let test = try TestStatistics()
        try FileManager.default.removeItem(atPath: test.directory)
        try Data().write(to: URL(fileURLWithPath: test.directory))
        await test.statistics.start()
        test.play()
        await test.statistics.write()
        #expect(test.store.problem != nil && test.statistics.waiting == 1)
        await test.remove()
    }
}

private final class RoomFlag: Sendable {
    private let flag = Mutex(false)
    var value: Bool { self.flag.withLock { $0 } }
    func set(_ value: Bool) { self.flag.withLock { $0 = value } }
}
