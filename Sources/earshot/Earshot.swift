import ArgumentParser
import EarshotServer

/// The command line. It holds commands only; the server does all the work.
@main
struct Earshot: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "earshot",
        abstract: "A live-streaming relay: devices push RTMP, viewers play it.",
        discussion: """
            Without a command it serves. The commands of the second group talk to a running server: the one on this machine, or the one \
            that --server names.

            EXAMPLES
              earshot
              earshot rooms list --state live
              earshot events follow

            \(ExitStatus.explanation)
            """,
        groupedSubcommands: [
            CommandGroup(name: "The server:", subcommands: [Serve.self, Config.self, TokenCommand.self, StoreCommand.self]),
            CommandGroup(
                name: "Talking to a running server:",
                subcommands: [
                    RoomsCommand.self, StreamsCommand.self, SessionsCommand.self, EventsCommand.self, RecordingsCommand.self,
                    TalkCommand.self,
                    RelaysCommand.self, CallbacksCommand.self, SelfcheckCommand.self,
                ]),
        ],
        defaultSubcommand: Serve.self)
}
