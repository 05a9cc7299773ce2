package import ArgumentParser
import Support

/// Suggests commands ("Did you mean"). The parser suggests options only, and treats an unknown command as an argument of the default one.
package enum CommandSuggestion {
    /// The mistake in these arguments, if the first word that should name a command of `root` names none.
    package static func mistake(in arguments: [String], of root: any ParsableCommand.Type) -> String? {
        var command = root
        var path = ["earshot"]
        for word in arguments {
            // Options and their values follow; beyond them, commands and values look alike.
            guard !word.hasPrefix("-"), word != "help" else { return nil }
            let known = command.configuration.subcommands.map { (type: $0, names: self.names($0)) }
            guard !known.isEmpty else { return nil }
            guard let next = known.first(where: { $0.names.contains(word) }) else {
                let nearest = Suggestion.nearest(word, known.flatMap(\.names))
                let advice = nearest.map { "Did you mean `\((path + [$0]).joined(separator: " "))`?" }
                let shown = DisplayText.escaped(DisplayText.truncated(word, to: 60))
                return "There is no command '\(shown)'. \(advice ?? "`\(path.joined(separator: " ")) --help` lists them.")"
            }
            command = next.type
            path.append(word)
        }
        return nil
    }

    private static func names(_ command: any ParsableCommand.Type) -> [String] { [command._commandName] + command.configuration.aliases }
}
