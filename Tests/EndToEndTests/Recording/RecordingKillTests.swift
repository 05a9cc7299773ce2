import Foundation
import RTMP
import ServerTestSupport
import TestSupport
import Testing

/// kill -9 while streams are recorded. Every file opens, lacks at most its last fragment, and is finished by the next start.
///
/// `EARSHOT_KILLS=50` makes it long.
@Suite struct RecordingKillTests {
    private static let kills = ProcessInfo.processInfo.environment["EARSHOT_KILLS"].flatMap(Int.init) ?? 4

    @Test(.seeded, .timeLimit(.minutes(20))) func whatWasWrittenIsThere() async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 30)
        let once = try await PacketList.of(file: source)
        let whole = PacketList(Array(repeatElement(once.packets, count: 20).joined()))
        try await Fixture.withDirectory { directory in
            let config = directory.appendingPathComponent("earshot.yaml")
            try "recording: {apps: [live]}\nlog: {level: warning}\n".write(to: config, atomically: true, encoding: .utf8)
            // Milliseconds of the stream that a viewer had received when the server was killed.
            var playedMs: [String: UInt32] = [:]
            var random = TestRandom()
            for kill in 0..<Self.kills {
                let name = "cam\(kill)"
                try await EarshotProcess.serve(data: directory, ["--config", config.path]) { server in
                    try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/\(name)")) { _ in
                        func list() async throws -> JSON {
                            try await HTTPAnswer.get("\(server.http)/api/v1/recordings?app=live&name=\(name)", token: server.token).json()
                        }
                        try await eventually("a recording") { try await list()["data"]["list"].count == 1 }
                        let port = try Int(server.rtmp.split(separator: ":").last.map(String.init) ?? "").orThrow()
                        let viewer = try await RawClient.playing(port, name)
                        try await eventually("a picture") { !viewer.media().isEmpty }
                        try await Task.sleep(for: .milliseconds(Int.random(in: 50...3_000, using: &random)))
                        playedMs[name] = viewer.media().last?.message.timestamp
                        server.process.send(SIGKILL)
                        _ = try await server.process.outcome()
                        await viewer.close()
                    }
                }
                try await Self.inspect(at: directory.appendingPathComponent("data/recordings/live/\(name)"), whole)
            }
            try await EarshotProcess.serve(data: directory, ["--config", config.path]) { server in
                func list(_ query: String) async throws -> [JSON] {
                    try await HTTPAnswer.get("\(server.http)/api/v1/recordings?limit=1000\(query)", token: server.token).json()["data"][
                        "list"
                    ]
                    .list
                }
                try await eventually("all to be finished") {
                    try await list("").allSatisfy { ["finished", "failed"].contains($0["state"].string) }
                }
                let all = try await list("")
                #expect(all.count == Self.kills)
                for recording in all {
                    #expect(recording["reason"].string == (recording["state"].string == "failed" ? "empty" : "server_restart"))
                    let played = Double(try playedMs[recording["name"].string ?? ""].orThrow()) / 1_000
                    let lost = played - (recording["duration"].double ?? 0)
                    // A fragment, and data on its way to the disk of a loaded machine.
                    #expect(lost < 1.0 + 2.0, "\(recording["name"].string ?? "") lost \(lost) s of \(played)")
                    guard recording["state"].string == "finished" else { continue }
                    #expect(recording["isSeekable"].bool == true)
                    let path = directory.appendingPathComponent("data/recordings/\(try recording["file"].string.orThrow())").path
                    let packets = try await PacketList.of(file: path)
                    #expect(packets.only("video").count > 0 && packets.only("video").isRun(of: whole.only("video")))
                    #expect(packets.only("audio").isRun(of: whole.only("audio")))
                }
                let left = try FileManager.default.subpathsOfDirectory(atPath: directory.appendingPathComponent("data/recordings").path)
                #expect(left.filter { $0.hasSuffix(".tmp") }.isEmpty)
            }
        }
    }

    /// Checks the files as the kill left them.
    private static func inspect(at folder: URL, _ whole: PacketList) async throws {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        for file in files where file.hasSuffix(".mp4") {
            let path = folder.appendingPathComponent(file).path
            // Before the first fragment there is nothing to decode.
            guard try Data(contentsOf: URL(fileURLWithPath: path)).count > 3_000 else { continue }
            let packets = try await PacketList.of(file: path)
            #expect(packets.only("video").count > 0 && packets.only("video").isRun(of: whole.only("video")), "\(file)")
        }
    }
}
