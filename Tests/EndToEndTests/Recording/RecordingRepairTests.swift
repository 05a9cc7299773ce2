import Dispatch
import Foundation
import Logging
import RoomRegistry
import ServerConfiguration
import ServerTestSupport
import Store
import Synchronization
import TestSupport
import Testing

@testable import EarshotServer
@testable import Packaging
@testable import Rooms
@testable import Streaming

/// Recovery from kills, refusals and slow disks at bad moments.
@Suite struct RecordingRepairTests {
    private static let row = Recording(
        id: "0123456789abcdef",
        task: RecordingTask(id: "t", path: StreamPath(app: "live", name: "cam1"), roomID: nil, slot: 0), part: 1, file: "a.mp4",
        startedAt: 0, media: MediaSummary())

    /// Runs the body with a finisher over a folder of its own.
    private static func withFinisher(_ body: (RecordingFinisher, URL) async throws -> Void) async throws {
        try await Fixture.withDirectory { directory in
            var config = ServerConfig()
            config.data.directory = directory.path
            config.recording.directory = directory.path
            let folder = RecordingFolder(config)
            let registry = try RoomRegistry(.folder(directory.path), settings: RoomRegistry.Settings())
            try await registry.start()
            let finisher = RecordingFinisher(
                folder: folder, budget: RecordingBudget(folder, config.recording), rooms: registry,
                log: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
            try await body(finisher, directory)
            await registry.stop()
        }
    }

    /// Killed after the file was put in place, before the index knew: the row says that nothing was written yet.
    @Test func whatIsFinishedAlreadyStays() async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 4)
        try await Self.withFinisher { finisher, directory in
            let file = directory.appendingPathComponent("a.mp4").path
            let made = try await ClientProcess.run([
                "ffmpeg", "-v", "error", "-i", source, "-c", "copy", "-movflags", "frag_keyframe+empty_moov", file,
            ])
            #expect(made.status == 0, "\(made.errors)")
            #expect(FinishedMP4(file) == nil)
            try Data(count: 10).write(to: URL(fileURLWithPath: file + ".tmp"))
            for _ in 0..<2 {
                guard case .finished(let bytes, let durationMs) = finisher.remux(Self.row) else {
                    Issue.record("it was not finished")
                    return
                }
                #expect(try Int64(Data(contentsOf: URL(fileURLWithPath: file)).count) == bytes)
                #expect(abs(durationMs - 4_000) < 200, "\(durationMs) ms")
                #expect(!FileManager.default.fileExists(atPath: file + ".tmp"))
            }
            #expect(try await PacketList.of(file: file).only("video").hashes == PacketList.of(file: source).only("video").hashes)
            // A truncated file does not count as finished.
            let whole = try Data(contentsOf: URL(fileURLWithPath: file))
            for count in [0, 7, 20, whole.count - 1] {
                try whole.prefix(count).write(to: URL(fileURLWithPath: file))
                #expect(FinishedMP4(file) == nil, "\(count) bytes")
            }
        }
    }

    /// A refused call does not start a recording later.
    @Test func aRefusedCallIsNotCarriedOutLater() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 20)
        try await TestServer.run({ $0.recording.minFreeBytes = 1 << 50 }) { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("rooms/cam1") { $0["state"].string == "live" }
                let recordings = server.server.parts.recordings
                #expect(try await server.record("cam1", "start").status == 409)
                #expect(!recordings.isWaiting(StreamPath(app: "live", name: "cam1")))
                // A recording by policy is tried again.
                let changed = try await server.call("PATCH", "rooms/cam1", #"{"policy":{"record":"always"}}"#)
                #expect(changed.status == 200)
                try await eventually("the next try to be due") { recordings.isWaiting(StreamPath(app: "live", name: "cam1")) }
            }
        }
    }

    /// The previous stream's recorder hangs on its disk. The next stream's recording begins when that one ends.
    @Test func theNextStreamWaitsForASlowDisk() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 10)
        let long = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 20)
        try await TestServer.run({
            $0.recording.apps = ["live"]
            $0.rooms.policy.cleanStopMs = 0
        }) { server in
            let url = "\(server.rtmp)/live/cam1"
            let path = StreamPath(app: "live", name: "cam1")
            let push = try ClientProcess(FFmpeg.push(source, to: url))
            defer { push.send(SIGKILL) }
            try await eventually("a recorder") { server.server.parts.recordings.recorder(of: path) != nil }
            let recorder = try server.server.parts.recordings.recorder(of: path).orThrow()
            let gate = DispatchSemaphore(value: 0)
            let isHeld = Atomic<Bool>(false)
            let hold = Task { await recorder.hang(until: gate) { isHeld.store(true, ordering: .sequentiallyConsistent) } }
            try await eventually("the disk to hang") { isHeld.load(ordering: .sequentiallyConsistent) }
            _ = try await push.outcome()
            try await server.wait("rooms/cam1") { $0["state"].string == "expired" }
            try await ClientProcess.during(FFmpeg.pushForEver(long, to: url)) { _ in
                try await server.wait("rooms/cam1") { $0["state"].string == "live" }
                // The store has the push; its recording was requested but could not begin.
                try await server.wait("rooms/cam1/events?limit=1000") { events in
                    events["list"].list.count { $0["kind"].string == "stream.begin" } == 2
                }
                gate.signal()
                await hold.value
                try await eventually("another recording") { try await server.recordings().count == 2 }
                #expect(try await server.recordings("?state=recording").count == 1)
            }
        }
    }

    /// A recording that cannot be removed does not block the others.
    @Test func retentionGoesOnBehindAnObstacle() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 2)
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            try await TestServer.run(data: data, { $0.recording.apps = ["live"] }) { server in
                for name in ["cam1", "cam2"] {
                    #expect(try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/\(name)")).status == 0)
                }
                try await eventually("two files") { try await server.recordings().count == 2 }
            }
            try await TestServer.run(
                data: data,
                {
                    $0.recording.retentionMs = 15_000
                    $0.rooms.policy.cleanStopMs = 0
                }
            ) { server in
                let oldest = try await server.recordings("?app=live&name=cam1")[0]
                let path = try server.recordingPath(oldest)
                // A folder in its place cannot be unlinked.
                try FileManager.default.removeItem(atPath: path)
                try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
                try await eventually("the other one to go") { try await server.recordings("?app=live&name=cam2&state=deleted").count == 1 }
                #expect(try await server.recordings("?app=live&name=cam1&state=deleted").isEmpty)
            }
        }
    }
}
