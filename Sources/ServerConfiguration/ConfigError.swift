/// Every mistake found in a configuration; the description has one line for each.
package struct ConfigError: Error, Equatable, CustomStringConvertible {
    /// One mistake, and where it was written.
    package struct Mistake: Sendable, Equatable, CustomStringConvertible {
        /// Dotted path of the setting; nil when the mistake concerns the whole file.
        package var path: String?
        package var problem: String
        package var origin: ConfigOrigin?

        package var description: String {
            (path.map { "\($0): " } ?? "") + problem + (origin.map { " (\($0))" } ?? "")
        }
    }

    package let mistakes: [Mistake]

    package var description: String { mistakes.map(\.description).joined(separator: "\n") }
}

/// The source of a value.
package enum ConfigOrigin: Sendable, Hashable, CustomStringConvertible {
    case defaults
    /// `line` counts from 1.
    case file(String, line: Int?)
    case environment(String)
    /// The flag as typed, or the dotted path of a setting without one.
    case flag(String)

    package var description: String {
        switch self {
        case .defaults: "default"
        case .file(let path, let line): line.map { "\(path):\($0)" } ?? path
        case .environment(let name): "environment \(name)"
        case .flag(let name): "flag \(name)"
        }
    }
}
