package import ArgumentParser
import LibC
package import ServerConfiguration
import Support

/// The settings with flags of their own. All others are in the file or the environment.
package struct SettingsOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Where to listen for RTMP.", valueName: "HOST:PORT"))
    package var rtmp: String?
    @Option(help: ArgumentHelp("Where to listen for HTTP: API and health checks.", valueName: "HOST:PORT"))
    package var http: String?
    @Option(help: ArgumentHelp("The data directory: database, keys and, by default, recordings and pictures.", valueName: "DIR"))
    package var data: String?
    @Option(help: ArgumentHelp("A YAML file with settings; `earshot config print` shows them all.", valueName: "FILE"))
    package var config: String?

    package init() {}

    package func load() throws -> LoadedConfig {
        try Self.load(file: self.config, flags: ["rtmp.listen": self.rtmp, "http.listen": self.http, "data.directory": self.data])
    }

    /// The settings of the file, this process's environment, and flags, by path.
    ///
    /// - Throws: ``ConfigFailure``.
    package static func load(file: String?, flags: [String: String?]) throws -> LoadedConfig {
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
package struct ConfigFailure: Error, CustomStringConvertible {
    package let error: ConfigError
    package var description: String { "the configuration has mistakes:\n\(self.error)\nRun `earshot config print` to see every setting." }
}
