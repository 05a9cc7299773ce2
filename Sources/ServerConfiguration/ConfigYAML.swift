internal import Yams

/// Reads the configuration file into settings and mistakes, without checking values.
struct ConfigYAML {
    /// A setting's values as text, and its line (from 1).
    struct Entry {
        var setting: ConfigSetting
        var values: [String]
        var line: Int?
    }

    private(set) var entries: [Entry] = []
    private(set) var mistakes: [ConfigError.Mistake] = []
    private let file: String

    /// `file` is the name in messages.
    init(_ text: String, file: String) {
        self.file = file
        do {
            guard let root = try compose(yaml: text) else { return }
            section(root, path: "")
        } catch let error as YamlError {
            mistakes.append(Self.mistake(error, text, file: file))
        } catch {
            mistakes.append(.init(path: nil, problem: "not valid YAML: \(error)", origin: .file(file, line: nil)))
        }
    }

    private mutating func section(_ node: Node, path: String) {
        guard !Self.isNull(node) else { return }  // a section with everything commented out
        guard case .mapping(let mapping) = node else {
            let name = path.isEmpty ? "the file" : "the section"
            report(path.isEmpty ? nil : path, "\(Self.described(node)); \(name) must be a mapping of settings", node)
            return
        }
        for (key, value) in mapping {
            guard let name = key.scalar?.string else {
                report(path.isEmpty ? nil : path, "a key must be a single value, not \(Self.kind(key))", key)
                continue
            }
            let full = path.isEmpty ? name : "\(path).\(name)"
            if let setting = ConfigSetting.byPath[full] {
                self.setting(setting, value, key)
            } else if ConfigSetting.sections.contains(full) {
                section(value, path: full)
            } else {
                report(full, ConfigSuggestion.unknown(path: full), key)
            }
        }
    }

    private mutating func setting(_ setting: ConfigSetting, _ node: Node, _ key: Node) {
        guard !entries.contains(where: { $0.setting.path == setting.path }) else {  // compares our own words
            return report(setting.path, "is set twice", key)
        }
        guard !Self.isNull(node) else {
            // `key:` with nothing after it stays as it was.
            if let text = node.scalar?.string, !text.isEmpty {
                report(setting.path, "is \(text); leave the line out for the default", node)
            }
            return
        }
        switch node {
        case .scalar(let scalar):
            entries.append(Entry(setting: setting, values: setting.split(scalar.string), line: key.mark?.line))
        case .sequence(let items) where setting.isList:
            let values = items.compactMap(\.scalar?.string)
            guard values.count == items.count else {
                return report(setting.path, "holds an item that is not a single value; expected \(setting.expected)", node)
            }
            entries.append(Entry(setting: setting, values: values, line: key.mark?.line))
        default:
            report(setting.path, "\(Self.described(node)); expected \(setting.expected)", node)
        }
    }

    private mutating func report(_ path: String?, _ problem: String, _ node: Node) {
        mistakes.append(.init(path: path, problem: problem, origin: .file(file, line: node.mark?.line)))
    }

    private static func isNull(_ node: Node) -> Bool {
        guard case .scalar(let scalar) = node, scalar.style == .any || scalar.style == .plain else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(scalar.string)  // YAML 1.2 §10.3.2
    }

    private static func kind(_ node: Node) -> String {
        switch node {
        case .scalar: "a single value"
        case .sequence: "a list"
        case .mapping: "a mapping"
        case .alias: "an alias"
        }
    }

    private static func described(_ node: Node) -> String {
        // The message does not contain the value, which may be a misplaced secret.
        if case .scalar = node { return "is a single value" }
        return "is \(kind(node))"
    }

    /// What a line that YAML cannot read probably meant; empty if that is not known.
    private static func hint(_ line: Substring?) -> String {
        guard let line else { return "" }
        if line.prefix(while: \.isWhitespace).contains("\t") { return "; the line begins with a tab: YAML indents with spaces" }
        if line.contains(": [") || line.contains(": :"), line.contains("::") {
            return "; an IPv6 address needs quotes, as in \"[::1]:1935\""
        }
        return ""
    }

    /// The line, from 1, on which `key` stands for the second time in the mapping that begins at `start`.
    private static func secondLine(of key: String, _ lines: [Substring], from start: Int, column: Int) -> Int? {
        let indent = String(repeating: " ", count: max(column - 1, 0))
        let found = lines.indices.dropFirst(max(start - 1, 0)).filter { index in
            ["\(indent)\(key):", "\(indent)\"\(key)\":", "\(indent)'\(key)':"].contains { lines[index].hasPrefix($0) }
        }
        return found.count > 1 ? found[1] + 1 : nil
    }

    private static func mistake(_ error: YamlError, _ text: String, file: String) -> ConfigError.Mistake {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)

        func at(_ line: Int, _ column: Int, _ problem: String, _ context: YamlError.Context?) -> ConfigError.Mistake {
            let whole = [context.map { "\($0.text) (begun at line \($0.mark.line))" }, problem].compactMap(\.self).joined(separator: ", ")
            return .init(
                path: nil,
                problem: "line \(line), column \(column): not valid YAML: \(whole)"
                    + Self.hint(lines.indices.contains(line - 1) ? lines[line - 1] : nil),
                origin: .file(file, line: line))
        }
        switch error {
        case .scanner(let context, let problem, let mark, _), .parser(let context, let problem, let mark, _),
            .composer(let context, let problem, let mark, _):
            return at(mark.line, mark.column, problem, context)
        case .duplicatedKeysInMapping(let duplicates, let context):
            let second = duplicates.lazy.compactMap { Self.secondLine(of: $0, lines, from: context.mark.line, column: context.mark.column) }
                .first
            return at(
                second ?? context.mark.line, context.mark.column, "the same key twice: \(duplicates.joined(separator: ", "))", nil)
        case .reader(let problem, let offset, _, let yaml):
            // The reader gives only an offset in bytes.
            let before = yaml.utf8.prefix(max(offset ?? 0, 0))
            let column = before.count - (before.lastIndex(of: 0x0A).map { before.distance(from: before.startIndex, to: $0) + 1 } ?? 0)
            return at(before.count { $0 == 0x0A } + 1, column + 1, problem, nil)
        default:
            return .init(path: nil, problem: "not valid YAML: \(error)", origin: .file(file, line: nil))
        }
    }
}

extension ConfigSetting {
    /// Splits the text of a list at commas and spaces; `none` is an empty list.
    package func split(_ text: String) -> [String] {
        guard isList else { return [text] }
        return text == "none" ? [] : text.split { $0 == "," || $0.isWhitespace }.map(String.init)
    }
}
