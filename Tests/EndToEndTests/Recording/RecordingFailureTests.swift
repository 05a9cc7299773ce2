import Foundation
import NIOCore
import RTMPTestSupport
import ServerTestSupport
import Support
import Synchronization
import TestSupport
import Testing

@testable import EarshotServer
@testable import Packaging
@testable import Rooms
@testable import ServerConfiguration
@testable import Streaming

/// Failures end a recording with a clear reason; the stream and its viewers do not notice.
@Suite struct RecordingFailureTests {
    /// Pushes a file to its end and plays it meanwhile. Both must be complete.
    private static func pushAndWatch(_ source: String, _ server: TestServer) async throws {
        let url = "\(server.rtmp)/live/cam1"
        try await ClientProcess.during(Probe.packets(url)) { viewer in
            try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
            let pushed = try await ClientProcess.run(FFmpeg.push(source, to: url))
            #expect(pushed.status == 0, "\(pushed.errors)")
            let played = PacketList(csv: try await viewer.outcome().text)
            #expect(try await played.hashes == PacketList.of(file: source).hashes)
        }
    }

    @Test func theQuotaEndsIt() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 6)
        try await TestServer.run({
            $0.recording.apps = ["*"]
            $0.recording.quotaBytes = 120_000
            $0.rooms.policy.cleanStopMs = 500
        }) { server in
            try await Self.pushAndWatch(source, server)
            let failed = try await server.recordings(1, "failed")[0]
            #expect(failed["reason"].string == "quota_exceeded")
            try await server.wait("recordings/\(failed["recordingId"].string.orThrow())") { $0["isSeekable"].bool == true }
            let path = try server.recordingPath(failed)
            let (recorded, pushed) = (try await PacketList.of(file: path), try await PacketList.of(file: source))
            #expect(recorded.only("video").count > 20 && recorded.only("video").isRun(of: pushed.only("video")))
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count <= 120_000)
            let events = try await server.eventKinds("cam1").filter { $0.hasPrefix("record.") }
            #expect(events == ["record.started", "record.failed", "record.ended"])
            #expect(await server.lines.comes("Recording failed", "reason=quota_exceeded"))
            #expect(server.hits(.recordingQuota) >= 1)

            // A call to record gets the reason, and deleting a recording makes room.
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("rooms/cam1") { $0["state"].string == "live" }
                try await eventually("the quota to be full for all") {
                    let refused = try await server.record("cam1", "start")
                    return try refused.status == 409 && refused.json()["error"]["state"].string == "quota_exceeded"
                }
                for recording in try await server.recordings("?state=failed") {
                    _ = try await server.call("DELETE", "recordings/\(recording["recordingId"].string.orThrow())")
                }
                #expect(try await server.api("recordings")["usedBytes"].int == 0)
                #expect(try await server.record("cam1", "start").status == 200)
            }
        }
    }

    @Test func aFolderThatCannotBeMadeEndsIt() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 3)
        try await TestServer.run({
            $0.recording.apps = ["live"]
            $0.recording.directory = "/dev/null/recordings"
            $0.recording.minFreeBytes = 0
            $0.rooms.policy.cleanStopMs = 500
        }) { server in
            try await Self.pushAndWatch(source, server)
            let failed = try await server.recordings(1, "failed")[0]
            #expect(failed["reason"].string == "unwritable" && failed["bytes"].int == 0)
            #expect(await server.lines.comes("Recording failed", "/dev/null"))
            #expect(try await server.eventKinds("cam1").filter { $0.hasPrefix("record.") } == ["record.failed"])
            #expect(try await server.call("GET", "recordings/\(failed["recordingId"].string.orThrow())/file").status == 404)
        }
    }

    @Test func aDiskWithoutRoomBeginsNone() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 3)
        try await TestServer.run({
            $0.recording.apps = ["live"]
            $0.recording.minFreeBytes = 1 << 50
            $0.rooms.policy.cleanStopMs = 500
        }) { server in
            try await Self.pushAndWatch(source, server)
            #expect(try await server.recordings().isEmpty)
            #expect(await server.lines.comes("Not recording", "reason=disk_full"))
            try await server.wait("rooms/cam1/events") { $0["list"].list.contains { $0["kind"].string == "record.failed" } }
            // The server runs on.
            #expect(try await server.api("selfcheck")["ok"].bool == true)
        }
    }

    /// The system rejects a write in the middle of a fragment.
    @Test func aFileThatMayNotGrowKeepsItsWholeFragments() async throws {
        let big = ["-c:v", "libx264", "-profile:v", "baseline", "-g", "25", "-qp", "4"]
        let source = try await Fixture.flv(video: big, audio: Fixture.aac, seconds: 6, size: "640x360")
        try await Fixture.withDirectory { directory in
            let config = directory.appendingPathComponent("earshot.yaml")
            try "recording: {apps: [live]}\nrooms: {policy: {cleanStop: 500ms}}\n".write(to: config, atomically: true, encoding: .utf8)
            // Larger than the store becomes, and smaller than the recording.
            let limit = 2_500_000
            try await EarshotProcess.serve(data: directory, ["--config", config.path], under: ["prlimit", "--fsize=\(limit)"]) { server in
                let pushed = try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1"))
                #expect(pushed.status == 0, "\(pushed.errors)")
                func failed() async throws -> JSON {
                    try await HTTPAnswer.get("\(server.http)/api/v1/recordings?state=failed", token: server.token).json()["data"]["list"][0]
                }
                try await eventually("the failure") { try await failed()["reason"].string == "disk_full" }
                #expect(server.process.isRunning)
                let file = try await failed()["file"].string.orThrow()
                let path = directory.appendingPathComponent("data/recordings/\(file)").path
                let (recorded, whole) = (try await PacketList.of(file: path), try await PacketList.of(file: source))
                #expect(recorded.only("video").count > 20 && recorded.only("video").isRun(of: whole.only("video")))
            }
        }
    }

    /// The recorder's thread hangs on its disk: playback goes on, and frames to record wait.
    @Test func aSlowDiskDelaysNobody() async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 10)
        try await TestServer.run({
            $0.recording.apps = ["live"]
            $0.rooms.policy.cleanStopMs = 300
        }) { server in
            let path = StreamPath(app: "live", name: "cam1")
            let viewer = try await TagClient.play(from: server, "live/cam1")
            let pushed = try ClientProcess(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1"))
            defer { pushed.send(SIGKILL) }
            try await eventually("a recorder") { server.server.parts.recordings.recorder(of: path) != nil }
            let recorder = try server.server.parts.recordings.recorder(of: path).orThrow()
            let gate = DispatchSemaphore(value: 0)
            let isHeld = Atomic<Bool>(false)
            let hold = Task { await recorder.hang(until: gate) { isHeld.store(true, ordering: .sequentiallyConsistent) } }
            try await eventually("the disk to hang") { isHeld.load(ordering: .sequentiallyConsistent) }
            let before = viewer.tags.count
            try await eventually("media to go on") { viewer.tags.count > before + 60 }
            #expect(server.server.parts.recordings.isRecording(path))
            gate.signal()
            await hold.value
            #expect(try await pushed.outcome().status == 0)
            let recording = try await server.recordings(1, "finished")[0]
            #expect(recording["droppedFrames"].int == 0)
            #expect(try await Decoded.hashes(server.recordingPath(recording), "v") == Decoded.hashes(source, "v"))
            await viewer.close()
        }
    }

    @Test func oldOnesAreDeleted() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 2)
        try await TestServer.run({
            $0.recording.apps = ["live"]
            $0.recording.retentionMs = 2_000
            $0.rooms.policy.cleanStopMs = 200
        }) { server in
            #expect(try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")).status == 0)
            let deleted = try await server.recordings(1, "deleted")[0]
            #expect(!FileManager.default.fileExists(atPath: try server.recordingPath(deleted)))
            #expect(try await server.api("recordings")["usedBytes"].int == 0)
            #expect(try FileManager.default.subpathsOfDirectory(atPath: "\(server.dataDirectory)/recordings") == ["live"])
        }
    }

    @Test func aServerThatStopsClosesItsFiles() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 20)
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            try await TestServer.run(data: data, { $0.recording.apps = ["live"] }) { server in
                let pushed = try ClientProcess(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1"))
                try await server.wait("recordings") { ($0["list"][0]["bytes"].int ?? 0) > 50_000 }
                // The push ends with the server.
                _ = pushed
            }
            try await TestServer.run(data: data) { server in
                let recording = try await server.recordings(1, "finished")[0]
                #expect(recording["reason"].string == "server_shutdown" && recording["isSeekable"].bool == true)
                let (recorded, pushed) = (
                    try await PacketList.of(file: server.recordingPath(recording)), try await PacketList.of(file: source)
                )
                #expect(recorded.only("video").count > 20 && recorded.only("video").isRun(of: pushed.only("video")))
                #expect(try await server.eventKinds("cam1").filter { $0.hasPrefix("record.") }.last == "record.finished")
            }
        }
    }
}

extension Recorder {
    /// Blocks as a disk that does not answer.
    func hang(until gate: DispatchSemaphore, _ begun: () -> Void) {
        begun()
        gate.wait()
    }
}
