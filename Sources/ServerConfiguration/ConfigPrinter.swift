import Support

extension LoadedConfig {
    /// The whole configuration as commented YAML that reads back to the same values.
    package var yaml: String {
        var lines = ["# The configuration in effect. After each value: its source. Above it: its meaning and its environment variable."]
        var open: [String] = []
        for setting in ConfigSetting.all {
            let parts = setting.path.split(separator: ".").map(String.init)
            let sections = Array(parts.dropLast())
            let shared = zip(open, sections).prefix { $0 == $1 }.count
            for depth in shared..<sections.count {
                if depth == 0 { lines.append("") }
                lines.append(indent(depth) + sections[depth] + ":")
            }
            open = sections
            let margin = indent(sections.count)
            let name = parts.last ?? setting.path
            let origin = Self.oneLine(origin(of: setting.path).description)
            lines.append("\(margin)# \(setting.help) [\(setting.environmentName)]")
            if setting.isSecret, setting.values(config) != nil {
                lines.append("\(margin)# \(name): (set, not shown)  # \(origin)")
            } else if let values = setting.values(config) {
                let text = setting.isList ? "[" + values.map(Self.quoted).joined(separator: ", ") + "]" : values.map(Self.quoted).joined()
                lines.append("\(margin)\(name): \(text)  # \(origin)")
            } else {
                lines.append("\(margin)# \(name): (not set)")
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private func indent(_ depth: Int) -> String { String(repeating: "  ", count: depth) }

    /// A YAML scalar (YAML 1.2 §7.3.1): plain when unambiguous, otherwise in double quotes.
    private static func quoted(_ value: String) -> String {
        let plain = value.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7A).contains($0 | 0x20) }
        if plain, !value.isEmpty, value.lowercased() != "null" { return value }
        return "\"" + escaped(value, alsoQuotes: true) + "\""
    }

    /// Escapes text for a comment: a file name may hold a line break.
    private static func oneLine(_ text: String) -> String { escaped(text, alsoQuotes: false) }

    private static func escaped(_ text: String, alsoQuotes: Bool) -> String {
        text.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar.value {
            case 0x22, 0x5C:
                if alsoQuotes { result += "\\" }
                result.unicodeScalars.append(scalar)
            case 0x20...0xD7FF where !ShownText.isUnsafe(scalar), 0x10000...0x10FFFF:
                result.unicodeScalars.append(scalar)
            default:
                result += "\\U" + String(hex: scalar.value, digits: 8)
            }
        }
    }
}
