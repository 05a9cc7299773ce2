import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// `earshot drain`, on real processes.
@Suite struct DrainCommandTests {
    /// A drain during a recording leaves it whole; a second one begins nothing; the process ends with 0 when the push does.
    @Test func duringARecording() async throws {
        // Long enough for all that is done while it runs, on a busy machine too.
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 40)
        try await Fixture.withDirectory { directory in
            try await ReloadingServer.run(["recording.apps": "[live]"], in: directory) { server in
                let cli = CLI(server: server.earshot.http, token: try CLI.tokenFile(server.earshot.token, in: directory))
                let push = try ClientProcess(FFmpeg.push(source, to: "\(server.earshot.rtmp)/live/cam1"))
                defer { push.send(SIGKILL) }
                try await server.waitForPush()
                try await eventually("the recording") {
                    try await server.call("GET", "recordings").json()["data"]["list"].list.count == 1
                }
                // Ends by itself only at the playlist's end.
                let watching = try ClientProcess([
                    "ffmpeg", "-nostdin", "-v", "error", "-i", "\(server.earshot.http)/live/cam1.m3u8", "-map", "0:v", "-f", "framemd5",
                    "-",
                ])
                defer { watching.send(SIGKILL) }
                try await eventually("the HLS player") {
                    try await server.call("GET", "sessions").json()["data"]["list"].list.contains { $0["transport"].string == "hls" }
                }
                let waiting = try ClientProcess(try ["env"] + cli.line(["drain", "--within", "5m", "--wait"]))
                try await eventually("the drain") { server.earshot.process.errorsSoFar.contains("Draining: nobody new") }
                for path in ["readyz", "readyz/publish", "readyz/play"] {
                    #expect(try await HTTPAnswer.get("\(server.earshot.http)/\(path)").status == 503)
                }
                let second = try await cli("drain", "--within", "1s")
                #expect(second.status == 4 && second.errors.contains("1 push") && second.errors.contains("s left"), "\(second.errors)")
                // A signal joins it: what an orchestrator sends next must not cut the pushes.
                server.earshot.process.send(SIGTERM)
                try await eventually("the line") { server.earshot.process.errorsSoFar.contains("Draining already") }
                #expect(push.isRunning && server.earshot.process.isRunning)
                #expect(try await push.outcome().status == 0)
                let ended = try await server.earshot.process.outcome()
                #expect(ended.status == 0 && ended.errors.contains("all pushes have ended"), "\(ended.errors)")
                let told = try await waiting.outcome()
                #expect(told.status == 0 && told.text.contains("1 push may go on for"), "\(told.text)")
                #expect(told.errors.contains("the server has ended"), "\(told.errors)")
                // It got the last picture that was pushed, and the end.
                let (watched, last) = (
                    try await watching.outcome(),
                    try await ClientProcess.run([
                        "ffmpeg", "-nostdin", "-v", "error", "-i", source, "-map", "0:v", "-f", "framemd5", "-",
                    ])
                )
                #expect(watched.status == 0 && Self.lastHash(watched.text) == Self.lastHash(last.text), "\(watched.errors)")
            }
            let folder = directory.appendingPathComponent("data/recordings/live/cam1")
            let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".mp4") }
            #expect(files.count == 1)
            // Seekable: an index in front of the pictures, instead of fragments.
            let boxes = try await ClientProcess.run(["ffprobe", "-v", "trace"] + files.map { folder.appendingPathComponent($0).path })
            #expect(!boxes.errors.contains("type:'moof'") && boxes.errors.contains("type:'moov'"))
            let recorded = try await ClientProcess.run(
                [
                    "ffprobe", "-v", "error", "-count_packets", "-select_streams", "v", "-show_entries", "stream=nb_read_packets", "-of",
                    "csv=p=0",
                ]
                    + files.map { folder.appendingPathComponent($0).path })
            let expected = try await PacketList.of(file: source).only("video").packets.count
            #expect(Int(recorded.text.trimmingCharacters(in: .whitespacesAndNewlines)) == expected, "\(recorded.text) \(recorded.errors)")
        }
    }

    private static func lastHash(_ frames: String) -> Substring? { frames.split(separator: "\n").last?.split(separator: " ").last }

    /// The time passes: remaining pushes and plays get the reason and are ended.
    @Test func theTimePasses() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4)
        try await Fixture.withDirectory { directory in
            try await ReloadingServer.run(in: directory) { server in
                let cli = CLI(server: server.earshot.http, token: try CLI.tokenFile(server.earshot.token, in: directory))
                let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.earshot.rtmp)/live/cam1"))
                defer { push.send(SIGKILL) }
                try await server.waitForPush()
                let state = try await cli.json("drain", "--within", "2s")
                #expect(state["pushes"].int == 1 && (state["secondsLeft"].double ?? 9) <= 2, "\(state)")
                let ended = try await server.earshot.process.outcome()
                #expect(ended.status == 0 && ended.errors.contains("the time has passed"), "\(ended.errors)")
                #expect(ended.errors.contains("reason=server_shutdown"), "\(ended.errors)")
            }
        }
    }

    /// Nobody pushes: the answer arrives, and the process ends.
    @Test func nobodyPushes() async throws {
        try await Fixture.withDirectory { directory in
            try await ReloadingServer.run(in: directory) { server in
                let cli = CLI(server: server.earshot.http, token: try CLI.tokenFile(server.earshot.token, in: directory))
                #expect(try await cli.text("drain", "--within", "10m") == "the server is ending now\n")
                #expect(try await server.earshot.process.outcome().status == 0)
            }
        }
    }
}
