import ArgumentParser
import ServerTestSupport
import Testing

@testable import CommandSupport
@testable import Commands
@testable import Doctor
@testable import earshot

/// Mistakes in the command line, and its help.
@Suite struct CLIUsageTests {
    /// What a process with these arguments prints and ends with, where they are wrong or ask for help.
    private struct Outcome {
        var status: Int32 = 0
        var text = ""
        var errors = ""

        init(_ arguments: [String]) async {
            do {
                var command = try await Earshot.parse(arguments)
                // Help is a command; those of a server are not run.
                if !(command is any AsyncParsableCommand) { try command.run() }
            } catch {
                self.status = Earshot.exitCode(for: error).rawValue
                let message = Earshot.fullMessage(for: error)
                if self.status == 0 { self.text = message } else { self.errors = message }
            }
        }
    }

    @Test(arguments: [
        ["rooms", "show"], ["rooms", "list", "--limit", "0"], ["rooms", "list", "--limit", "many"],
        ["rooms", "forbid", "r1", "--for", "long"],
        ["rooms", "forbid", "r1", "--for", "1h", "--forbidden-until", "2026-12-24"],
        ["rooms", "forbid", "r1", "--forbidden-until", "2026-13-01"],
        ["rooms", "create", "--custom", "[]"], ["rooms", "create", "--custom", "{"], ["rooms", "create", "--policy", "grace"],
        ["rooms", "nothing"],
        ["rooms", "list", "--json", "--quiet"], ["rooms", "list", "--timeout", "0s"], ["rooms", "list", "--token", "earshot_x"],
        ["streams", "drop", "cam1"],
        ["streams", "published", "--from", "noon"], ["sessions", "kick", "one"], ["sessions", "kick", "-1"],
        ["webhooks", "deliveries", "redeliver"],
        ["events", "follow", "--after", "-1"],
    ])
    func usage(_ arguments: [String]) async throws {
        try await CannedServer.run({ _ in .close }) { server, url in
            let outcome = await Outcome(arguments + ["--server", url])
            #expect(outcome.status == 64, "\(outcome.status) \(outcome.errors)")
            #expect(outcome.errors.contains("Error: ") && outcome.errors.contains("Usage: earshot "))
            #expect(outcome.text.isEmpty && server.requests.isEmpty)
        }
    }

    @Test(arguments: [
        [], ["rooms"], ["rooms", "list"], ["rooms", "create"], ["rooms", "forbid"], ["streams"], ["streams", "stats"], ["sessions"],
        ["events"],
        ["events", "follow"], ["token"], ["token", "create"], ["webhooks", "deliveries"], ["selfcheck"],
    ])
    func help(_ command: [String]) async throws {
        let outcome = await Outcome(command + ["--help"])
        #expect(outcome.status == 0 && outcome.errors.isEmpty)
        #expect(outcome.text.hasPrefix("OVERVIEW: ") && outcome.text.contains("USAGE: earshot"))
        // The root command and groups explain the exit statuses.
        if command.count < 2 { #expect(outcome.text.contains("EXIT STATUS") && outcome.text.contains("64  mistake")) }
    }
}
