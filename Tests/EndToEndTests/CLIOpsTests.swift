import EarshotServer
import Foundation
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import RoomRegistry
@testable import ServerConfiguration

/// `earshot streams`, `sessions`, `events`, `webhooks deliveries` and `selfcheck`, against real servers with real pushes.
@Suite struct CLIOpsTests {
    /// Pushes and plays by the command line's URLs. Its commands watch, kick, drop and forbid.
    @Test func aRunningStream() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 60)
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in
                let cli = try await server.cli(in: directory)
                _ = try await cli.text("rooms", "create", "--room-id", "cam1", "--title", "Front door")
                func url(_ command: String) async throws -> String {
                    try await cli.text("rooms", command, "cam1", "--quiet").trimmingCharacters(in: .newlines)
                }
                let push = try ClientProcess(FFmpeg.pushForEver(source, to: try await url("push-url")))
                defer { push.send(SIGKILL) }
                // Sessions are listed in the order in which they came.
                try await eventually("the push") { try await cli.json("sessions", "list")["total"].int == 1 }
                let player = try ClientProcess(Probe.packets(try await url("play-urls")))
                defer { player.send(SIGKILL) }
                try await eventually("stream, player and figures") {
                    let stream = try await cli.json("streams", "list")["list"][0]
                    return stream["viewers"].int == 1 && stream["video"]["keyframeIntervalMs"].int != nil
                }
                let list = try await cli.text("streams").split(separator: "\n")
                #expect(list.count == 2 && list[0].hasPrefix("STREAM     STATE"), "\(list)")
                let words = list[1].split(separator: " ")
                #expect(
                    words.first == "live/cam1" && words.contains("live") && words.contains("320x240") && words.last == "cam1", "\(list)")
                #expect(try await cli.text("streams", "--quiet") == "live/cam1\n")
                #expect(try await cli.text("streams", "--state", "waiting").isEmpty)

                let shown = try await cli.text("streams", "show", "live/cam1")
                for part in ["state        active", "room         cam1", "viewers      1", "320x240", "a keyframe every 1 s"] {
                    #expect(shown.contains(part), "\(part) in \(shown)")
                }
                try await eventually("three seconds of figures") {
                    try await cli("streams", "stats", "live/cam1", "--last", "3s").lines.count == 4
                }
                #expect(try await cli.text("streams", "stats", "live/cam1").hasPrefix("TIME                     VIDEO"))
                let room = try await cli.text("rooms", "list").split(separator: "\n").last ?? ""
                #expect(room.contains("live") && room.contains("1/1") && room.hasSuffix("Front door"), "\(room)")
                #expect(try await cli.text("streams", "published").contains("running"))
                let check = try await cli("selfcheck")
                #expect(
                    check.status == 0 && check.text.contains("COUNTER") && !check.text.contains("WRONG"), "\(check.text) \(check.errors)")

                let sessions = try await cli.json("sessions", "list", "--role", "player")
                let id = try #require(sessions["list"][0]["sessionId"].int)
                #expect(sessions["total"].int == 1)
                #expect(try await cli.text("sessions").split(separator: "\n").count == 3)
                // A publisher is behind nothing: the player, which came later, goes first.
                let byDistance = try await cli.json("sessions", "list", "--sort", "behind", "--limit", "1")
                #expect(byDistance["list"].count == 1 && byDistance["list"][0]["sessionId"].int == id && byDistance["next"].isNull)
                #expect(try await cli.json("sessions", "list", "--limit", "1")["list"][0]["sessionId"].int != id)
                #expect(try await cli.text("sessions", "kick", "\(id)") == "session \(id) is ended\n")
                _ = try await player.outcome()
                try await eventually("the session to be gone") { try await cli("sessions", "kick", "\(id)").status == 3 }

                #expect(try await cli.text("streams", "drop", "live/cam1") == "the push of live/cam1 is cut\n")
                #expect(try await push.outcome().status != 0)
                let none = try await cli("streams", "drop", "live/cam1")
                #expect(none.status == 3 && none.errors.contains("nobody pushes live/cam1"), "\(none.errors)")
                let published = try await cli.json("streams", "published", "--stream", "live/cam1", "--from", "2026-01-01")
                #expect(published["list"][0]["stopReason"].string == "dropped")

                #expect(
                    try await cli.text("streams", "forbid", "live/cam1", "--for", "1h", "--reason", "no").hasPrefix(
                        "live/cam1 is forbidden until 20"))
                let refused = try await ClientProcess.run(FFmpeg.push(source, to: try await url("push-url")))
                #expect(refused.status != 0)
                #expect(try await cli.text("streams", "forbidden").contains("live/cam1"))
                #expect(try await cli.text("streams", "show", "live/cam1").contains("state            forbidden"))
                #expect(try await cli.text("streams", "resume", "live/cam1") == "live/cam1 may be pushed to again\n")
                let again = try await cli("streams", "resume", "live/cam1")
                #expect(again.status == 4 && again.errors.contains("not forbidden"), "\(again.errors)")
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: try await url("push-url"))) { _ in
                    try await eventually("the push to be back") { try await cli.json("rooms", "show", "cam1")["state"].string == "live" }
                }
            }
        }
    }

    /// Names with a meaning in a URL, a terminal or a shell.
    @Test(arguments: ["live/a b", "live/a/b", "live/前門", "live/a%2Fb", "live/semi;colon&and"])
    func oddStreamNames(_ name: String) async throws {
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in
                let cli = try await server.cli(in: directory)
                let forbidden = try await cli("streams", "forbid", name)
                #expect(forbidden.status == 0, "\(forbidden.errors)")
                let path = try #require(StreamPath(name))
                #expect(try await server.rooms.ban(of: path) != nil)
                let listed = try await cli.json("streams", "forbidden")["list"][0]
                #expect("\(listed["app"].string ?? "")/\(listed["name"].string ?? "")" == name)
                #expect(try await cli("streams", "resume", name).status == 0)
                #expect(try await server.rooms.ban(of: path) == nil)
            }
        }
    }

    @Test func unknownThings() async throws {
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in
                let cli = try await server.cli(.ops, in: directory)
                for command in [
                    ["streams", "stats", "live/none"], ["streams", "drop", "live/none"], ["sessions", "kick", "99"],
                    ["webhooks", "deliveries", "redeliver", "99"],
                ] {
                    let outcome = try await ClientProcess.run(try cli.line(command))
                    #expect(outcome.status == 3 && outcome.text.isEmpty && !outcome.errors.isEmpty, "\(command): \(outcome.errors)")
                }
                #expect(try await cli.text("streams", "show", "live/none") == "stream  live/none\nstate   inactive\n")
            }
        }
    }

    @Test func events() async throws {
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in
                let cli = try await server.cli(in: directory)
                for id in ["r1", "r2"] { _ = try await cli.text("rooms", "create", "--room-id", id, "--title", "two words") }
                _ = try await cli.text("rooms", "close", "r1")
                let table = try await cli.text("events", "list").split(separator: "\n")
                #expect(table.count == 4 && table[0].hasPrefix("ID  TIME"), "\(table)")
                #expect(table[1].contains("room.created") && table[1].contains(#"title="two words""#), "\(table)")
                #expect(table[3].contains("room.closed  ") && table[3].contains("r1"), "\(table)")
                #expect(try await cli.text("events", "list", "--room-id", "r1", "--quiet") == "1\n3\n")
                #expect(try await cli.text("events", "list", "--after", "2", "--quiet") == "3\n")
                let first = try await cli("events", "list", "--limit", "2", "--quiet")
                #expect(first.text == "1\n2\n")
                #expect(try await cli("events", "list", "--limit", "2").errors == "the first 2 events; --all shows them all\n")
                #expect(try await cli.json("events", "list", "--all")["list"].count == 3)
            }
        }
    }

    @Test func deliveries() async throws {
        try await Fixture.withDirectory { directory in
            try await CannedServer.run({ $0.uri == "/good" ? .json(200, "{}") : .json(500, "{}") }) { receiver, url in
                try await TestServer.run({ config in
                    config.webhooks.urls = ["\(url)/good", "\(url)/bad"]
                    config.outbound.allowPrivate = CIDR.loopback
                }) { server in
                    let cli = try await server.cli(in: directory)
                    _ = try await cli.text("rooms", "create", "--room-id", "r1")
                    try await eventually("a delivery and a failure") {
                        let list = try await cli.json("webhooks", "deliveries", "list")["list"].list
                        return list.contains { $0["state"].string == "delivered" } && list.contains { $0["lastStatus"].int == 500 }
                    }
                    let table = try await cli.text("webhooks", "deliveries").split(separator: "\n")
                    #expect(table.count == 3 && table[0].contains("LAST ERROR") && table.contains { $0.contains(url) }, "\(table)")
                    // The path of a target is often its secret.
                    #expect(!table.contains { $0.contains("/bad") }, "\(table)")
                    let id = try #require(
                        try await cli.json("webhooks", "deliveries", "list", "--state", "delivered")["list"][0]["deliveryId"].int)
                    let before = receiver.requests.count { $0.uri == "/good" }
                    #expect(try await cli.text("webhooks", "deliveries", "redeliver", "\(id)").hasPrefix("delivery \(id) is "))
                    try await eventually("it to come again") { receiver.requests.count { $0.uri == "/good" } > before }
                    #expect(try await cli.text("webhooks", "deliveries", "--room-id", "none", "--quiet").isEmpty)
                }
            }
        }
    }
}
