import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// `earshot drain --restart`, on real processes. Many clients and many restarts are in Tests/Torture.
@Suite struct RestartTests {
    private static func run(
        _ settings: String = "{}", _ body: @escaping @Sendable (ReloadingServer, CLI) async throws -> Void
    ) async throws {
        try await Fixture.withDirectory { directory in
            try await ReloadingServer.run(settings, in: directory) { server in
                try await body(server, CLI(server: server.earshot.http, token: try CLI.tokenFile(server.earshot.token, in: directory)))
            }
        }
    }

    /// The settings are read anew, those too that a reload cannot apply; a push goes on for its time and is let in again by the next program.
    @Test func newSettings() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4)
        try await Self.run { server, cli in
            let process = server.earshot.process
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.earshot.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await server.waitForPush()
            try "{stats: {enabled: off}, limits: {streamName: 8}}".write(toFile: server.file, atomically: true, encoding: .utf8)
            let state = try await cli.json("drain", "--restart", "--within", "1s")
            #expect(state["restarts"].bool == true && state["pushes"].int == 1, "\(state)")
            #expect(try await cli("drain", "--restart").status == 4, "one at a time")
            try await eventually("the next program") { process.errorsSoFar.components(separatedBy: "has started").count == 3 }
            #expect(process.isRunning)
            let now = try await server.call("GET", "server").json()["data"]
            #expect(now["drain"].isNull && now["ready"].bool == true, "\(now)")
            // The former address; the new limit.
            #expect(try await HTTPAnswer.get("\(server.earshot.http)/live/camera.flv").status == 400)
            let again = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.earshot.rtmp)/live/cam1"))
            defer { again.send(SIGKILL) }
            try await server.waitForPush()
            #expect(process.errorsSoFar.contains("Starting again"))
            let lines = try await server.call("GET", "audit?operation=drainServer").json()["data"]["list"].list
            #expect(lines.map { $0["after"]["state"].string } == [nil, "restarting"], "\(lines)")
        }
    }

    /// Nothing ends unless the next program could start.
    @Test func wrongSettings() async throws {
        try await Self.run { server, cli in
            try "{limits: {streamName: many}}".write(toFile: server.file, atomically: true, encoding: .utf8)
            let refused = try await cli("drain", "--restart")
            #expect(
                refused.status == 4 && refused.errors.contains("limits.streamName") && refused.errors.contains("so it goes on"),
                "\(refused.errors)")
            #expect(try await HTTPAnswer.get("\(server.earshot.http)/readyz").status == 200)
            server.earshot.process.send(SIGUSR2)
            try await eventually("the line") { server.earshot.process.errorsSoFar.contains("by=SIGUSR2") }
            #expect(try await HTTPAnswer.get("\(server.earshot.http)/readyz").status == 200)
            try "{}".write(toFile: server.file, atomically: true, encoding: .utf8)
            #expect(try await cli("drain", "--restart", "--wait").errors.contains("started again"))
            #expect(try await HTTPAnswer.get("\(server.earshot.http)/readyz").status == 200)
        }
    }

    /// Who asks a server that is about to start again to end means it.
    @Test func aSignalEndsIt() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4)
        try await Self.run { server, cli in
            let process = server.earshot.process
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.earshot.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await server.waitForPush()
            #expect(try await cli("drain", "--restart", "--within", "5m").status == 0)
            process.send(SIGTERM)
            try await eventually("the line") { process.errorsSoFar.contains("does not start again") }
            process.send(SIGTERM)
            let ended = try await process.outcome(within: 20)
            #expect(ended.status == 0 && ended.errors.components(separatedBy: "has started").count == 2, "\(ended.errors)")
        }
    }
}
