import ArgumentParser
import FoundationEssentials

/// Reads the results of several rounds and prints them side by side.
struct Compare: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Compare results of `run --json`: medians of all rounds, their spread, and what they say about the targets.")

    @Argument(help: "Files that `run --json` wrote.")
    var files: [String]
    @Option(help: "Draw the figures into this SVG file.")
    var svg: String?
    @Flag(help: "Exit with 1 when a target is missed.")
    var strict = false

    func run() throws {
        let decoder = JSONDecoder()
        let results = try self.files.map { try decoder.decode(RunResult.self, from: Data(contentsOf: URL(filePath: $0))) }
        let figures = Figures(results)
        for scenario in figures.scenarios { self.print(scenario, figures) }
        let verdicts = Verdict.all(figures)
        Swift.print("\nTargets")
        for verdict in verdicts { Swift.print("  \(verdict.isMet ? "met   " : "MISSED")  \(verdict.text)") }
        if let svg = self.svg { try Data(Chart(figures).svg.utf8).write(to: URL(filePath: svg)) }
        if self.strict && verdicts.contains(where: { !$0.isMet }) { throw ExitCode(1) }
    }

    private func print(_ scenario: String, _ figures: Figures) {
        let servers = figures.servers(in: scenario)
        guard let first = servers.first, let mode = figures.rounds(scenario, first).first?.mode else { return }
        func row(_ name: String, _ cells: [String]) {
            Swift.print(RunResult.pad(name, 36) + cells.map { RunResult.pad($0, 26) }.joined())
        }
        Swift.print("")
        row(scenario, servers)
        for measure in Measure.of(mode) {
            let cells = servers.map { figures.rounds(scenario, $0) }
            if cells.contains(where: { $0.has(measure) }) { row("  \(measure.name)", cells.map { $0.text(measure) }) }
        }
    }
}

/// All results by scenario and server, in the order given.
struct Figures {
    private let results: [RunResult]
    let scenarios: [String]

    init(_ results: [RunResult]) {
        self.results = results
        var scenarios: [String] = []
        for result in results where !scenarios.contains(result.scenario) { scenarios.append(result.scenario) }
        self.scenarios = scenarios
    }

    func servers(in scenario: String) -> [String] {
        var servers: [String] = []
        for result in self.results where result.scenario == scenario && !servers.contains(result.server) { servers.append(result.server) }
        return servers.sorted { Self.rank($0) < Self.rank($1) }
    }

    /// Earshot first, then the floor, then rivals.
    private static func rank(_ server: String) -> Int { server.hasPrefix("earshot") ? 0 : server.hasPrefix("bare") ? 1 : 2 }

    func rounds(_ scenario: String, _ server: String) -> Rounds {
        Rounds(self.results.filter { $0.scenario == scenario && $0.server == server })
    }
}

/// The results of one server in one scenario.
struct Rounds {
    private let results: [RunResult]

    init(_ results: [RunResult]) { self.results = results }

    var first: RunResult? { self.results.first }

    private func sorted(_ measure: Measure) -> [Double] { self.results.compactMap(measure.value).sorted() }

    func has(_ measure: Measure) -> Bool { !self.sorted(measure).isEmpty }

    func median(_ measure: Measure) -> Double? {
        let values = self.sorted(measure)
        guard !values.isEmpty else { return nil }
        let middle = values.count / 2
        return values.count % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2
    }

    /// `median [least … most]`
    func text(_ measure: Measure) -> String {
        let values = self.sorted(measure)
        guard let median = self.median(measure), let first = values.first, let last = values.last else { return "–" }
        let spread = values.count > 1 && first != last ? " [\(RunResult.format(first)) … \(RunResult.format(last))]" : ""
        return RunResult.format(median) + spread
    }

    /// Whether every viewer of every round has every byte.
    var isLossless: Bool { self.results.allSatisfy(\.loss.isNone) }
}
