import ArgumentParser
import CommandSupport
import Support

/// `earshot selfcheck`: compares the server's counters with the things they count.
struct SelfcheckCommand: ServerCommand {
    static let configuration = CommandConfiguration(
        commandName: "selfcheck",
        abstract: "Compare a running server's counters with the things that they count.",
        discussion: """
            The exit status is 1 if a counter is wrong.

            \(ExitStatus.explanation)
            """)
    @OptionGroup var options: ServerOptions

    func run(_ api: APIClient) async throws {
        let check = try await api.get(["selfcheck"])
        let wrong = check["list"].list.filter { $0["ok"].bool != true }
        if self.options.json {
            try Console.print(check.indented())
        } else if self.options.quiet {
            for verdict in wrong { try Console.print(DisplayText.escaped(verdict["name"].plain ?? "-")) }
        } else {
            var table = Table([.left("COUNTER"), .right("COUNTED"), .right("SAYS"), .left("VERDICT"), .text("OF WHAT")])
            for verdict in check["list"].list {
                table.add([
                    .init(verdict["name"].plain), .init(verdict["expected"].plain), .init(verdict["actual"].plain),
                    verdict["ok"].bool == true ? .init("ok", .green) : .init("WRONG", .red), .init(verdict["help"].plain),
                ])
            }
            for line in table.lines(width: Console.width, colour: Console.usesColour) { try Console.print(line) }
        }
        guard wrong.isEmpty, check["ok"].bool != false else {
            throw CommandFailure(.failed, "\(wrong.count) of \(check["list"].list.count) counters are wrong; please report it with --json")
        }
    }
}
