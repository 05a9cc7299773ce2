/// "Did you mean": the known word that a mistyped one is closest to. Pure; any thread.
package enum Suggestion {
    /// The closest candidate, if it differs by one letter or a third of them at most.
    package static func nearest(_ word: String, _ candidates: [String]) -> String? {
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
}
