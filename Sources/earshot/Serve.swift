import ArgumentParser
import Commands
import CommandSupport
import EarshotServer
import LibC
import Logging
import ServerConfiguration
import Support
import Synchronization

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
                return loaded.replacing(config)
            },
            setLogLevel: { LogOutput.set($0) }, flushLog: { AtExit.flushAll() })
        let server = try Server(config: config, origins: loaded.origins, log: log, reloading: reloading)
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
