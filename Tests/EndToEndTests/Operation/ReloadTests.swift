import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// Settings that change while a server runs. Each process is real, and what changes is its behaviour.
@Suite struct ReloadTests {
    private static func source(_ seconds: Int) async throws -> String {
        try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: seconds)
    }

    @Test func limitsHold() async throws {
        let source = try await Self.source(4)
        try await ReloadingServer.run { server in
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.earshot.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await server.waitForPush()
            let change = try await server.apply(["limits.publishersTotal": "1", "limits.viewersPerStream": "1", "limits.streamName": "8"])
            #expect(change.applied == ["limits.streamName", "limits.viewersPerStream", "limits.publishersTotal"] && change.waiting.isEmpty)
            let limit = try await server.api("server/settings")["list"].list.first { $0["setting"].string == "limits.publishersTotal" }
            #expect(limit?["value"].string == "1" && limit?["source"].string == "file", "the file's value is in force")
            try await eventually("the reload's line in the audit") {
                let line = try await server.call("GET", "audit?operation=reloadSettings").json()["data"]["list"][0]
                return line["after"]["limits.publishersTotal"].string == "1" && line["before"]["limits.viewersPerStream"].string != "1"
            }
            let second = try await ClientProcess.run(FFmpeg.push(source, to: "\(server.earshot.rtmp)/live/cam2"))
            #expect(second.status != 0, "the second publisher")
            #expect(try await HTTPAnswer.get("\(server.earshot.http)/live/camera-with-a-long-name.flv").status == 400)
            #expect(push.isRunning, "what runs goes on")
            #expect(try await server.apply(["limits.publishersTotal": "2"]).applied.count == 3)
            let third = try await ClientProcess.run(FFmpeg.push(source, to: "\(server.earshot.rtmp)/live/cam2"))
            #expect(third.status == 0, "\(third.errors)")
        }
    }

    @Test func connectionsAreLimited() async throws {
        try await ReloadingServer.run { server in
            try await server.apply(["limits.connectionsPerAddress": "1", "limits.handshake": "5m", "limits.connect": "5m"])
            let port = try server.rtmpPort
            // Counted before the second one comes.
            let first = try await RawClient.shaken(port)
            let second = try await RawClient.open(port)
            try await eventually("the end of the first") { first.isClosed }
            #expect(!second.isClosed)
            try await server.apply(["limits.connectionsPerAddress": "2", "limits.handshake": "5m", "limits.connect": "5m"])
            let third = try await RawClient.open(port)
            _ = try? await Task.sleep(for: .milliseconds(500))
            #expect(!second.isClosed && !third.isClosed)
        }
    }

    /// Access by address, a hook and another key: each decides about what comes after.
    @Test func accessIsDecidedAnew() async throws {
        let source = try await Self.source(2)
        try await ReloadingServer.run(["credentials.key": "the-first-key"]) { server in
            // On a busy machine the refused pushes take longer than a room waits after a clean stop.
            let url = try await server.call("POST", "rooms", #"{"roomId":"r1","policy":{"cleanStop":300}}"#).json()["data"]
            #expect(!url.isNull)
            func pushURL() async throws -> String {
                try await server.call("POST", "rooms/r1/push-url", "{}").json()["data"]["rtmp"].string.orThrow()
            }
            let old = try await pushURL()
            #expect(try await ClientProcess.run(FFmpeg.push(source, to: old)).status == 0)
            let open = "\(server.earshot.rtmp)/live/r1"
            #expect(try await ClientProcess.run(FFmpeg.push(source, to: open)).status == 0)
            let change = try await server.apply(["credentials.key": "another-key-altogether", "access.publishFrom": "[10.0.0.0/8]"])
            #expect(change.applied == ["access.publishFrom", "credentials.key"])
            #expect(try await ClientProcess.run(FFmpeg.push(source, to: open)).status != 0, "needs a credential now")
            #expect(try await ClientProcess.run(FFmpeg.push(source, to: old)).status != 0, "signed with the former key")
            let signed = try await ClientProcess.run(FFmpeg.push(source, to: try await pushURL()))
            #expect(signed.status == 0, "signed with the new one: \(signed.errors) \(server.earshot.process.errorsSoFar.suffix(3_000))")
            // The hook says no; nobody asked it before.
            try await ScriptedServer.run { _ in
                .status(403, #"{"code":403}"#)
            } _: { hook in
                try await server.apply([
                    "outbound.allowPrivate": "[127.0.0.0/8]", "hooks.onPublish": "http://127.0.0.1:\(hook.port)/",
                    "credentials.key": "another-key-altogether",
                ])
                #expect(try await ClientProcess.run(FFmpeg.push(source, to: open)).status != 0, "the hook")
                #expect(hook.requests.count == 1)
            }
            #expect(!server.earshot.process.errorsSoFar.contains("another-key-altogether"), "a secret in the log")
        }
    }

    @Test func theAPIsAddressesChange() async throws {
        try await ReloadingServer.run { server in
            try await server.apply(["access.apiFrom": "[10.0.0.0/8]"])
            #expect(try await server.call("GET", "rooms").status == 403)
            // Only the signal is left.
            try "log: {level: info}".write(toFile: server.file, atomically: true, encoding: .utf8)
            server.earshot.process.send(SIGHUP)
            try await eventually("the API") { try await server.call("GET", "rooms").status == 200 }
        }
    }

    @Test func webhookTargetsChange() async throws {
        let (first, second) = (try await WebhookReceiver.start(), try await WebhookReceiver.start())
        let allowed = "[127.0.0.0/8]"
        try await ReloadingServer.run(["outbound.allowPrivate": allowed, "webhooks.urls": "[\"\(first.url)\"]"]) { server in
            _ = try await server.call("POST", "rooms", #"{"roomId":"r1"}"#)
            try await eventually("the first target") { first.accepted.contains { $0.json["kind"].string == "room.created" } }
            #expect(second.accepted.isEmpty)
            try await server.apply([
                "outbound.allowPrivate": allowed, "webhooks.urls": "[\"\(second.url)\"]", "webhooks.key": "a-key-of-its-own",
            ])
            let before = first.accepted.count
            _ = try await server.call("POST", "rooms", #"{"roomId":"r2"}"#)
            try await eventually("the second target") { second.accepted.contains { $0.json["roomId"].string == "r2" } }
            #expect(first.accepted.count == before)
            #expect(try await server.call("GET", "webhooks/targets").text.contains("127.0.0.1:\(second.port)"))
            #expect(!server.earshot.process.errorsSoFar.contains("/hook"), "an address that may hold a credential, in the log")
        }
    }

    @Test func theLogsLevelChanges() async throws {
        try await ReloadingServer.run { server in
            func reloads() -> Int { server.earshot.process.errorsSoFar.components(separatedBy: "Settings reloaded").count - 1 }
            try await server.apply(["log.level": "error"])
            try await server.apply(["log.level": "error", "limits.publishersTotal": "7"])
            try await server.apply(["log.level": "info", "limits.publishersTotal": "8"])
            try await eventually("the line") { reloads() > 0 }
            #expect(reloads() == 1 && server.earshot.process.errorsSoFar.contains("limits.publishersTotal 7 → 8"))
        }
    }

    /// Recording begins and ends with the setting, while the stream is live, and its file is whole.
    @Test func recordingIsSwitched() async throws {
        let source = try await Self.source(4)
        try await ReloadingServer.run { server in
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.earshot.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await server.waitForPush()
            func states() async throws -> [String] {
                try await server.call("GET", "recordings").json()["data"]["list"].list.compactMap(\.["state"].string)
            }
            #expect(try await states().isEmpty)
            try await server.apply(["recording.apps": "[live]"])
            try await eventually("the recording") { try await states().count == 1 }
            try await eventually("a fragment") {
                try await server.call("GET", "recordings").json()["data"]["list"][0]["bytes"].int ?? 0 > 0
            }
            try await server.apply(["recording.apps": "[]", "recording.retention": "1s"])
            try await eventually("its end, and its deletion") { try await states().isEmpty }
            #expect(push.isRunning)
        }
    }

    @Test func theDrainsTimeChanges() async throws {
        let source = try await Self.source(4)
        try await ReloadingServer.run { server in
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.earshot.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await server.waitForPush()
            try await server.apply(["drain.timeout": "10m"])
            server.earshot.process.send(SIGTERM)
            try await eventually("the drain") { server.earshot.process.errorsSoFar.contains("seconds=600") }
            #expect(server.earshot.process.isRunning && push.isRunning)
            server.earshot.process.send(SIGTERM)
            #expect(try await server.earshot.process.outcome().status == 0)
        }
    }

    /// Settings that need a restart keep their values, and each reload names them.
    @Test func othersWait() async throws {
        try await ReloadingServer.run { server in
            for _ in 0..<2 {
                let change = try await server.apply(["relay.maxBehind": "9s", "log.format": "json"])
                #expect(change.waiting == ["relay.maxBehind", "log.format"] && change.applied.isEmpty)
            }
            #expect(try await server.call("GET", "server").json()["data"]["needRestart"].list.count == 2)
            let waiting = try await server.api("server/settings")["list"].list.first { $0["setting"].string == "relay.maxBehind" }
            #expect(waiting?["source"].string == "default" && waiting?["needsRestart"].bool == true, "the value in force is the former one")
            try await eventually("the line") {
                server.earshot.process.errorsSoFar.components(separatedBy: "need a restart").count == 3
            }
            #expect(try await server.apply(["log.level": "info"]).waiting.isEmpty)
        }
    }

    /// Rejected whole: what was right in the file is not applied either.
    @Test func badFilesChangeNothing() async throws {
        let good: ReloadingServer.Settings = ["limits.streamName": "100"]
        try await ReloadingServer.run(good) { server in
            func unchanged() async throws {
                let name = String(repeating: "a", count: 60)
                #expect(try await HTTPAnswer.get("\(server.earshot.http)/live/\(name).flv").status != 400)
                #expect(try await server.call("GET", "server").json()["data"]["needRestart"].list.isEmpty)
            }
            let bad = [
                ("limits:\n  streamName: 20\n  conn", ["earshot.yaml:4", "not valid YAML"]),
                ("limits: {streamName: 20", ["earshot.yaml"]),
                ("limits: {streamName: 20, connections: many}", ["earshot.yaml:1", "limits.connections", "many"]),
                ("", ["holds no setting"]),
                ("limits: {streamName: 20}\nrtmps: {certificate: /nowhere/cert.pem}", ["rtmps.key", "rtmps.certificate"]),
            ]
            for (text, words) in bad {
                let answer = try await server.reload(text)
                #expect(answer.status == 409, "\(text): \(answer.text)")
                for word in words { #expect(answer.text.contains(word), "\(text): \(answer.text)") }
                try await unchanged()
                // The console tells of it until a reload succeeds.
                let problem = try await server.api("server")["reloadProblem"].string ?? ""
                for word in words { #expect(problem.contains(word), "\(text): \(problem)") }
            }
            try FileManager.default.removeItem(atPath: server.file)
            let missing = try await server.call("POST", "server/reload", "{}")
            #expect(missing.status == 409 && missing.text.contains("No such file"), "\(missing.text)")
            server.earshot.process.send(SIGHUP)
            try await eventually("the lines") {
                server.earshot.process.errorsSoFar.components(separatedBy: "Settings not reloaded, the running ones stay").count >= bad
                    .count + 3
            }
            try await unchanged()
            #expect(try await server.apply(good).applied.isEmpty)
            #expect(try await server.api("server")["reloadProblem"].isNull)
        }
    }

    /// Reloads all the time while a stream runs: the viewer gets every frame.
    @Test func noFrameIsLost() async throws {
        let source = try await Self.source(12)
        try await ReloadingServer.run(["rooms.policy.cleanStop": "500ms"]) { server in
            try await ClientProcess.during(Probe.packets("\(server.earshot.rtmp)/live/cam1")) { player in
                let push = try ClientProcess(FFmpeg.push(source, to: "\(server.earshot.rtmp)/live/cam1"))
                defer { push.send(SIGKILL) }
                try await eventually("publish and play") {
                    let streams = try await server.streams()
                    return streams[0]["viewers"].int == 1 && streams[0]["state"].string == "live"
                }
                var applied = 0
                while push.isRunning {
                    applied += 1
                    try await server.apply([
                        "rooms.policy.cleanStop": "500ms", "limits.connections": "\(1_000 + applied)",
                        "limits.viewersPerStream": "\(applied + 1)",
                    ])
                }
                #expect(applied >= 3)
                #expect(try await push.outcome().status == 0)
                let expected = try await PacketList.of(file: source)
                let played = PacketList(csv: try await player.outcome().text)
                #expect(played.only("video").packets.last == expected.only("video").packets.last)
                #expect(played.difference(from: expected) == nil || played.tailDifference(of: expected) == nil)
                #expect(server.earshot.process.errorsSoFar.contains("Settings reloaded"))
            }
        }
    }

    /// The command's output, as a person reads it.
    @Test func theCommandSaysWhatChanged() async throws {
        try await Fixture.withDirectory { directory in
            try await ReloadingServer.run(in: directory) { server in
                let token = try CLI.tokenFile(server.earshot.token, in: directory)
                let cli = CLI(server: server.earshot.http, token: token)
                try "{limits: {connections: 77}, relay: {maxBehind: 9s}}".write(toFile: server.file, atomically: true, encoding: .utf8)
                let text = try await cli.text("reload")
                #expect(text.contains("applied        limits.connections  ") && text.contains("→ 77"), "\(text)")
                #expect(text.contains("needs restart  relay.maxBehind  5s → 9s"), "\(text)")
                let json = try await cli.json("reload")
                #expect(json["applied"].list.isEmpty && json["needRestart"][0]["setting"].string == "relay.maxBehind")
                try "nonsense: {".write(toFile: server.file, atomically: true, encoding: .utf8)
                let refused = try await cli("reload")
                #expect(refused.status == 4 && refused.errors.contains("running ones stay"), "\(refused.errors)")
                try await eventually("three lines") {
                    try await server.call("GET", "audit?operation=reloadSettings").json()["data"]["list"].count == 3
                }
            }
        }
    }

    @Test func checkWarnsOfOpenDoors() async throws {
        try await Fixture.withDirectory { directory in
            let file = directory.appendingPathComponent("open.yaml").path
            try "{rtmp: {listen: \"0.0.0.0:1935\"}, access: {publishFrom: any, playFrom: any, apiFrom: any}}".write(
                toFile: file, atomically: true, encoding: .utf8)
            let check = try await EarshotProcess.command(["config", "check", "--config", file])
            #expect(check.status == 0 && check.text == "The configuration is valid.\n", "\(check.text)")
            #expect(check.errors.hasPrefix("warning: everybody may push"), "\(check.errors)")
        }
    }
}
