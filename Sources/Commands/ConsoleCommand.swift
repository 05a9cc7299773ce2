import ArgumentParser
import CommandSupport
import Support

/// `earshot console`: an address that logs a browser in.
struct ConsoleCommand: ServerCommand {
    static let configuration = CommandConfiguration(
        commandName: "console",
        abstract: "Print an address that logs a browser on the server's machine in to the console.",
        discussion: """
            It works once, within five minutes, with the rights of the token that made it. From another machine, open the server's address \
            and log in with a token.

            \(ExitStatus.explanation)
            """)
    @OptionGroup var options: ServerOptions

    func run(_ api: APIClient) async throws {
        let made = try await api.consoleCode()
        if self.options.json {
            try Console.print(made.indented())
        } else {
            try Console.print("\(api.server)/#code=\(made["code"].plain ?? "")")
        }
    }
}
