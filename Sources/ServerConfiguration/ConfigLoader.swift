import Support

/// A checked configuration and the origin of each value. A plain value.
package struct LoadedConfig: Sendable {
    package let config: ServerConfig
    /// Origins by dotted path; a default has none.
    package let origins: [String: ConfigOrigin]
    /// What is valid and probably a mistake, a line each.
    package let warnings: [String]

    /// Whether any value comes from a file.
    package var isFromFile: Bool { origins.values.contains { if case .file = $0 { true } else { false } } }

    package func origin(of path: String) -> ConfigOrigin { origins[path] ?? .defaults }

    /// The same with values that were fitted to the machine.
    package func replacing(_ config: ServerConfig) -> LoadedConfig {
        LoadedConfig(config: config, origins: origins, warnings: warnings)
    }
}

extension ServerConfig {
    /// Loads and checks defaults, the YAML file, `EARSHOT_…` variables and flags (by dotted path).
    ///
    /// In this order: each source overrides the one before. `defaults`, by dotted path, depend on the machine. Reads the file and the certificates; blocks.
    ///
    /// - Throws: `ConfigError` with every mistake found. A value that a later source overrides must be valid as well.
    package static func load(
        file: String?, environment: [String: String], flags: [String: String], defaults: [String: String] = [:]
    ) throws(ConfigError) -> LoadedConfig {
        var loader = ConfigLoader()
        loader.read(defaults: defaults)
        if let file { loader.read(file: file) }
        loader.read(environment: environment)
        loader.read(flags: flags)
        return try loader.finish()
    }
}

private struct ConfigLoader {
    private var config = ServerConfig()
    private var origins: [String: ConfigOrigin] = [:]
    private var mistakes: [ConfigError.Mistake] = []
    private var warnings: [String] = []
    /// Paths with a mistake: checks across values skip them.
    private var refused: Set<String> = []

    mutating func read(file: String) {
        do throws(ValueProblem) {
            let bytes = try ConfigFile.read(file)
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw ValueProblem("cannot read \(file): it is not UTF-8 text")
            }
            let yaml = ConfigYAML(text, file: file)
            for mistake in yaml.mistakes { report(mistake) }
            for entry in yaml.entries { assign(entry.setting, entry.values, .file(file, line: entry.line)) }
        } catch {
            report(.init(path: nil, problem: error.description, origin: nil))
        }
    }

    mutating func read(defaults: [String: String]) {
        for (path, value) in defaults.sorted(by: { $0.key < $1.key }) {
            guard let setting = ConfigSetting.byPath[path] else { continue }
            assign(setting, setting.split(value), .defaults)
        }
    }

    mutating func read(environment: [String: String]) {
        for (name, value) in environment.sorted(by: { $0.key < $1.key }) where name.hasPrefix("EARSHOT_") {
            if let setting = ConfigSetting.byEnvironmentName[name] {
                // Compose files and shells often pass an unset variable as an empty one.
                if !value.isEmpty { assign(setting, setting.split(value), .environment(name)) }
            } else if let problem = Self.unknownVariable(name, value) {
                report(.init(path: nil, problem: "\(name): \(problem)", origin: .environment(name)))
            } else if !Self.ofOthers.contains(name), !Self.isServiceLink(name, value) {
                warnings.append("\(name) is no setting's variable and is not read")
            }
        }
    }

    mutating func read(flags: [String: String]) {
        for (path, value) in flags.sorted(by: { $0.key < $1.key }) {
            if let setting = ConfigSetting.byPath[path] {
                assign(setting, setting.split(value), .flag(setting.flagName))
            } else {
                report(.init(path: path, problem: ConfigSuggestion.unknown(path: path), origin: .flag(path)))
            }
        }
    }

    consuming func finish() throws(ConfigError) -> LoadedConfig {
        let refused = refused  // a copy, so that one finding does not hide another
        for finding in ConfigChecks.findings(config) where refused.isDisjoint(with: finding.paths) {
            report(.init(path: finding.path, problem: finding.problem, origin: origins[finding.path] ?? .defaults))
        }
        guard mistakes.isEmpty else { throw ConfigError(mistakes: mistakes) }
        return LoadedConfig(config: config, origins: origins, warnings: warnings + ConfigWarnings.of(config))
    }

    private mutating func assign(_ setting: ConfigSetting, _ values: [String], _ origin: ConfigOrigin) {
        do throws(ValueProblem) {
            try setting.assign(values, &config)
            origins[setting.path] = origin
            if let warning = ConfigWarnings.ofUnit(setting, values) { warnings.append(warning) }
        } catch {
            report(.init(path: setting.path, problem: error.description, origin: origin))
        }
    }

    private mutating func report(_ mistake: ConfigError.Mistake) {
        mistakes.append(mistake)
        if let path = mistake.path { refused.insert(path) }
    }

    /// The problem of a misspelt variable; nil for foreign ones. Kubernetes sets `EARSHOT_SERVICE_HOST`, `EARSHOT_PORT_1935_TCP` and
    /// others for a service of that name, so not every unknown variable is a mistake.
    private static func unknownVariable(_ name: String, _ value: String) -> String? {
        guard !Self.isServiceLink(name, value) else { return nil }
        let names = ConfigSetting.all.map(\.environmentName)
        if let meant = Suggestion.nearest(String(name.dropFirst(8)), names.map { String($0.dropFirst(8)) }) {
            return "unknown variable; did you mean EARSHOT_\(meant)?"
        }
        let section = ConfigSetting.sections.contains { !$0.contains(".") && name.hasPrefix("EARSHOT_\($0.uppercased())_") }
        return section ? "unknown variable" : nil
    }

    private static func isServiceLink(_ name: String, _ value: String) -> Bool {
        name.hasSuffix("_SERVICE_HOST") || name.contains("_SERVICE_PORT") || name.contains("_TCP") || name.contains("_UDP")
            || value.hasPrefix("tcp://") || value.hasPrefix("udp://")
    }

    /// Variables of the commands that call a server.
    private static let ofOthers: Set<String> = ["EARSHOT_SERVER", "EARSHOT_TOKEN"]
}
