import EarshotServer
import Foundation
import RTMPTestSupport
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import RoomRegistry

/// Options named like the API's fields, and output beyond the rooms' states.
@Suite struct CLINamesTests {
    private static func withServer(_ body: @Sendable (TestServer, CLI) async throws -> Void) async throws {
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in try await body(server, try await server.cli(in: directory)) }
        }
    }

    @Test func optionsHaveTheFieldsNames() async throws {
        try await Self.withServer { server, cli in
            #expect(try await cli.text("rooms", "create", "--room-id", "d", "--device-uid", "dev1", "--private", "--quiet") == "d\n")
            #expect(try await server.rooms.room("d").deviceUid == "dev1")
            let until = Instants.text(inSeconds: 7_200)
            let banned = try await cli.json("rooms", "forbid", "d", "--forbidden-until", until)
            #expect(banned["forbiddenUntil"].string == "\(until.dropLast()).000Z")
            let ban = try await cli.text("streams", "forbid", "live/d", "--forbidden-until", until)
            #expect(ban == "live/d is forbidden until \(until)\n")
            #expect(try await cli.text("streams", "show", "live/d").contains("forbidden until"))
            #expect(try await cli.text("streams", "forbidden").contains(until))
            let events = try await cli.json("events", "list", "--room-id", "d")["list"].list
            #expect(!events.isEmpty && events.allSatisfy { $0["roomId"].string == "d" })
        }
    }

    /// One value per option: the parser would silently use the last.
    @Test func anOptionIsGivenOnce() async throws {
        try await Self.withServer { server, cli in
            _ = try await cli.text("rooms", "create", "--room-id", "r1")
            for line in [
                ["rooms", "create", "--room-id", "a", "--room-id", "b"], ["rooms", "create", "--room-id=a", "--room-id=b"],
                ["rooms", "create", "--device-uid", "a", "--device-uid", "b"],
                ["rooms", "push-url", "r1", "--user-id", "a", "--user-id", "b"],
                ["rooms", "forbid", "r1", "--forbidden-until", "2030-01-01T00:00Z", "--forbidden-until", "2030-01-02T00:00Z"],
            ] {
                let outcome = try await ClientProcess.run(try cli.line(line))
                #expect(outcome.status == 64 && outcome.errors.contains("is given twice; expected once"), "\(line): \(outcome.errors)")
            }
            #expect(try await server.api("rooms")["total"].int == 1)
            // A value may look like an option.
            _ = try await cli.text("rooms", "create", "--room-id", "r2", "--title=--room-id")
            #expect(try await server.rooms.room("r2").title == "--room-id")
        }
    }

    @Test func listsAreFilteredByStatesAndVisibility() async throws {
        try await Self.withServer { _, cli in
            _ = try await cli.text("rooms", "create", "--room-id", "a", "--private")
            for id in ["b", "c"] { _ = try await cli.text("rooms", "create", "--room-id", id) }
            _ = try await cli.text("rooms", "close", "c")
            func ids(_ options: [String]) async throws -> [String] {
                try await ClientProcess.run(try cli.line(["rooms", "list", "--sort", "id", "--quiet"] + options)).lines.map { "\($0)" }
            }
            #expect(try await ids([]) == ["a", "b", "c"])
            #expect(try await ids(["--public"]) == ["b", "c"])
            #expect(try await ids(["--no-public"]) == ["a"])
            #expect(try await ids(["--state", "closed,live"]) == ["c"])
            #expect(try await ids(["--state", "created,closed", "--public"]) == ["b", "c"])
        }
    }

    @Test func aRenewalSaysWhatComesBeforeIt() async throws {
        try await Self.withServer { server, cli in
            _ = try await cli.text("rooms", "create", "--room-id", "r1")
            #expect(try await !cli.text("rooms", "renew", "r1", "--by", "1h").contains("before that"))
            _ = try await server.rooms.apply(.heartbeat(sender: nil), to: "r1", action: "heartbeat", by: Actor("test"))
            let renewed = try await cli.text("rooms", "renew", "r1", "--by", "1h")
            #expect(
                renewed.contains("renewed until ") && renewed.contains("but before that ") && renewed.contains("heartbeatLost"),
                "\(renewed)")
            #expect(try await cli.text("rooms", "show", "r1").contains("expires (heartbeats)"))
        }
    }

    @Test func aSessionIsShown() async throws {
        try await Self.withServer { server, cli in
            let player = try await server.player(of: "cam1")
            try await eventually("the session") { try await cli.json("sessions", "list")["total"].int == 1 }
            let id = try #require(try await cli.json("sessions", "list")["list"][0]["sessionId"].int)
            let shown = try await cli.text("sessions", "show", "\(id)")
            #expect(shown.contains("live/cam1") && shown.contains("127.0.0.1") && shown.contains("rtmp"), "\(shown)")
            #expect(try await cli.json("sessions", "show", "\(id)")["sessionId"].int == id)
            await player.close()
            try await eventually("its end") { try await cli("sessions", "show", "\(id)").status == 3 }
        }
    }
}

/// Points in time in the command line's format.
private enum Instants {
    static func text(inSeconds seconds: Double) -> String { ISO8601DateFormatter().string(from: Date() + seconds) }
}
