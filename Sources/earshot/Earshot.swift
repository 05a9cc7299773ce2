import ArgumentParser
import EarshotServer
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
                    Serve.self, Config.self, APICommand.self, TokenCommand.self, KeysCommand.self, StoreCommand.self,
                ]),
            CommandGroup(
                name: "Commands for a running server:",
                subcommands: [
                    RoomsCommand.self, StreamsCommand.self, SessionsCommand.self, EventsCommand.self, RecordingsCommand.self,
                    TalkCommand.self,
                    RelaysCommand.self, CallbacksCommand.self, WebhooksCommand.self, AuditCommand.self,
                    GatheringsCommand.self, SelfcheckCommand.self, StatsCommand.self, ConsoleCommand.self,
                ]),
        ],
        defaultSubcommand: Serve.self)
}
