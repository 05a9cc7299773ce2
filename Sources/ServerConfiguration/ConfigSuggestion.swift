import Support

/// Suggests the name that an unknown name was probably meant to be.
enum ConfigSuggestion {
    /// The problem text for a dotted path that is neither a setting nor a section.
    static func unknown(path: String) -> String {
        let parts = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        let parent = parts.dropLast().joined(separator: ".")
        let name = parts.last ?? path
        let known = ConfigSetting.all.map(\.path) + ConfigSetting.sections.sorted()
        let siblings = known.filter { self.parent($0) == parent }
        if let sibling = Suggestion.nearest(name, siblings.map(last)) {
            return "unknown key; did you mean \(parent.isEmpty ? sibling : "\(parent).\(sibling)")?"
        }
        if let elsewhere = Suggestion.nearest(path, known) ?? known.first(where: { last($0).lowercased() == name.lowercased() }) {
            return "unknown key; did you mean \(elsewhere)?"
        }
        let introduction = parent.isEmpty ? "the known keys are" : "\(parent) has"
        return siblings.isEmpty ? "unknown key" : "unknown key; \(introduction) \(siblings.map(last).joined(separator: ", "))"
    }

    private static func last(_ path: String) -> String { path.split(separator: ".").last.map(String.init) ?? path }
    private static func parent(_ path: String) -> String { path.split(separator: ".").dropLast().joined(separator: ".") }
}
