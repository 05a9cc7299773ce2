import ArgumentParser
import Commands
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

            \(CommandList.exitStatuses)
            """,
        version: "earshot \(ServerVersion.text)",
        groupedSubcommands: [
            CommandGroup(name: "The server:", subcommands: [Serve.self, APICommand.self] + CommandList.ofThisMachine),
            CommandGroup(name: "Commands for a running server:", subcommands: CommandList.ofRunningServer),
        ],
        defaultSubcommand: Serve.self)

    /// Runs on the process's first thread up to the first suspension (SE-0323).
    @MainActor static func main() async {
        AddressSpace.prepare()
        NextProgram.rememberParentDeathSignal()
        await self.parseAndRun()
    }

    private nonisolated static func parseAndRun() async {
        do {
            var command = try await Self.parse(Array(ProcessArguments.atStart.dropFirst()))
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch {
            Self.exit(withError: error)
        }
    }

    /// The command that these arguments name. Throws what the process prints and ends with otherwise.
    nonisolated static func parse(_ arguments: [String]) async throws -> any ParsableCommand {
        do {
            return try await Self.asyncParseAsRoot(arguments)
        } catch {
            // A mistyped command looks like a mistake of another one.
            guard Self.exitCode(for: error) == .validationFailure,
                let mistake = CommandList.mistake(in: arguments, of: Self.self)
            else { throw error }
            throw ValidationError(mistake)
        }
    }
}
