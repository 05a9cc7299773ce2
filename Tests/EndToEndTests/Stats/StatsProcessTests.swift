import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// Statistics of a process that is killed, and of one whose files cannot grow.
@Suite struct StatsProcessTests {
    private func pushes(_ server: EarshotProcess) async throws -> [JSON] {
        try await HTTPAnswer.get("\(server.http)/api/v1/stats/pushes", token: server.token).json()["data"]["list"].list
    }

    private func state(of room: String, _ server: EarshotProcess) async throws -> String? {
        try await HTTPAnswer.get("\(server.http)/api/v1/rooms/\(room)", token: server.token).json()["data"]["state"].string
    }

    private func metric(_ name: String, _ server: EarshotProcess) async throws -> Double? {
        let text = try await HTTPAnswer.get("\(server.http)/metrics", token: server.token).text
        return text.split(separator: "\n").first { $0.hasPrefix("earshot_stats_\(name) ") }
            .flatMap { Double($0.split(separator: " ").last ?? "") }
    }

    /// kill -9 loses what was not written, and nothing else; the file opens again.
    @Test(.timeLimit(.minutes(5))) func whatIsWrittenSurvivesAKill() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 1)
        let long = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 30)
        try await Fixture.withDirectory { directory in
            for round in 1...3 {
                try await EarshotProcess.serve(data: directory) { server in
                    let before = try await pushes(server).count
                    #expect(before == round - 1)
                    _ = try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/cam\(round)"))
                    // The call has what waits written first.
                    try await eventually("the push") { try await pushes(server).count == round }
                    // The next push is running when the server dies.
                    try await ClientProcess.during(FFmpeg.push(long, to: "\(server.rtmp)/live/late\(round)")) { _ in
                        try await eventually("the stream") {
                            try await self.state(of: "late\(round)", server) == "live"
                        }
                        server.process.send(SIGKILL)
                        try await eventually("its end") { !server.process.isRunning }
                    }
                }
            }
            try await EarshotProcess.serve(data: directory) { server in
                let names = try await pushes(server).map { $0["name"].string }
                #expect(names == ["cam3", "cam2", "cam1"])
                #expect(!server.process.errorsSoFar.contains("statistics were damaged"))
            }
        }
    }

    /// The system refuses to lengthen files, as a full disk does: the server runs on, and what waited is written later.
    @Test(.timeLimit(.minutes(5))) func aFullDiskStopsNothing() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 1)
        try await Fixture.withDirectory { directory in
            try await EarshotProcess.serve(data: directory) { server in
                func limit(_ bytes: String) async throws {
                    let outcome = try await ClientProcess.run(["prlimit", "--pid", "\(server.process.id)", "--fsize=\(bytes):unlimited"])
                    #expect(outcome.status == 0, "\(outcome.errors)")
                }
                _ = try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1"))
                try await eventually("the push") { try await pushes(server).count == 1 }
                let long = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 60)
                try await ClientProcess.during(FFmpeg.push(long, to: "\(server.rtmp)/live/cam2")) { _ in
                    try await eventually("the stream") {
                        try await self.state(of: "cam2", server) == "live"
                    }
                    try await limit("1")
                }
                try await eventually("the pause") { try await metric("paused", server) == 1 }
                try await eventually("the log") { server.process.errorsSoFar.contains("Statistics pause") }
                try await limit("unlimited")
                try await eventually("the late push") { try await pushes(server).count == 2 }
                // The page of metrics is made at most a few times a second.
                try await eventually("the end of the pause") { try await metric("paused", server) == 0 }
                #expect(try await metric("lost_rows_total", server) == 0)
                try await eventually("the log") { server.process.errorsSoFar.contains("Statistics are written again") }
            }
        }
    }
}
