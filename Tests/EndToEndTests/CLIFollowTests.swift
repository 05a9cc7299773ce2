import EarshotServer
import Foundation
import RoomRegistry
import Rooms
import ServerConfiguration
import ServerTestSupport
import Store
import Support
import TestSupport
import Testing

@testable import Notifications
@testable import Streaming

/// `earshot events follow`, against real servers that stop, come back and forget.
@Suite struct CLIFollowTests {
    private static let actor = Actor("test")

    private static func makeRoom(_ id: String, _ server: TestServer) async throws {
        var new = NewRoom(policy: RoomPolicy())
        new.id = try RoomID(checking: id)
        _ = try await server.rooms.create(new, by: Self.actor)
    }

    private static func ids(_ process: ClientProcess) -> [Int] {
        String(decoding: process.outputSoFar, as: UTF8.self).split(separator: "\n").compactMap { line in
            (try? JSONSerialization.jsonObject(with: Data(line.utf8))).flatMap { JSON($0)["id"].int }
        }
    }

    /// Two servers in turn, on one port and directory. Events in between are delivered afterwards; none repeats.
    @Test func aRestartLosesAndRepeatsNothing() async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            let port = try await FreePort.reserve()
            @Sendable func configure(_ config: inout ServerConfig) { config.http.listen = HostPort(host: "127.0.0.1", port: port) }
            let cli = CLI(server: "http://127.0.0.1:\(port)", token: "\(data)/admin-token")
            let follower = try await TestServer.run(data: data, configure) { server in
                try await Self.makeRoom("before", server)
                let follower = try ClientProcess(try cli.line(["events", "follow", "--json", "--after", "0"]))
                try await eventually("the event from before") { Self.ids(follower) == [1] }
                for index in 0..<50 { try await Self.makeRoom("first\(index)", server) }
                try await eventually("the events of now") { Self.ids(follower).count == 51 }
                return follower
            }
            defer { follower.send(SIGKILL) }
            try await eventually("the loss to be said") { follower.errorsSoFar.contains("connecting again") }
            // These happen while no server runs.
            let registry = try RoomRegistry(.folder(data), settings: .init())
            try await registry.start()
            for index in 0..<250 {
                var new = NewRoom(policy: RoomPolicy())
                new.id = try RoomID(checking: "away\(index)")
                _ = try await registry.create(new, by: Self.actor)
            }
            await registry.stop()
            try await TestServer.run(data: data, configure) { server in
                for index in 0..<50 { try await Self.makeRoom("second\(index)", server) }
                let last = Int(try await server.rooms.lastEventID())
                try await eventually("all events") { Self.ids(follower).last == last }
                #expect(Self.ids(follower) == Array(1...last) && last >= 351)
            }
            // Reported once per loss, however often it retried.
            let said = follower.errorsSoFar.components(separatedBy: "connecting again").count - 1
            #expect((1...2).contains(said), "\(follower.errorsSoFar)")
            follower.send(SIGINT)
            #expect(try await follower.outcome().status == 0)
        }
    }

    @Test func linesAndRoomsAndSignals() async throws {
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in
                let secret = try await server.rooms.createToken(name: "t", role: .backend).secret
                let cli = CLI(server: server.http, token: try CLI.tokenFile(secret, in: directory))
                try await Self.makeRoom("r1", server)
                let all = try ClientProcess(try cli.line(["events", "follow", "--after", "0"]))
                let one = try ClientProcess(try cli.line(["events", "follow", "--room-id", "r1", "--quiet"]))
                let closed = try ClientProcess(try cli.line(["events", "follow", "--kinds", "room.closed,room.deleted", "--quiet"]))
                defer { for process in [all, one, closed] { process.send(SIGKILL) } }
                try await eventually("all to listen") { server.server.parts.events.listeners == 3 }
                try await Self.makeRoom("r2", server)
                _ = try await server.rooms.apply(.close, to: "r1", action: "close", by: Self.actor)
                try await eventually("three lines") { all.outputSoFar.split(separator: UInt8(ascii: "\n")).count == 3 }
                for process in [one, closed] { try await eventually("one line") { !process.outputSoFar.isEmpty } }
                all.send(SIGTERM)
                one.send(SIGINT)
                let told = try await all.outcome()
                #expect(told.status == 0 && told.errors.isEmpty, "\(told.errors)")
                let line = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z #\d+ +room\.(created|closed) +r[12]  reason=(created|closed) by=test/
                for text in told.lines { #expect(text.wholeMatch(of: line) != nil, "\(text)") }
                // Only r1's events, and only those after the follower's start.
                #expect(try await one.outcome().text == "3\n")
                // Only the closing, which is of the kinds asked for; the list takes them too.
                closed.send(SIGINT)
                #expect(try await closed.outcome().text == "3\n")
                #expect(try await cli("events", "list", "--kinds", "room.closed", "--quiet").text == "3\n")
            }
        }
    }

    @Test func refusedFeeds() async throws {
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in
                let made = try await server.rooms.createToken(name: "t", role: .backend)
                let cli = CLI(server: server.http, token: try CLI.tokenFile(made.secret, in: directory))
                let unknown = try await cli("events", "follow", "--room-id", "none")
                #expect(unknown.status == 3 && unknown.errors.contains("none"), "\(unknown.errors)")
                let wrong = CLI(server: server.http, token: try CLI.tokenFile("earshot_wrong", in: directory))
                let refused = try await wrong("events", "follow")
                #expect(refused.status == 5 && refused.errors.contains("--token-file"), "\(refused.errors)")
                // Revoking the token ends the feed: reconnecting would not help.
                let follower = try ClientProcess(try cli.line(["events", "follow"]))
                defer { follower.send(SIGKILL) }
                try await eventually("it to listen") { server.server.parts.events.listeners == 1 }
                _ = try await server.rooms.revokeToken(made.token.id)
                let ended = try await follower.outcome()
                #expect(ended.status == 5 && ended.errors.contains("revoked"), "\(ended.errors)")
            }
        }
    }

    /// A server with new data does not know the events that the follower has seen.
    @Test func aForgetfulServerIsSaid() async throws {
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in
                let secret = try await server.rooms.createToken(name: "t", role: .backend).secret
                let cli = CLI(server: server.http, token: try CLI.tokenFile(secret, in: directory))
                let follower = try ClientProcess(try cli.line(["events", "follow", "--after", "1000", "--quiet"]))
                defer { follower.send(SIGKILL) }
                try await eventually("it to be said") { follower.errorsSoFar.contains("start over") }
                try await Self.makeRoom("r1", server)
                try await eventually("the event") { String(decoding: follower.outputSoFar, as: UTF8.self) == "1\n" }
            }
        }
    }

    /// `… | head` ends the follower.
    @Test func aClosedPipeEndsIt() async throws {
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in
                let secret = try await server.rooms.createToken(name: "t", role: .backend).secret
                let token = try CLI.tokenFile(secret, in: directory)
                for index in 0..<3 { try await Self.makeRoom("r\(index)", server) }
                let command =
                    "\(try EarshotProcess.binary()) events follow --after 0 -q --server \(server.http) --token-file \(token) | head -n 1; echo ${PIPESTATUS[0]}"
                let outcome = try await ClientProcess.run(["bash", "-c", command])
                #expect(outcome.lines == ["1", "0"], "\(outcome.errors)")
            }
        }
    }
}
