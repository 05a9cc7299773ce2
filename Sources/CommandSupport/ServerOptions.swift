package import ArgumentParser
import Support

/// The data directory of this machine's server. It holds the first token and the token commands' data.
package struct DataDirectoryOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The server's data directory. (default: as for the server: ./earshot-data if it is there, /var/lib/earshot, ~/.local/share/earshot)",
            valueName: "DIR"))
    package var data: String?

    package init() {}

    /// The given path, or the one that the server itself takes from its environment.
    package var path: String {
        var path = self.data ?? Console.variable("EARSHOT_DATA_DIRECTORY").flatMap { $0.isEmpty ? nil : $0 } ?? DataDirectory.standard
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path
    }
}

/// Options of every command that calls a server: its address, token and output.
package struct ServerOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The server's HTTP address; also read from EARSHOT_SERVER. (default: \(ServerAddress.standard))", valueName: "URL"))
    package var server: String?
    @Option(help: ArgumentHelp("A file with the API token. (default: EARSHOT_TOKEN, then DIR/admin-token)", valueName: "FILE"))
    package var tokenFile: String?
    @OptionGroup package var directory: DataDirectoryOption
    @Option(help: ArgumentHelp("How long to wait for an answer.", valueName: "TIME"))
    package var timeout = Span(seconds: 10)
    @Flag(help: "Print the answer's data as JSON, keys in alphabetical order.")
    package var json = false
    @Flag(name: .shortAndLong, help: "Print ids only; commands that change something print nothing.")
    package var quiet = false

    package init() {}

    package func validate() throws {
        guard self.timeout.milliseconds > 0 else { throw ValidationError("--timeout must be longer than 0.") }
        guard !(self.json && self.quiet) else { throw ValidationError("--json and --quiet exclude each other.") }
        _ = try self.address()
        try OptionName.check(ProcessArguments.atStart.dropFirst())
    }

    /// The server's address.
    package func address() throws -> ServerAddress {
        let variable = Console.variable("EARSHOT_SERVER").flatMap { $0.isEmpty ? nil : $0 }
        guard let text = self.server ?? variable else { return .standard }
        guard let address = ServerAddress(argument: text) else {
            let name = self.server == nil ? "EARSHOT_SERVER" : "--server"
            throw ValidationError("\(name) is \"\(DisplayText.escaped(text))\"; \(ServerAddress.expected).")
        }
        return address
    }

    package func client() throws -> APIClient {
        let address = try self.address()
        return try self.client(for: address, dataDirectory: self.directory)
    }

    /// A client for another address than that of the options.
    package func client(for address: ServerAddress, dataDirectory: DataDirectoryOption) throws -> APIClient {
        let token = try AccessToken.find(file: self.tokenFile, dataDirectory: dataDirectory, server: address)
        return APIClient(server: address, token: token, timeout: self.timeout)
    }
}

/// A command that calls a running server.
package protocol ServerCommand: AsyncParsableCommand {
    var options: ServerOptions { get }
    func run(_ api: APIClient) async throws
}

extension ServerCommand {
    package func run() async throws {
        Console.ignoreClosedPipes()
        try await CommandFailure.reporting {
            let api = try self.options.client()
            try await self.run(api)
        }
    }
}
