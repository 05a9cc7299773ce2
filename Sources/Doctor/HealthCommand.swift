package import ArgumentParser
import CommandSupport
import NIOCore
import NIOHTTP1
import ServerConfiguration
import Support

/// `earshot health`: one line and an exit status, for containers and scripts.
package struct HealthCommand: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Ask a running server whether it is alive and ready: one line, for health checks.",
        discussion: """
            Without --server and EARSHOT_SERVER it asks the server on this machine, at the address of the settings: those of --config, and \
            of the EARSHOT_… variables that the server has, too. Needs no token.

            EXIT STATUS
              0   alive and ready
              1   not ready, or no answer
              64  mistake in the command line
            """)
    @Option(help: ArgumentHelp("The server's HTTP address; also read from EARSHOT_SERVER.", valueName: "URL"))
    var server: String?
    @Option(help: ArgumentHelp("The settings of the server on this machine.", valueName: "FILE"))
    var config: String?
    @Flag(help: "Only whether it is alive: a server that drains or has no disk left is.")
    var live = false
    @Option(help: ArgumentHelp("How long to wait for each answer.", valueName: "TIME"))
    var timeout = Span(seconds: 3)

    package init() {}

    package func validate() throws {
        guard self.timeout.milliseconds > 0 else { throw ValidationError("--timeout must be longer than 0.") }
    }

    package func run() async throws {
        Console.ignoreClosedPipes()
        do {
            let address = try self.address()
            let http = DoctorHTTP()
            let (isGood, words) = await self.ask(address, http)
            await http.shutdown()
            try Console.print("\(address) \(words)")
            if !isGood { throw ExitCode(1) }
        } catch is Console.ReaderGone {
            throw ExitCode.success
        } catch let failure as ConfigFailure {
            Console.complain("earshot: \(failure)")
            throw ExitCode(1)
        }
    }

    private func ask(_ address: ServerAddress, _ http: DoctorHTTP) async -> (Bool, String) {
        let seconds = max(1, (self.timeout.milliseconds + 999) / 1_000)
        do {
            let alive = try await http.get("\(address)/healthz", within: seconds)
            guard alive.status == 200 else { return (false, "is not healthy: HTTP \(alive.status)") }
            if self.live { return (true, "is alive") }
            let ready = try await http.get("\(address)/readyz", within: seconds)
            guard ready.status != 200 else { return (true, "is alive and ready") }
            let why = String(buffer: ready.body).split(separator: "\n").first.map { ": \(DisplayText.escaped(String($0)))" } ?? ""
            return (false, "is alive but not ready (HTTP \(ready.status))\(why)")
        } catch {
            return (false, "does not answer: \(DoctorHTTP.words(error))")
        }
    }

    private func address() throws -> ServerAddress {
        let variable = Console.variable("EARSHOT_SERVER").flatMap { $0.isEmpty ? nil : $0 }
        if let text = self.server ?? (self.config == nil ? variable : nil) {
            guard let address = ServerAddress(argument: text) else {
                throw ValidationError("\"\(DisplayText.escaped(text))\" is no address; \(ServerAddress.expected).")
            }
            return address
        }
        let listen = try SettingsOptions.load(file: self.config, flags: [:]).config.http.listen.reachable
        return ServerAddress(argument: "http://\(listen)") ?? .standard
    }
}
