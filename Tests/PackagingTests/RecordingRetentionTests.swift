import EarshotServer
import Foundation
import Logging
import RoomRegistry
import Rooms
import ServerConfiguration
import Store
import TestSupport
import Testing

@testable import Packaging

/// Which recordings are deleted, without a server.
@Suite struct RecordingRetentionTests {
    private static let bytes: Int64 = 1_000

    /// A store and a folder with recordings of one kilobyte.
    private struct Shelf {
        let rooms: RoomRegistry
        let folder: RecordingFolder
        let budget: RecordingBudget

        init(_ directory: String) throws {
            var settings = RoomRegistry.Settings()
            settings.isExclusive = false
            self.rooms = try RoomRegistry(.folder(directory), settings: settings, clock: RoomClock(now: { 1_795_255_200_000 }))
            self.folder = RecordingFolder(path: directory + "/recordings")
            self.budget = RecordingBudget(self.folder, ServerConfig().recording)
        }

        func retention(_ ms: Int64 = 0, busy: Set<String> = []) -> RecordingRetention {
            RecordingRetention(
                retentionMs: { ms }, folder: self.folder, budget: self.budget, rooms: self.rooms,
                log: Logger(label: "earshot", factory: { _ in SwiftLogNoOpLogHandler() }), isBusy: { busy.contains($0) })
        }

        /// Adds a recording that ended at `endedAt`, in the state that it has then, or finished.
        func add(_ id: String, endedAt: Int64 = 1, file: String? = nil, isFinished: Bool = true) async throws -> Recording {
            let task = RecordingTask(id: "task", path: StreamPath(app: "live", name: "cam1"), roomID: nil, slot: 0)
            let media = MediaSummary()
            let recording = Recording(id: id, task: task, part: 1, file: file ?? "live/cam1/\(id).mp4", startedAt: 0, media: media)
            await withCheckedContinuation { done in self.rooms.recordingBegan(recording) { _ in done.resume() } }
            let outcome = RecordingOutcome(
                end: .stopped, endedAt: endedAt, durationMs: 1, bytes: RecordingRetentionTests.bytes, droppedFrames: 0)
            await withCheckedContinuation { done in self.rooms.recordingEnded(id, outcome) { done.resume() } }
            if isFinished {
                await withCheckedContinuation { done in
                    self.rooms.recordingFinished(id, bytes: RecordingRetentionTests.bytes, durationMs: nil, isSeekable: true) {
                        done.resume()
                    }
                }
            }
            try self.folder.prepare(for: recording.file)
            try Data(count: Int(RecordingRetentionTests.bytes)).write(to: URL(fileURLWithPath: self.folder.absolute(recording.file)))
            self.budget.add(RecordingRetentionTests.bytes)
            return try await self.stored(id)
        }

        func stored(_ id: String) async throws -> Recording { try await self.rooms.recording(id).orThrow() }

        func hasFile(_ recording: Recording) -> Bool {
            FileManager.default.fileExists(atPath: self.folder.absolute(recording.file))
        }
    }

    private static func run(_ body: (Shelf) async throws -> Void) async throws {
        try await Fixture.withDirectory { directory in
            let shelf = try Shelf(directory.path)
            try await shelf.rooms.start()
            try await body(shelf)
            await shelf.rooms.stop()
        }
    }

    @Test func onlyWhatIsDoneIsDeleted() async throws {
        try await Self.run { shelf in
            let finished = try await shelf.add("a")
            let finishing = try await shelf.add("b", isFinished: false)
            #expect(finished.state == .finished && finishing.state == .finishing)
            #expect(try await shelf.retention(busy: ["a"]).delete(finished) == nil)
            #expect(try await shelf.retention().delete(finishing) == nil)
            #expect(shelf.hasFile(finished) && shelf.hasFile(finishing) && shelf.budget.usedBytes == 2 * Self.bytes)
            #expect(try await shelf.retention().delete(finished)?.bytes == Self.bytes)
            #expect(try await shelf.stored("a").state == .deleted)
            #expect(!shelf.hasFile(finished) && shelf.budget.usedBytes == Self.bytes)
            // Another call was quicker.
            #expect(try await shelf.retention().delete(finished) == nil)
            #expect(shelf.budget.usedBytes == Self.bytes)
        }
    }

    @Test func theOldGo() async throws {
        try await Self.run { shelf in
            let old = try await shelf.add("a", endedAt: 1_999)
            let young = try await shelf.add("b", endedAt: 2_000)
            await shelf.retention(0).forget(nowMs: .max, steadyMs: 0)
            #expect(shelf.hasFile(old), "kept for ever")
            await shelf.retention(8_000).forget(nowMs: 10_000, steadyMs: 0)
            #expect(!shelf.hasFile(old) && shelf.hasFile(young))
            #expect(try await shelf.stored("a").state == .deleted)
            #expect(try await shelf.stored("b").state == .finished)
        }
    }

    @Test func oneThatCannotBeRemovedKeepsNoOthers() async throws {
        try await Self.run { shelf in
            let stuck = try await shelf.add("a")
            let other = try await shelf.add("b")
            // A folder of its name: unlink refuses, whoever runs the test.
            let path = shelf.folder.absolute(stuck.file)
            try FileManager.default.removeItem(atPath: path)
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            await #expect(throws: RecordingFolder.Failure.self) { try await shelf.retention().delete(stuck) }
            await shelf.retention(1_000).forget(nowMs: 1_000_000, steadyMs: 0)
            #expect(try await shelf.stored("a").state == .finished)
            #expect(try await shelf.stored("b").state == .deleted)
            #expect(!shelf.hasFile(other))
        }
    }

    @Test(arguments: [(0, 1_000), (1_000, 1_000), (10_000, 5_000), (40_000, 20_000), (86_400_000, 20_000)] as [(Int64, Int64)])
    func shortRetentionsAreCheckedOften(_ retentionMs: Int64, _ pauseMs: Int64) async throws {
        try await Self.run { shelf in #expect(shelf.retention(retentionMs).pauseMs == pauseMs) }
    }
}
