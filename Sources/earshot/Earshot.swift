import ArgumentParser
import Support

/// The command line. It holds commands only; the server does all the work.
@main
struct Earshot: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "earshot",
        abstract: "A live-streaming relay: devices push RTMP, viewers play it.",
        discussion: """
            Without a command, earshot runs the server. The commands of the second group call a running server: the one on this machine, \
            or the one that --server names.

            EXAMPLES
              earshot
              earshot rooms list --state live
              earshot events follow

            \(ExitStatus.explanation)
            """,
        version: "earshot \(ServerVersion.text)",
        groupedSubcommands: [
            CommandGroup(
                name: "The server:",
                subcommands: [
                    Serve.self, Config.self, APICommand.self, TokenCommand.self, KeysCommand.self, StoreCommand.self, DoctorCommand.self,
                    HealthCommand.self, ReloadCommand.self, DrainCommand.self,
                ]),
            CommandGroup(
                name: "Commands for a running server:",
                subcommands: [
                    RoomsCommand.self, StreamsCommand.self, SessionsCommand.self, EventsCommand.self, RecordingsCommand.self,
                    TalkCommand.self,
                    RelaysCommand.self, CallbacksCommand.self, WebhooksCommand.self, AuditCommand.self,
                    GatheringsCommand.self, NodesCommand.self, SelfcheckCommand.self, StatsCommand.self, ConsoleCommand.self,
                ]),
        ],
        defaultSubcommand: Serve.self)

    /// Runs on the process's first thread up to the first suspension (SE-0323).
    @MainActor static func main() async {
        NextProgram.rememberParentDeathSignal()
        await self.parseAndRun()
    }

    private nonisolated static func parseAndRun() async {
        var command: any ParsableCommand
        do {
            command = try await Self.asyncParseAsRoot()
        } catch {
            // A mistyped command looks like a mistake of another one.
            guard Self.exitCode(for: error) == .validationFailure,
                let mistake = CommandSuggestion.mistake(in: Array(CommandLine.arguments.dropFirst()), of: Self.self)
            else { Self.exit(withError: error) }
            Self.exit(withError: ValidationError(mistake))
        }
        do {
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch {
            Self.exit(withError: error)
        }
    }
}
