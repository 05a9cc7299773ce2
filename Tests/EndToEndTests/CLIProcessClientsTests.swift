import Foundation
import TestSupport
import Testing

/// The command line beside `earshot serve`, as two processes on one machine: everyday use.
@Suite struct CLIProcessClientsTests {
    /// Without a token given, the data directory's first token is used.
    @Test func theFirstTokenIsFound() async throws {
        try await Fixture.withDirectory { directory in
            try await EarshotProcess.serve(data: directory) { earshot in
                let data = directory.appendingPathComponent("data").path
                let cli = CLI(server: earshot.http)
                #expect(try await cli("rooms", "create", "--room-id", "r1", "--data", data).status == 0)
                let secret = try String(contentsOfFile: "\(data)/admin-token", encoding: .utf8).trimmingCharacters(in: .newlines)
                for arguments in [["rooms"], ["rooms", "show", "r1"], ["events", "list", "--json"], ["sessions"], ["selfcheck"]] {
                    let outcome = try await ClientProcess.run(try cli.line(arguments + ["--data", data]))
                    #expect(outcome.status == 0 && !outcome.text.contains(secret), "\(outcome.errors)")
                }
                // A token made beside the running server works at once, until it is revoked.
                let made = try await EarshotProcess.command(["token", "create", "ops-1", "--role", "ops", "--data", data])
                #expect(made.status == 0, "\(made.errors)")
                let ops = CLI(server: earshot.http, token: try CLI.tokenFile(try #require(made.lines.first), in: directory))
                #expect(try await ops("rooms", "list").text.contains("r1"))
                #expect(try await EarshotProcess.command(["token", "revoke", "ops-1", "--data", data]).status == 0)
                try await eventually("the token to be refused") { try await ops("rooms", "list").status == 5 }
                let stranger = try await cli("rooms", "list", "--data", directory.path)
                #expect(stranger.status == 5 && stranger.errors.contains("no token"), "\(stranger.errors)")
            }
        }
    }

    /// kill -9 of the server, three times, while rooms are made: a follower gets every event once and in order.
    @Test func aFollowerOutlivesKilledServers() async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            let address = "127.0.0.1:\(try await FreePort.reserve())"
            let listen = ["--http", address]
            let cli = CLI(server: "http://\(address)", variables: ["EARSHOT_DATA_DIRECTORY": data])
            var follower: ClientProcess?
            defer { follower?.send(SIGKILL) }
            for round in 0..<4 {
                try await EarshotProcess.serve(data: directory, listen) { earshot in
                    if follower == nil { follower = try ClientProcess(try cli.line(["events", "follow", "--after", "0", "--quiet"])) }
                    for index in 0..<5 { _ = try await cli.text("rooms", "create", "--room-id", "r\(round)-\(index)") }
                    if round == 3 {
                        let all = try await cli.text("events", "list", "--all", "--quiet")
                        #expect(all.split(separator: "\n").count >= 20)
                        try await eventually("the follower to have all") { follower?.outputSoFar == Data(all.utf8) }
                    }
                    earshot.process.send(SIGKILL)
                    _ = try await earshot.process.outcome()
                }
            }
            follower?.send(SIGINT)
            let ended = try await follower.orThrow().outcome()
            #expect(ended.status == 0 && ended.errors.contains("connecting again"), "\(ended.errors)")
        }
    }
}
