import ArgumentParser
import EarshotServer
import LibC
import Logging
import ServerConfiguration
import Support
import Synchronization

/// The settings with flags of their own. All others are in the file or the environment.
struct SettingsOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Where to listen for RTMP.", valueName: "HOST:PORT"))
    var rtmp: String?
    @Option(help: ArgumentHelp("Where to listen for HTTP: API and health checks.", valueName: "HOST:PORT"))
    var http: String?
    @Option(help: ArgumentHelp("The data directory: database, keys and, by default, recordings and pictures.", valueName: "DIR"))
    var data: String?
    @Option(help: ArgumentHelp("A YAML file with settings; `earshot config print` shows them all.", valueName: "FILE"))
    var config: String?

    func load() throws -> LoadedConfig {
        try Self.load(file: self.config, flags: ["rtmp.listen": self.rtmp, "http.listen": self.http, "data.directory": self.data])
    }

    /// The settings of the file, this process's environment, and flags, by path.
    ///
    /// - Throws: ``ConfigFailure``.
    static func load(file: String?, flags: [String: String?]) throws -> LoadedConfig {
        var environment: [String: String] = [:]
        var entry = environ
        while let text = entry.pointee {
            let parts = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { environment[String(parts[0])] = String(parts[1]) }
            entry += 1
        }
        do throws(ConfigError) {
            return try ServerConfig.load(
                file: file, environment: environment, flags: flags.compactMapValues { $0 },
                defaults: ["data.directory": DataDirectory.standard])
        } catch {
            throw ConfigFailure(error: error)
        }
    }
}

/// All mistakes in a configuration, for the terminal.
struct ConfigFailure: Error, CustomStringConvertible {
    let error: ConfigError
    var description: String { "the configuration has mistakes:\n\(self.error)\nRun `earshot config print` to see every setting." }
}

/// Refuses a file that is being written or has lost its content: it would silently restore the defaults.
private struct EmptyConfigFile: Error, CustomStringConvertible {
    let file: String
    var description: String {
        "\(self.file): holds no setting, but did before; expected the whole file (to return to defaults, restart)"
    }
}

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Run the server.")

    @OptionGroup var settings: SettingsOptions

    func run() async throws {
        Server.prepareProcess()
        let loaded = try self.settings.load()
        var config = loaded.config
        let log = LogOutput.logger(config.log)
        // Runs before the command's error is printed.
        defer { AtExit.flushAll() }
        try OpenFiles.prepare(for: &config.limits, log)
        try AddressSpace.fit(&config.limits, log)
        EventLoops.matchAvailableCores()
        // Whether the newest accepted settings came from a file.
        let hadSettings = Atomic(loaded.isFromFile)
        let reloading = Reloading(
            settle: { [file = self.settings.config] in if let file { await ConfigFile.waitUntilWritten(file) } },
            read: { [settings = self.settings] in
                let loaded: LoadedConfig
                do {
                    loaded = try settings.load()
                } catch let failure as ConfigFailure {
                    // Logs one line for each mistake, without the text for the terminal.
                    throw failure.error
                }
                if let file = settings.config, hadSettings.load(ordering: .relaxed), !loaded.isFromFile {
                    throw EmptyConfigFile(file: file)
                }
                var config = loaded.config
                try OpenFiles.fit(&config.limits, log)
                try AddressSpace.fit(&config.limits, log)
                hadSettings.store(loaded.isFromFile, ordering: .relaxed)
                return config
            },
            setLogLevel: { LogOutput.set($0) }, flushLog: { AtExit.flushAll() })
        let server = try Server(config: config, log: log, reloading: reloading)
        await server.trapSignals()
        let addresses = try await server.bind()
        let code = await server.consoleCode()
        try await server.run { [config] in
            log.info("earshot \(ServerVersion.text) has started", metadata: Banner.facts(addresses, config))
            // Readers of JSON logs have the line above.
            guard config.log.format == .text else { return }
            Banner.print(addresses, config, tokenFile: server.tokenFile, consoleCode: code)
        }
        server.operations.leave()
    }
}

struct Config: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check or show the settings.", subcommands: [Check.self, Show.self, Reference.self])

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Check the settings and list every mistake.")
        @OptionGroup var settings: SettingsOptions

        func run() throws {
            let config = try self.settings.load().config
            print("The configuration is valid.")
            for warning in ConfigWarnings.of(config) { Console.complain("warning: \(warning).") }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "print", abstract: "Print every setting as YAML, with its value, source and meaning.")
        @OptionGroup var settings: SettingsOptions

        func run() throws {
            print(try self.settings.load().yaml, terminator: "")
        }
    }

    struct Reference: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the reference of all settings as Markdown: defaults, accepted values, meaning.")

        func run() { print(ConfigReference.markdown, terminator: "") }
    }
}
