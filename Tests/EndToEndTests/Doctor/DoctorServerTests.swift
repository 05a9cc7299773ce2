import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// `earshot doctor` beside running servers: a good one passes and stays as it was; faults are named.
@Suite struct DoctorServerTests {
    private static let plays = [
        "play RTMP", "play HTTP-FLV", "play WebSocket-FLV", "play fMP4", "play WebSocket-fMP4", "play HLS", "play HLS, low latency",
        "play WebRTC",
    ]

    @Test func aGoodServerPasses() async throws {
        try await Fixture.withDirectory { directory in
            let scene = try await DoctorScene(in: directory)
            let made = try await Certificate.make("localhost", in: directory)
            #expect(chmod(made.key, 0o600) == 0)
            let config = try scene.config(
                "rtmps: {listen: \"127.0.0.1:\(scene.ports[2])\", certificate: \(made.certificate), key: \(made.key)}",
                "https: {listen: \"127.0.0.1:\(scene.ports[3])\"}", "outbound: {allowPrivate: [127.0.0.0/8]}",
                "urls: {rtmps: \"rtmps://localhost:\(scene.ports[2])\"}")
            try await scene.serve(config) { server in
                let run = try await DoctorRun.run(["--config", config])
                #expect(run.isWell, "\(run.words)")
                for name in Self.plays + [
                    "play RTMPS", "play HTTPS-FLV", "play WSS-FLV", "play HLS over TLS", "play HLS over TLS, low latency", "push",
                    "snapshot", "talk", "recording", "webhook", "counters", "RTMPS", "HTTPS",
                ] {
                    #expect(run.status(of: name) == "pass", "\(name) in \(run.words)")
                }
                #expect(run.measured("open files").contains("for the running server"), "\(run.words)")
                #expect(run.measured("port rtmps.listen").contains("is served"), "\(run.words)")
                #expect(try #require(run.whole["seconds"].double) < 60 * Patience.factor)
                try await Self.expectNothingLeft(on: server)
            }
        }
    }

    /// Settings that were changed since the server's start: it is found where it says that it listens, and the difference is told.
    @Test func changedSettings() async throws {
        try await Fixture.withDirectory { directory in
            let scene = try await DoctorScene(in: directory)
            try await scene.serve(try scene.config()) { _ in
                let changed = try scene.config("http: {listen: \"127.0.0.1:\(scene.ports[3])\"}")
                let run = try await DoctorRun.run(["--config", changed])
                #expect(run.isWell, "\(run.words)")
                #expect(run.status(of: "port http.listen") == "warn" && run.status(of: "port rtmp.listen") == "pass", "\(run.words)")
                #expect(run.measured("port http.listen").contains(":\(scene.ports[1]) is served"), "\(run.words)")
                #expect(run.status(of: "push") == "pass", "\(run.words)")
            }
        }
    }

    /// By `--server` alone, with the roles that a token may have. Neither leaves anything.
    @Test func rolesLeaveThingsOut() async throws {
        try await Fixture.withDirectory { directory in
            try await EarshotProcess.serve(data: directory) { server in
                let data = directory.appendingPathComponent("data").path
                for (role, absent, present) in [
                    ("ops", ["webhook"], ["recording", "counters"]),
                    ("backend", ["webhook", "recording", "counters"], ["push", "talk", "snapshot"]),
                ] {
                    let token = try await EarshotProcess.command(["token", "create", role, "--role", role, "--data", data])
                    let file = try CLI.tokenFile(try #require(token.lines.first), in: directory)
                    let run = try await DoctorRun.run(["--server", server.http, "--token-file", file])
                    #expect(run.isWell, "\(run.words)")
                    #expect(run.measured("token").hasPrefix("role \(role); left out"), "\(run.words)")
                    for name in absent { #expect(run.status(of: name) == nil, "\(name) in \(run.words)") }
                    for name in present + Self.plays { #expect(run.status(of: name) == "pass", "\(name) in \(run.words)") }
                    try await Self.expectNothingLeft(on: server)
                }
                // As the settings are when nobody has changed them.
                let admin = try await DoctorRun.run(["--server", server.http, "--data", data])
                #expect(admin.isWell && admin.status(of: "webhook") == "skip", "\(admin.words)")
                #expect(admin.measured("webhook").contains("outbound.allowPrivate"), "\(admin.words)")
                let none = try await DoctorRun.run([
                    "--server", server.http, "--token-file", try CLI.tokenFile("earshot_wrong", in: directory),
                ])
                #expect(none.status(of: "token") == "warn" && none.status(of: "push") == nil, "\(none.words)")
            }
        }
    }

    @Test func refusedPlays() async throws {
        try await CannedServer.run({ request in
            .json(200, request.body.contains("on_play") ? #"{"code":1,"message":"closed today"}"# : #"{"code":0}"#)
        }) { _, url in
            try await Fixture.withDirectory { directory in
                let scene = try await DoctorScene(in: directory)
                let config = try scene.config("hooks: {onPlay: \"\(url)\"}", "outbound: {allowPrivate: [127.0.0.0/8]}")
                try await scene.serve(config) { server in
                    let run = try await DoctorRun.run(["--config", config])
                    #expect(run.status == 1 && run.status(of: "push") == "pass" && run.status(of: "recording") == "pass", "\(run.words)")
                    for name in Self.plays where name != "play HLS, low latency" {
                        #expect(run.status(of: name) == "fail" && run.measured(name).contains("closed today"), "\(name) in \(run.words)")
                    }
                    try await Self.expectNothingLeft(on: server)
                }
            }
        }
    }

    /// Through a proxy that damages what it passes on: each protocol is judged by its bytes, not by its status.
    @Test(arguments: [(".flv", ["play HTTP-FLV", "play WebSocket-FLV"]), (".mp4", ["play fMP4"]), ("/recordings/", ["recording"])])
    func damagedMedia(_ word: String, _ names: [String]) async throws {
        try await Fixture.withDirectory { directory in
            let scene = try await DoctorScene(in: directory)
            let config = try scene.config("urls: {http: \"http://127.0.0.1:\(scene.ports[3])\"}")
            try await scene.serve(config) { server in
                try await MangledProxy.run(to: scene.ports[1], at: scene.ports[3], word: word) {
                    // Among the doctor's own calls, only the download of the recording goes through the proxy.
                    let through =
                        word == "/recordings/"
                        ? ["--server", "http://127.0.0.1:\(scene.ports[3])", "--data", scene.data] : ["--config", config]
                    let run = try await DoctorRun.run(through)
                    #expect(run.status == 1, "\(run.words)")
                    for name in names { #expect(run.status(of: name) == "fail", "\(name) in \(run.words)") }
                    for name in ["push", "play RTMP", "snapshot"] { #expect(run.status(of: name) == "pass", "\(name) in \(run.words)") }
                    #expect(try #require(run.whole["seconds"].double) < 60 * Patience.factor)
                }
                try await Self.expectNothingLeft(on: server)
            }
        }
    }

    @Test func anInterruptionCleansUp() async throws {
        try await Fixture.withDirectory { directory in
            try await EarshotProcess.serve(data: directory) { server in
                let data = directory.appendingPathComponent("data").path
                let doctor = try ClientProcess([
                    "env", "-u", "EARSHOT_TOKEN", try EarshotProcess.binary(), "doctor", "--server", server.http, "--data", data,
                ])
                func recordings() async throws -> Int {
                    try await HTTPAnswer.get("\(server.http)/api/v1/recordings", token: server.token).json()["data"]["list"].count
                }
                try await eventually("a recording") { try await recordings() > 0 }
                doctor.send(SIGINT)
                #expect(try await doctor.outcome().status == 2)
                try await Self.expectNothingLeft(on: server)
            }
        }
    }

    private static func expectNothingLeft(on server: EarshotProcess) async throws {
        for path in ["rooms", "webhooks", "recordings", "streams", "sessions"] {
            try await eventually("no \(path)") {
                try await HTTPAnswer.get("\(server.http)/api/v1/\(path)", token: server.token).json()["data"]["list"].count == 0
            }
        }
    }

    // MARK: - Health

    @Test func health() async throws {
        try await Fixture.withDirectory { directory in
            let scene = try await DoctorScene(in: directory)
            let config = try scene.config()
            try await scene.serve(config) { server in
                for arguments in [["--server", server.http], ["--config", config], ["--live", "--config", config]] {
                    let outcome = try await EarshotProcess.command(["health"] + arguments)
                    #expect(outcome.status == 0 && outcome.lines.count == 1 && outcome.errors.isEmpty, "\(outcome.text) \(outcome.errors)")
                }
            }
            let gone = try await EarshotProcess.command(["health", "--config", config])
            #expect(gone.status == 1 && gone.text.contains("does not answer: connection refused"), "\(gone.text) \(gone.errors)")
        }
        try await CannedServer.run({ request in
            request.uri == "/healthz" ? .text(200, "ok", [:]) : .text(503, "shutting down", [:])
        }) { _, url in
            let drained = try await EarshotProcess.command(["health", "--server", url])
            #expect(drained.status == 1 && drained.text.contains("not ready (HTTP 503): shutting down"), "\(drained.text)")
            #expect(try await EarshotProcess.command(["health", "--live", "--server", url]).status == 0)
        }
    }
}
