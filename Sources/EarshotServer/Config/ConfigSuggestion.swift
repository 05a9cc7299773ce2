/// Suggests the name that an unknown one was probably meant to be.
enum ConfigSuggestion {
    /// The problem text for a dotted path that is neither a setting nor a section.
    static func unknown(path: String) -> String {
        let parts = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        let parent = parts.dropLast().joined(separator: ".")
        let name = parts.last ?? path
        let known = ConfigSetting.all.map(\.path) + ConfigSetting.sections.sorted()
        let siblings = known.filter { self.parent($0) == parent }
        if let sibling = nearest(name, siblings.map(last)) {
            return "unknown key; did you mean \(parent.isEmpty ? sibling : "\(parent).\(sibling)")?"
        }
        if let elsewhere = nearest(path, known) ?? known.first(where: { last($0).lowercased() == name.lowercased() }) {
            return "unknown key; did you mean \(elsewhere)?"
        }
        let place = parent.isEmpty ? "known are" : "\(parent) has"
        return siblings.isEmpty ? "unknown key" : "unknown key; \(place) \(siblings.map(last).joined(separator: ", "))"
    }

    /// The closest candidate, if it differs by one letter or a third of them at most.
    static func nearest(_ word: String, _ candidates: [String]) -> String? {
        let best = candidates.map { ($0, distance(Array(word.lowercased().utf8), Array($0.lowercased().utf8))) }.min { $0.1 < $1.1 }
        guard let (candidate, distance) = best, distance <= max(1, candidate.utf8.count / 3) else { return nil }
        return candidate
    }

    /// Levenshtein's edit distance; words over 128 bytes count as entirely different.
    private static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
        guard max(a.count, b.count) <= 128 else { return Int.max }
        var row = Array(0...b.count)
        for i in a.indices {
            var diagonal = row[0]
            row[0] = i + 1
            for j in b.indices {
                let above = row[j + 1]
                row[j + 1] = min(above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0 : 1))
                diagonal = above
            }
        }
        return row[b.count]
    }

    private static func last(_ path: String) -> String { path.split(separator: ".").last.map(String.init) ?? path }
    private static func parent(_ path: String) -> String { path.split(separator: ".").dropLast().joined(separator: ".") }
}
