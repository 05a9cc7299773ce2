import Foundation
import Logging
import RoomRegistry
import ServerConfiguration
import ServerTestSupport
import Sockets
import Store
import Synchronization
import TestSupport
import Testing

@testable import EarshotServer
@testable import Packaging
@testable import Rooms
@testable import Streaming

/// Recordings and snapshots that are overdue after the server believed a clock leap. Only a share of them is deleted each hour, but a quota
/// deletes as many as it needs.
@Suite struct RetentionTests {
    private static let count = 20
    private static let hourMs: Int64 = 3_600_000
    private static let dayMs = 24 * Self.hourMs
    private static let holdMs: Int64 = 600_000
    private static let startMs: Int64 = 1_795_255_200_000

    /// A server's parts on their own store, with machine clocks that the test sets.
    private struct Machine {
        let parts: ServerParts
        private let clocks: Clocks

        private final class Clocks: Sendable {
            let steadyMs = Atomic<Int64>(0)
            let wallMs = Atomic<Int64>(RetentionTests.startMs)
        }

        init(_ directory: String, _ configure: (inout ServerConfig) -> Void) throws {
            var config = ServerConfig()
            config.data.directory = directory
            configure(&config)
            let clocks = Clocks()
            self.clocks = clocks
            let sources = RoomClock.Sources(
                steadyMs: { clocks.steadyMs.load(ordering: .relaxed) }, wallMs: { clocks.wallMs.load(ordering: .relaxed) }, bootID: nil)
            var settings = RoomRegistry.Settings()
            settings.isExclusive = false
            let rooms = try RoomRegistry(.folder(directory), settings: settings, clock: RoomClock(sources, holdMs: RetentionTests.holdMs))
            self.parts = ServerParts(
                config: config, rooms: rooms, keys: TestCredential.keys, group: SocketLoopGroup.singleton,
                log: Logger(label: "earshot", factory: { _ in SwiftLogNoOpLogHandler() }))
        }

        /// Lets time pass.
        func pass(_ ms: Int64) {
            self.clocks.steadyMs.add(ms, ordering: .relaxed)
            self.clocks.wallMs.add(ms, ordering: .relaxed)
        }

        var steadyMs: Int64 { self.clocks.steadyMs.load(ordering: .relaxed) }

        /// Moves the machine's clock ahead and lets the server believe it.
        func leap(_ ms: Int64) async throws {
            self.clocks.wallMs.add(ms, ordering: .relaxed)
            self.parts.rooms.watchClock()
            self.clocks.steadyMs.add(RetentionTests.holdMs, ordering: .relaxed)
            self.clocks.wallMs.add(RetentionTests.holdMs, ordering: .relaxed)
            self.parts.rooms.watchClock()
            try await eventually("room time to follow") { self.parts.rooms.now > RetentionTests.startMs + ms }
        }
    }

    private static func run(_ configure: (inout ServerConfig) -> Void, _ body: (Machine) async throws -> Void) async throws {
        try await Fixture.withDirectory { directory in
            let machine = try Machine(directory.path, configure)
            try await machine.parts.rooms.start()
            try await body(machine)
            await machine.parts.rooms.stop()
        }
    }

    private static func id(_ number: Int) -> String { "00000000000000\(number < 10 ? "0" : "")\(number)" }

    // MARK: - Recordings

    /// Stores finished recordings of 1,000 bytes each, a second apart.
    private static func record(_ machine: Machine) async throws {
        let path = StreamPath(app: "live", name: "cam1")
        let folder = machine.parts.recordings.folder
        for number in 0..<Self.count {
            let at = Self.startMs - 60_000 + Int64(number) * 1_000
            let recording = Recording(
                id: Self.id(number), task: RecordingTask(id: "task", path: path, roomID: nil, slot: 0), part: number + 1,
                file: "live/cam1/\(number).mp4", startedAt: at,
                media: MediaSummary())
            let rooms = machine.parts.rooms
            await withCheckedContinuation { done in rooms.recordingBegan(recording) { _ in done.resume() } }
            let outcome = RecordingOutcome(end: .stopped, endedAt: at + 500, durationMs: 500, bytes: 1_000, droppedFrames: 0)
            await withCheckedContinuation { done in rooms.recordingEnded(recording.id, outcome) { done.resume() } }
            await withCheckedContinuation { done in
                rooms.recordingFinished(recording.id, bytes: 1_000, durationMs: nil, isSeekable: true) { done.resume() }
            }
            try folder.prepare(for: recording.file)
            try Data(count: 1_000).write(to: URL(fileURLWithPath: folder.absolute(recording.file)))
        }
        try await machine.parts.recordings.start()
    }

    private static func recordings(_ machine: Machine) async throws -> [String] {
        let rows = try await machine.parts.rooms.recordings(endedBefore: .max, limit: 1_000)
        let files = try? FileManager.default.contentsOfDirectory(atPath: machine.parts.recordings.folder.absolute("live/cam1"))
        #expect(files?.count ?? 0 == rows.count)
        return rows.map(\.id)
    }

    @Test func aTenthOfTheRecordingsGoesInAnHour() async throws {
        try await Self.run({
            $0.recording.retentionMs = Self.dayMs
            $0.recording.minFreeBytes = 0
        }) { machine in
            try await Self.record(machine)
            let recordings = machine.parts.recordings
            await recordings.retention.forget(nowMs: machine.parts.rooms.now, steadyMs: 0)
            #expect(try await Self.recordings(machine).count == Self.count, "none is old")
            try await machine.leap(7 * Self.dayMs)
            // Deletes 2 of 20, 2 of 18, … at last one by one. Further passes within an hour delete nothing.
            var left = Self.count
            for hour in 0..<4 {
                for look in 0..<3 {
                    await recordings.retention.forget(
                        nowMs: machine.parts.rooms.now, steadyMs: Int64(hour) * Self.hourMs + Int64(look) * 20_000)
                }
                left -= 2
                #expect(try await Self.recordings(machine) == (Self.count - left..<Self.count).map(Self.id), "oldest first, hour \(hour)")
            }
        }
    }

    /// New recordings find no room: old ones are deleted at once, as many as needed.
    @Test func aQuotaIsNotHeldBack() async throws {
        try await Self.run({
            $0.recording.retentionMs = Self.dayMs
            $0.recording.minFreeBytes = 0
            $0.recording.quotaBytes = 5_000
        }) { machine in
            try await Self.record(machine)
            let recordings = machine.parts.recordings
            #expect(recordings.budget.refusalToBegin == .quotaExceeded)
            try await machine.leap(7 * Self.dayMs)
            await recordings.retention.forget(nowMs: machine.parts.rooms.now, steadyMs: 0)
            #expect(try await Self.recordings(machine) == (15..<Self.count).map(Self.id))
            #expect(recordings.budget.usedBytes == 5_000 && recordings.budget.refusalToBegin == nil)
            // The rest follows by the hourly share, which the quota has used up.
            await recordings.retention.forget(nowMs: machine.parts.rooms.now, steadyMs: 20_000)
            #expect(try await Self.recordings(machine).count == 5)
            // A write that did not fit deletes one more.
            #expect(recordings.budget.refusal(for: 1) == .quotaExceeded)
            await recordings.retention.forget(nowMs: machine.parts.rooms.now, steadyMs: 40_000)
            #expect(try await Self.recordings(machine).count == 4)
        }
    }

    // MARK: - Pictures

    private static func add(_ machine: Machine, _ number: Int, at ms: Int64, _ bounds: SnapshotBounds) async throws {
        let files = SnapshotFiles(machine.parts.config)
        let file = "live/cam1/\(number).jpg"
        try files.folder.prepare(for: file)
        try Data(count: 1_000).write(to: URL(fileURLWithPath: files.folder.absolute(file)))
        let gone = try await machine.parts.rooms.snapshotTaken(
            SnapshotRecord(
                id: Self.id(number), path: StreamPath(app: "live", name: "cam1"), roomID: try RoomID(checking: "cam1"), slot: 1, file: file,
                takenAt: ms, bytes: 1_000, width: 16, height: 16), bounds)
        for picture in gone { try files.folder.remove(picture.file) }
    }

    private static func pictures(_ machine: Machine) async throws -> [String] {
        let rows = try await machine.parts.rooms.snapshots(
            ofRoom: try RoomID(checking: "cam1"), slot: nil, after: nil, limit: 1_000)
        let files = try FileManager.default.contentsOfDirectory(atPath: SnapshotFiles(machine.parts.config).folder.absolute("live/cam1"))
        #expect(files.count == rows.count)
        return rows.reversed().map(\.id)
    }

    private static func periodic(_ parts: ServerParts) -> PeriodicSnapshots {
        PeriodicSnapshots(parts.live, parts.rooms, parts.streams, parts.pushes, parts.snapshots, log: parts.log)
    }

    @Test func aTenthOfThePicturesGoesInAnHour() async throws {
        try await Self.run({
            $0.snapshots.retentionMs = Self.dayMs
        }) { machine in
            let unbound = SnapshotBounds(perStream: 1_000, bytes: 0)
            for number in 0..<Self.count {
                try await Self.add(machine, number, at: Self.startMs - 60_000 + Int64(number) * 1_000, unbound)
            }
            let pictures = Self.periodic(machine.parts)
            await pictures.captureDue(nowMs: 1)
            #expect(try await Self.pictures(machine).count == Self.count, "none is old")
            try await machine.leap(7 * Self.dayMs)
            var left = Self.count
            for hour in 1...4 {
                // The search for old pictures runs every 20 s.
                for look in 0..<3 { await pictures.captureDue(nowMs: Int64(hour) * Self.hourMs + 1 + Int64(look) * 20_000) }
                left -= 2
                #expect(try await Self.pictures(machine) == (Self.count - left..<Self.count).map(Self.id), "oldest first, hour \(hour)")
            }
            // With a quota, the next picture deletes as many as necessary.
            try await Self.add(machine, 90, at: machine.parts.rooms.now, SnapshotBounds(perStream: 1_000, bytes: 3_000))
            #expect(try await Self.pictures(machine) == [Self.id(18), Self.id(19), Self.id(90)])
        }
    }

    // MARK: - Reloads

    /// For how long events, pictures and lines of the audit trail are kept, and how many of these. A whole server looks too seldom for a test.
    @Test func aReloadChangesWhatIsKept() async throws {
        try await Self.run({ _ in }) { machine in
            let (parts, rooms) = (machine.parts, machine.parts.rooms)
            _ = try await rooms.create(NewRoom(policy: RoomPolicy()), by: Actor("test"))
            for _ in 0..<20 { rooms.ended(AuditedCall(AuditLine("test"))) }
            try await Self.add(machine, 1, at: rooms.now, SnapshotBounds(perStream: 10, bytes: 0))
            let pictures = Self.periodic(parts)
            /// Events, lines and pictures that are left two hours later.
            func left(_ change: (inout ServerConfig) -> Void) async throws -> [Int] {
                var config = parts.config
                change(&config)
                parts.apply(config, parts.keys)
                machine.pass(2 * Self.hourMs)
                await rooms.runDue()
                await pictures.captureDue(nowMs: machine.steadyMs)
                return [
                    try await rooms.events(after: 0, room: nil, limit: 100).count, try await rooms.audit(AuditQuery()).count,
                    try await rooms.snapshotCount(),
                ]
            }
            let steps: [(change: (inout ServerConfig) -> Void, left: [Int])] = [
                // The room's creation, its end since nobody pushed, and the picture.
                ({ _ in }, [3, 20, 1]), ({ $0.api.audit.lines = 15 }, [3, 15, 1]), ({ $0.api.audit.keptMs = Self.hourMs }, [3, 0, 1]),
                ({ $0.rooms.historyMs = Self.hourMs }, [0, 0, 1]), ({ $0.snapshots.retentionMs = Self.hourMs }, [0, 0, 0]),
            ]
            for step in steps {
                let left = try await left(step.change)
                #expect(left == step.left)
            }
        }
    }
}
