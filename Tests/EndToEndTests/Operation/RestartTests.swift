import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// `earshot drain --restart`, on real processes. Many clients and many restarts are in Tests/Torture.
@Suite struct RestartTests {
    private static func run(
        _ settings: ReloadingServer.Settings = [:], _ body: @escaping @Sendable (ReloadingServer, CLI) async throws -> Void
    ) async throws {
        try await Fixture.withDirectory { directory in
            try await ReloadingServer.run(settings, in: directory) { server in
                try await body(server, CLI(server: server.earshot.http, token: try CLI.tokenFile(server.earshot.token, in: directory)))
            }
        }
    }

    /// A push that has arrived, until it is ended.
    private static func push(to server: ReloadingServer) async throws -> ClientProcess {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4)
        let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.earshot.rtmp)/live/cam1"))
        try await server.waitForPush()
        return push
    }

    /// The sockets of UDP that the process has.
    private static func ports(of process: ClientProcess) throws -> Set<String> {
        let table = try String(contentsOfFile: "/proc/net/udp", encoding: .utf8).split(separator: "\n").dropFirst()
        return try process.openSockets().intersection(table.compactMap { $0.split(separator: " ").dropFirst(9).first.map(String.init) })
    }

    /// The settings are read anew, those too that a reload cannot apply; a push goes on for its time and is let in again by the next program.
    @Test func newSettings() async throws {
        try await Self.run { server, cli in
            let process = server.earshot.process
            let push = try await Self.push(to: server)
            defer { push.send(SIGKILL) }
            let ports = try Self.ports(of: process)
            #expect(!ports.isEmpty)
            try "{stats: {enabled: off}, limits: {streamName: 8}}".write(toFile: server.file, atomically: true, encoding: .utf8)
            let state = try await cli.json("drain", "--restart", "--within", "5m")
            #expect(state["restarts"].bool == true && state["pushes"].int == 1, "\(state)")
            #expect(try await cli("drain", "--restart").status == 4, "one at a time")
            push.send(SIGKILL)
            try await eventually("the next program") { process.errorsSoFar.components(separatedBy: "has started").count == 3 }
            #expect(process.isRunning)
            #expect(try !ports.isDisjoint(with: Self.ports(of: process)), "WebRTC's port stays open, too")
            let now = try await server.call("GET", "server").json()["data"]
            #expect(now["drain"].isNull && now["ready"].bool == true, "\(now)")
            // The former address; the new limit.
            #expect(try await HTTPAnswer.get("\(server.earshot.http)/live/camera.flv").status == 400)
            let again = try await Self.push(to: server)
            defer { again.send(SIGKILL) }
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

    /// Nor unless certificate and key belong together, and the ports that it does not have yet are free.
    @Test func filesAndPortsAreTried() async throws {
        try await Fixture.withDirectory { directory in
            let made = try await Certificate.make("live.example.com", in: directory)
            let other = directory.appendingPathComponent("other")
            try FileManager.default.createDirectory(at: other, withIntermediateDirectories: false)
            let key = try await Certificate.make("live.example.com", in: other).key
            let port = try await FreePort.reserve()
            let taker = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "\(port)"]
            try await ClientProcess.during(taker) { _ in
                try await eventually("the port to be taken") { (try? await HTTPAnswer.get("http://127.0.0.1:\(port)/").status) == 200 }
                try await Self.run { server, cli in
                    for (key, words) in [(key, "the key is not this certificate's"), (made.key, "127.0.0.1:\(port)")] {
                        try "{rtmps: {listen: \"127.0.0.1:\(port)\", certificate: \(made.certificate), key: \(key)}}".write(
                            toFile: server.file, atomically: true, encoding: .utf8)
                        let refused = try await cli("drain", "--restart")
                        #expect(refused.status == 4 && refused.errors.contains(words), "\(refused.errors)")
                        #expect(try await HTTPAnswer.get("\(server.earshot.http)/readyz").status == 200)
                    }
                    try "{rtmps: {certificate: \(made.certificate), key: \(key)}}".write(
                        toFile: server.file, atomically: true, encoding: .utf8)
                    let check = try await EarshotProcess.command(["config", "check", "--config", server.file])
                    #expect(check.status == 1 && check.errors.contains("Error: rtmps.certificate, rtmps.key: "), "\(check.errors)")
                }
            }
        }
    }

    /// A signal that asks for the end cancels the restart that is under way.
    @Test func aSignalEndsIt() async throws {
        try await Self.run { server, cli in
            let process = server.earshot.process
            let push = try await Self.push(to: server)
            defer { push.send(SIGKILL) }
            #expect(try await cli("drain", "--restart", "--within", "5m").status == 0)
            process.send(SIGTERM)
            try await eventually("the line") { process.errorsSoFar.contains("does not start again") }
            process.send(SIGTERM)
            let ended = try await process.outcome()
            #expect(ended.status == 0 && ended.errors.components(separatedBy: "has started").count == 2, "\(ended.errors)")
        }
    }

    /// A program that cannot start is found before anything ends; one that breaks in the last moment is reported.
    @Test func aProgramThatCannotStart() async throws {
        try await Fixture.withDirectory { directory in
            let program = directory.appendingPathComponent("earshot").path
            try FileManager.default.copyItem(atPath: try EarshotProcess.binary(), toPath: program)
            let data = directory.appendingPathComponent("data").path
            let process = try ClientProcess([program, "serve", "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", data])
            defer { process.send(SIGKILL) }
            try await eventually("the start") { process.errorsSoFar.contains("has started") }
            for (content, word) in [("", "cannot be started"), ("#!/bin/sh\necho no such library >&2; exit 3\n", "no such library")] {
                try FileManager.default.removeItem(atPath: program)
                try content.write(toFile: program, atomically: true, encoding: .utf8)
                #expect(chmod(program, 0o755) == 0)
                process.send(SIGUSR2)
                try await eventually("a line with \(word)") { process.errorsSoFar.contains(word) }
            }
            #expect(process.isRunning && process.errorsSoFar.components(separatedBy: "so it goes on").count == 3, "\(process.errorsSoFar)")
            process.send(SIGTERM)
            #expect(try await process.outcome().status == 0)
        }
    }

    /// A client that sends its request byte by byte keeps nobody from the restart, nor from an end with status 0.
    @Test func aSlowRequest() async throws {
        try await Self.run { server, _ in
            let process = server.earshot.process
            let port = try #require(Int(server.earshot.http.split(separator: ":").last ?? ""))
            for (signal, starts) in [(SIGUSR2, 2), (SIGTERM, 2)] {
                let slow = try await SocketClient.open(port)
                try await slow.send("POST /console/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 20000\r\n\r\n")
                let sending = Task {
                    while !Task.isCancelled, !slow.isClosed {
                        _ = try? await slow.send(String(repeating: "a", count: 100))
                        try await Task.sleep(for: .milliseconds(100))
                    }
                }
                defer { sending.cancel() }
                try await Task.sleep(for: .milliseconds(300))
                process.send(signal)
                if signal == SIGUSR2 {
                    try await eventually("the next program") {
                        process.errorsSoFar.components(separatedBy: "has started").count == starts + 1
                    }
                } else {
                    #expect(try await process.outcome().status == 0)
                }
            }
        }
    }

    /// An address that is narrower or wider than before is opened anew.
    @Test func anotherAddress() async throws {
        try await Fixture.withDirectory { directory in
            let port = try await FreePort.reserve()
            let file = directory.appendingPathComponent("earshot.yaml").path
            func write(_ host: String) throws {
                try "{http: {listen: \"\(host):\(port)\"}, rtmp: {listen: \"127.0.0.1:0\"}}".write(
                    toFile: file, atomically: true, encoding: .utf8)
            }
            try write("127.0.0.1")
            let data = directory.appendingPathComponent("data").path
            let process = try ClientProcess([try EarshotProcess.binary(), "serve", "--config", file, "--data", data])
            defer { process.send(SIGKILL) }
            try await eventually("the start") { process.errorsSoFar.contains("http=127.0.0.1:\(port)") }
            try write("0.0.0.0")
            process.send(SIGUSR2)
            try await eventually("the new address") { process.errorsSoFar.contains("http=0.0.0.0:\(port)") }
            #expect(process.errorsSoFar.contains("no setting names its address"))
            #expect(try await HTTPAnswer.get("http://127.0.0.1:\(port)/healthz").status == 200)
            process.send(SIGTERM)
            #expect(try await process.outcome().status == 0)
        }
    }
}
