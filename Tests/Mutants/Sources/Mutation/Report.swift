/// The result of one mutant. A plain value.
package struct MutantResult: Codable, Sendable {
    package enum Verdict: String, Codable, Sendable {
        case killed
        /// The tests hang or are many times slower, which counts as noticed.
        case timedOut
        case survived
    }

    package let mutant: Mutant
    package let verdict: Verdict
    /// The first test that failed, or how the process ended.
    package let by: String
    package let seconds: Double

    package init(mutant: Mutant, verdict: Verdict, by: String, seconds: Double) {
        self.mutant = mutant
        self.verdict = verdict
        self.by = by
        self.seconds = seconds
    }
}

/// The results of a run, and the verdict on them. A plain value.
package struct Report: Sendable {
    package let results: [MutantResult]
    private let explained: [Explained]

    /// The percentage of unexplained mutants that must not survive.
    package static let leastKilled = 90

    package init(results: [MutantResult], explained: [Explained]) {
        self.results = results.sorted { $0.mutant.id < $1.mutant.id }
        self.explained = explained
    }

    private func isExplained(_ mutant: Mutant) -> Bool { self.explained.contains { $0.explains(mutant) } }

    /// Survivors without an explanation.
    package var survivors: [MutantResult] { self.results.filter { $0.verdict == .survived && !self.isExplained($0.mutant) } }

    /// Mutants explained as unnoticeable that a test noticed.
    package var wronglyExplained: [MutantResult] { self.results.filter { $0.verdict != .survived && self.isExplained($0.mutant) } }

    /// The number of mutants that count: all but explained survivors.
    private var counted: Int { self.results.count { $0.verdict != .survived || !self.isExplained($0.mutant) } }

    package var isGood: Bool {
        self.counted > 0 && self.wronglyExplained.isEmpty
            && (self.counted - self.survivors.count) * 100 >= self.counted * Self.leastKilled
    }

    package var table: String {
        var rows = [["", "mutants", "killed", "timed out", "survived", "explained"]]
        for floor in Floor.all.map(\.name) + ["all"] {
            let results = self.results.filter { floor == "all" || Floor.of($0.mutant)?.name == floor }
            guard !results.isEmpty else { continue }
            let survived = results.filter { $0.verdict == .survived }
            let explained = survived.count { self.isExplained($0.mutant) }
            rows.append(
                [floor]
                    + [
                        results.count, results.count { $0.verdict == .killed }, results.count { $0.verdict == .timedOut },
                        survived.count - explained, explained,
                    ].map(String.init))
        }
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            zip(row, widths).enumerated().map { column, cell in
                let blanks = String(repeating: " ", count: cell.1 - cell.0.count)
                return column == 0 ? cell.0 + blanks : blanks + cell.0
            }.joined(separator: "  ")
        }.joined(separator: "\n")
    }

    /// The table, the survivors and the verdict.
    package var text: String {
        var text = self.table + "\n"
        for survivor in self.survivors { text += "\nsurvived: \(Self.describe(survivor.mutant))\n" }
        for result in self.wronglyExplained {
            text += "\nexplained.txt says that no test can tell, but \(result.by) does: \(Self.describe(result.mutant))\n"
        }
        let share = self.counted == 0 ? 0 : Double(self.counted - self.survivors.count) * 100 / Double(self.counted)
        return text + "\n\((share * 10).rounded() / 10) % of \(self.counted) noticed; at least \(Self.leastKilled) % are wanted\n"
    }

    package static func describe(_ mutant: Mutant) -> String {
        "\(mutant.file):\(mutant.line) (\(mutant.id), \(mutant.kind.rawValue))\n  before: \(mutant.before)\n  after: \(mutant.after)"
    }
}
