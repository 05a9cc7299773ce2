import EarshotServer
import Foundation
import Rooms
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

@testable import RoomRegistry

/// `earshot rooms`, against a real server.
@Suite struct CLIRoomsTests {
    private static func withServer<Result: Sendable>(
        _ configure: (inout ServerConfig) -> Void = { _ in }, _ body: @Sendable (TestServer, CLI, URL) async throws -> Result
    ) async throws -> Result {
        try await Fixture.withDirectory { directory in
            try await TestServer.run(configure) { server in try await body(server, try await server.cli(in: directory), directory) }
        }
    }

    /// Every option of creation reaches the server.
    @Test func create() async throws {
        try await Self.withServer { server, cli, _ in
            let made = try await cli(
                "rooms", "create", "--room-id", "stage", "--title", "前門 \"1\"", "--owner", "anna", "--device-uid", "cam42", "--slots", "2",
                "--app",
                "live",
                "--private", "--custom", #"{"colour":{"r":1}}"#, "--policy", "grace=1m30s", "--policy", "heartbeatMisses=5")
            #expect(made.status == 0 && made.text == "stage\n" && made.errors.contains("earshot rooms push-url stage"), "\(made.errors)")
            let room = try await server.rooms.room("stage")
            #expect(
                room.title == "前門 \"1\"" && room.owner == "anna" && room.deviceUid == "cam42" && room.slots.count == 2 && !room.isPublic)
            #expect(room.custom == #"{"colour":{"r":1}}"# && room.policy.graceMs == 90_000 && room.policy.heartbeatMisses == 5)
            let shown = try await cli.json("rooms", "show", "stage")
            #expect(shown["custom"]["colour"]["r"].int == 1 && shown["policy"]["grace"].int == 90 && shown["streams"].count == 2)
            let text = try await cli.text("rooms", "show", "stage")
            for part in [
                "stage", "created, for ", "前門 \"1\"", "anna", "cam42", "private", "grace=90s", "heartbeatMisses=5", #"{"colour":{"r":1}}"#,
                "live/stage-2",
            ] {
                #expect(text.contains(part), "\(part) in \(text)")
            }
            // Without a name the server chooses one; --quiet prints nothing else.
            let quiet = try await cli("rooms", "create", "--quiet")
            #expect(quiet.status == 0 && quiet.errors.isEmpty && quiet.lines.count == 1)
            _ = try await server.rooms.room(try #require(quiet.lines.first))
            let json = try await cli.json("rooms", "create", "--title", "third")
            #expect(json["title"].string == "third" && json["state"].string == "created")
        }
    }

    /// A room's whole life by commands: the output of each, and the exit status of impossible ones.
    @Test func life() async throws {
        try await Self.withServer { server, cli, _ in
            _ = try await cli.text("rooms", "create", "--room-id", "r1")
            let renewed = try await cli.text("rooms", "renew", "r1", "--by", "10m")
            #expect(renewed.hasPrefix("room r1 is created; renewed until ") && renewed.contains("(in 14m"), "\(renewed)")
            #expect(
                try await cli.text("rooms", "forbid", "r1", "--for", "2h", "--reason", "too loud").hasPrefix(
                    "room r1 is forbidden until 20"))
            let ban = try await server.rooms.room("r1")
            #expect(ban.state == .forbidden && ban.forbidReason == "too loud")
            let left = try #require(ban.forbiddenUntil) - Int64(Date().timeIntervalSince1970 * 1_000)
            #expect((7_100_000...7_200_000).contains(left), "\(left)")
            #expect(try await cli.text("rooms", "show", "r1").contains("too loud"))
            let again = try await cli("rooms", "renew", "r1")
            #expect(
                again.status == 4 && again.text.isEmpty && again.errors.contains("r1 is forbidden; renew is possible when"),
                "\(again.errors)")
            #expect(try await cli.text("rooms", "resume", "r1") == "room r1 is created\n")
            #expect(try await cli("rooms", "resume", "r1").status == 4)
            let until = try await cli.json("rooms", "forbid", "r1", "--forbidden-until", "\(Self.inDays(3))")
            #expect(until["forbiddenUntil"].string == "\(Self.inDays(3)).000Z")
            _ = try await cli.text("rooms", "resume", "r1")
            #expect(try await cli("rooms", "forbid", "r1", "--forbidden-until", "2020-01-01").status == 1)
            #expect(try await cli("rooms", "forbid", "r1", "--for", "91d").status == 1)
            #expect(try await cli.text("rooms", "expire", "r1") == "room r1 is expired\n")
            // Its device's URL would reopen it, unless the room is forbidden.
            #expect(try await cli.text("rooms", "forbid", "r1", "--for", "1h").hasPrefix("room r1 is forbidden until 20"))
            #expect(try await cli.text("rooms", "close", "r1") == "room r1 is closed\n")
            #expect(try await cli("rooms", "expire", "r1").status == 4)
            _ = try await cli.text("rooms", "create", "--room-id", "r2")
            #expect(try await cli("rooms", "close", "r2", "--quiet").text.isEmpty)
            #expect(try await server.rooms.room("r2").state == .closed)
            let url = try await cli("rooms", "push-url", "r2")
            #expect(url.status == 4 && url.text.isEmpty, "\(url.errors)")
            #expect(try await cli.text("rooms", "delete", "r2") == "room r2 is deleted\n")
            let gone = try await cli("rooms", "show", "r2")
            #expect(gone.status == 3 && gone.errors == "earshot: There is no room \"r2\"\n")
            for action in ["close", "expire", "forbid", "resume", "renew", "delete", "push-url", "play-urls", "members"] {
                #expect(try await cli("rooms", action, "none").status == 3, "\(action)")
            }
        }
    }

    /// UTC time in that many days, to the second and without a zone.
    private static func inDays(_ days: Int) -> String {
        let formatter = ISO8601DateFormatter()
        return String(formatter.string(from: Self.start + Double(days) * 86_400).dropLast())
    }
    private static let start = Date()

    @Test func mistakesAreExplained() async throws {
        try await Self.withServer { _, cli, _ in
            _ = try await cli.text("rooms", "create", "--room-id", "r1", "--device-uid", "cam1")
            let taken = try await cli("rooms", "create", "--room-id", "r1")
            #expect(taken.status == 4 && taken.errors.contains("r1"), "\(taken.errors)")
            #expect(try await cli("rooms", "create", "--room-id", "r2", "--device-uid", "cam1").status == 4)
            for (options, words) in [
                (["--room-id", "a/b"], "roomId is \"a/b\""), (["--slots", "9"], "slots is \"9\""),
                (["--title", String(repeating: "x", count: 201)], "title"),
                (["--policy", "graze=5s"], "did you mean grace"), (["--policy", "grace=25h"], "policy.grace"), (["--owner", ""], "owner"),
            ] {
                let outcome = try await ClientProcess.run(try cli.line(["rooms", "create"] + options))
                #expect(outcome.status == 1 && outcome.text.isEmpty && outcome.errors.contains(words), "\(outcome.errors)")
            }
            for id in ["..", "../../healthz", "a b", "r1?x=1", "r1#", "%2e%2e", "r1/close", "前", "\n"] {
                let outcome = try await cli("rooms", "show", id)
                #expect(outcome.status == 1 || outcome.status == 3, "\(id): \(outcome.status) \(outcome.errors)")
                #expect(outcome.text.isEmpty && outcome.errorLines.count <= 2, "\(outcome.errors)")
            }
            for query in [["--state", "nonsense"], ["--sort", "size"], ["--q", ""]] {
                #expect(try await ClientProcess.run(try cli.line(["rooms", "list"] + query)).status == 1, "\(query)")
            }
        }
    }

    @Test func rolesAreHeeded() async throws {
        try await Self.withServer { server, admin, directory in
            _ = try await admin.text("rooms", "create", "--room-id", "r1")
            let app = try await server.cli(.backend, in: directory)
            let ops = try await server.cli(.ops, in: directory)
            #expect(try await app("rooms", "show", "r1").status == 0)
            for (cli, arguments) in [(app, ["rooms", "forbid", "r1"]), (app, ["streams", "list"]), (ops, ["rooms", "delete", "r1"])] {
                let outcome = try await ClientProcess.run(try cli.line(arguments))
                #expect(outcome.status == 5 && outcome.errors.contains("role"), "\(outcome.errors)")
            }
            #expect(try await ops("rooms", "forbid", "r1").status == 0)
        }
    }

    @Test func lists() async throws {
        try await Self.withServer { server, cli, _ in
            for (id, title, owner) in [("b", "前門", "anna"), ("a", "Back door", "bert"), ("c", "Café", "anna")] {
                var new = NewRoom(policy: RoomPolicy())
                new.id = try RoomID(checking: id)
                (new.title, new.owner, new.isPublic) = (title, owner, id != "c")
                _ = try await server.rooms.create(new, by: Actor("test"))
            }
            _ = try await server.rooms.apply(.close, to: "c", action: "close", by: Actor("test"))
            func ids(_ options: String...) async throws -> [String] {
                try await ClientProcess.run(try cli.line(["rooms", "list", "--quiet"] + options)).lines
            }
            #expect(try await ids() == ["c", "a", "b"])
            #expect(try await ids("--sort", "id") == ["a", "b", "c"])
            #expect(try await ids("--state", "closed") == ["c"])
            #expect(try await ids("--owner", "anna", "--sort", "id") == ["b", "c"])
            #expect(try await ids("--public", "--sort", "title") == ["a", "b"])
            #expect(try await ids("--q", "back do") == ["a"])
            #expect(try await ids("--limit", "1") == ["c"])
            let table = try await cli.text("rooms", "list", "--sort", "id").split(separator: "\n")
            #expect(table.count == 4 && table[0].hasPrefix("ROOM  STATE "))
            let column = try #require(table[0].range(of: "TITLE").map { table[0].distance(from: table[0].startIndex, to: $0.lowerBound) })
            for (line, title) in zip(table.dropFirst(), ["Back door", "前門", "Café"]) { #expect(line.dropFirst(column) == title, "\(line)") }
        }
    }

    /// More rooms than a page holds: each is listed once.
    @Test func allPages() async throws {
        try await Self.withServer { server, cli, _ in
            for index in 0..<405 {
                var new = NewRoom(policy: RoomPolicy())
                new.id = try RoomID(checking: "room\(index)")
                _ = try await server.rooms.create(new, by: Actor("test"))
            }
            let ids = try await cli.text("rooms", "list", "--all", "--quiet").split(separator: "\n").map(String.init)
            #expect(ids.count == 405 && Set(ids) == Set((0..<405).map { "room\($0)" }))
            let json = try await cli.json("rooms", "list", "--all", "--sort", "id")
            #expect(json["total"].int == 405 && json["list"].list.compactMap { $0["roomId"].string } == ids.sorted())
            let part = try await cli("rooms", "list")
            #expect(part.lines.count == 51 && part.errors == "50 of 405 rooms; --all shows them all\n", "\(part.errors)")
        }
    }

    @Test func members() async throws {
        try await Self.withServer { server, cli, _ in
            _ = try await cli.text("rooms", "create", "--room-id", "r1")
            for (user, nick) in [("zoe", "Zoë"), ("adam", "아담")] { _ = try await server.rooms.join("r1", user: user, nick: nick) }
            let table = try await cli.text("rooms", "members", "r1").split(separator: "\n")
            #expect(table.count == 3 && table[0].hasPrefix("USER") && table[1].hasPrefix("adam") && table[1].hasSuffix("아담"), "\(table)")
            #expect(try await cli.text("rooms", "members", "r1", "--quiet") == "adam\nzoe\n")
            #expect(try await cli.json("rooms", "members", "r1")["list"][1]["nick"].string == "Zoë")
        }
    }

    @Test func urls() async throws {
        try await Self.withServer { server, cli, _ in
            _ = try await cli.text("rooms", "create", "--room-id", "r1", "--slots", "2")
            let push = try await cli.text("rooms", "push-url", "r1", "--quiet", "--slot", "2")
            #expect(push.hasPrefix("\(server.rtmp)/live/r1-2?txSecret=") && push.split(separator: "\n").count == 1, "\(push)")
            let jwt = try await cli.text("rooms", "push-url", "r1", "--scheme", "jwt", "--lifetime", "1h")
            for part in [
                "stream     live/r1\n", "rtmp       \(server.rtmp)/live/r1?token=", "server     ", "streamKey  r1?token=",
            ] {
                #expect(jwt.contains(part), "\(part) in \(jwt)")
            }
            let expires = try await cli.json("rooms", "push-url", "r1", "--lifetime", "1h")["expiresAt"].string.map { "\($0.dropLast(5))Z" }
            let left = try #require(expires.flatMap { ISO8601DateFormatter().date(from: $0) }).timeIntervalSinceNow
            #expect((3_500...3_601).contains(left), "\(left)")
            let play = try await cli.text("rooms", "play-urls", "r1", "--quiet").split(separator: "\n")
            #expect(
                play.count == 2 && play[0].hasPrefix("\(server.rtmp)/live/r1?") && play[1].hasPrefix("\(server.rtmp)/live/r1-2?"), "\(play)"
            )
            let all = try await cli.text("rooms", "play-urls", "r1")
            #expect(all.contains("\n\nslot     2\n") && all.contains("\n\nstream   talk/r1/mix\n"), "\(all)")
            #expect(try await cli("rooms", "push-url", "r1", "--slot", "3").status == 1)
            #expect(try await cli("rooms", "push-url", "r1", "--scheme", "rot13").status == 1)
            #expect(try await cli("rooms", "push-url", "r1", "--lifetime", "31d").status == 1)
            // URLs in listings for everybody are not signed.
            let shown = try await cli.text("rooms", "show", "r1") + (try await cli.text("rooms", "list", "--json"))
            #expect(!shown.contains("txSecret") && !shown.contains("token="))
        }
    }

    /// The kind of credential, its lifetime and its user.
    @Test func urlsAreSignedAsAsked() async throws {
        try await Self.withServer { _, cli, _ in
            _ = try await cli.text("rooms", "create", "--room-id", "r1", "--device-uid", "EAR-7")
            let play = try await cli.json("rooms", "play-urls", "r1", "--user-id", "alice", "--lifetime", "10m")
            #expect(play["streams"][0]["rtmp"].string?.contains("?token=ey") == true)
            let left = Double(play["streams"][0]["expiresAt"].ms) / 1_000 - Date().timeIntervalSince1970
            #expect((500...601).contains(left), "\(left)")
            #expect(try await cli.text("rooms", "play-urls", "r1", "--scheme", "txSecret", "--quiet").contains("txSecret="))
            #expect(try await cli.text("rooms", "play-urls", "r1", "--scheme", "jwt", "--quiet").contains("token="))
            #expect(try await cli.text("rooms", "push-url", "r1", "--by-device", "--quiet").contains("/live/EAR-7?txSecret="))
            #expect(try await cli.text("rooms", "push-url", "r1", "--user-id", "alice", "--quiet").contains("/live/r1?token="))
        }
    }
}
