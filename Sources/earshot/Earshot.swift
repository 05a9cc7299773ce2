import ArgumentParser
import EarshotServer

/// The command line. Commands only; everything they do is the server's.
@main
struct Earshot: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "earshot",
        abstract: "A live-streaming relay: devices push RTMP, viewers play it.",
        subcommands: [Serve.self, Config.self],
        defaultSubcommand: Serve.self)
}
