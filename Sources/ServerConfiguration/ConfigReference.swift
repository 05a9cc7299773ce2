/// The reference of all settings, made from their table: `docs/configuration.md`.
package enum ConfigReference {
    /// A table for each section. Ends with a line break.
    package static var markdown: String {
        let defaults = ServerConfig()
        var lines = [
            "# Configuration",
            "",
            "Every setting of `earshot serve`, made by `earshot config reference`. Settings come from a YAML file (`--config FILE`), from the",
            "environment, and from flags; flags win over the environment, and that over the file. `earshot config check` lists every setting",
            "with a mistake, `earshot config print` shows what is in effect and where it came from. [earshot.yaml](../deploy/earshot.yaml)",
            "is an example.",
            "",
            "The environment variable of a setting is `EARSHOT_` and its path in capitals: `relay.gopCache.maxBytes` is",
            "`EARSHOT_RELAY_GOP_CACHE_MAX_BYTES`. Lists are separated by commas there.",
            "",
            "Changed settings marked `reload` take effect at SIGHUP or `earshot reload`, for what begins after that: connections, rooms, files, talk",
            "channels, the HLS of a stream. Those marked `restart` need one.",
        ]
        var section: Substring?
        for setting in ConfigSetting.all {
            let next = setting.path.prefix { $0 != "." }
            if next != section {
                section = next
                lines += ["", "## \(next)", "", "| setting | default | accepts | meaning | applies at |", "|---|---|---|---|---|"]
            }
            let values = setting.values(defaults)
            let shown = values.map { setting.isList ? "[\($0.joined(separator: ", "))]" : $0.joined() }
            let flag = setting.flag.map { " (`\($0)`)" } ?? ""
            let cells = [
                "`\(setting.path)`\(flag)", shown.map { "`\($0)`" } ?? "not set", setting.expected, setting.help, setting.applies.rawValue,
            ]
            lines.append("| " + cells.map(Self.cell).joined(separator: " | ") + " |")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// A bar would end the cell (GitHub Flavored Markdown 4.10), and an asterisk might begin emphasis.
    private static func cell(_ text: String) -> String {
        text.reduce(into: "") { result, character in
            if character == "|" || character == "*" && !text.hasPrefix("`") { result += "\\" }
            result.append(character)
        }
    }
}
