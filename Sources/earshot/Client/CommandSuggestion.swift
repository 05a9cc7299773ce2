import ArgumentParser
import Support

/// "Did you mean" for commands. The parser has it for options only: a word that is no command it takes for an argument of the default one.
enum CommandSuggestion {
    /// The mistake in these arguments, if the first word that should name a command of `root` names none.
    static func mistake(in arguments: [String], of root: any ParsableCommand.Type) -> String? {
        var command = root
        var path = ["earshot"]
        for word in arguments {
            // Options and their values follow: what comes after them cannot be told from values.
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
