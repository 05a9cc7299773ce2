/// "Did you mean": the known word that a mistyped one is closest to. Pure; any thread.
package enum Suggestion {
    /// The closest candidate, if it differs by at most one letter or a third of its letters.
    package static func nearest(_ word: String, _ candidates: [String]) -> String? {
        let best = candidates.map { ($0, distance(Array(word.lowercased().utf8), Array($0.lowercased().utf8))) }.min { $0.1 < $1.1 }
        guard let (candidate, distance) = best, distance <= max(1, candidate.utf8.count / 3) else { return nil }
        return candidate
    }

    /// The edit distance in which two letters that changed places count as one mistake (optimal string alignment); words over 128 bytes count
    /// as entirely different.
    private static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
        guard max(a.count, b.count) <= 128 else { return Int.max }
        var beforeLast: [Int] = []
        var last = Array(0...b.count)
        for i in a.indices {
            var row = [i + 1]
            for j in b.indices {
                var best = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, beforeLast[j - 1] + 1) }
                row.append(best)
            }
            (beforeLast, last) = (last, row)
        }
        return last[b.count]
    }
}
