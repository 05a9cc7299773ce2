import ArgumentParser
import FoundationEssentials

/// Reads the results of several rounds and prints them side by side.
struct Compare: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Compare results of `run --json`: medians of all rounds, their spread, and what they say about the targets.")

    @Argument(help: "Files that `run --json` wrote.")
    var files: [String]
    @Option(help: "The server whose targets these are.")
    var subject = "earshot"
    @Option(help: "The server to compare with.")
    var rival = "nginx-rtmp"
    @Flag(help: "Exit with 1 when a target is missed.")
    var strict = false

    func run() throws {
        let decoder = JSONDecoder()
        let results = try self.files.map { try decoder.decode(RunResult.self, from: Data(contentsOf: URL(filePath: $0))) }
        var scenarios: [String] = []
        for result in results where !scenarios.contains(result.scenario) { scenarios.append(result.scenario) }
        var verdicts: [Verdict] = []
        for scenario in scenarios {
            let subject = Rounds(results.filter { $0.scenario == scenario && $0.server == self.subject })
            let rival = Rounds(results.filter { $0.scenario == scenario && $0.server == self.rival })
            guard let mode = (subject.first ?? rival.first)?.mode else { continue }
            print("\n\(RunResult.pad(scenario, 34))\(RunResult.pad(self.subject, 26))\(self.rival)")
            for measure in Measure.of(mode) where subject.has(measure) || rival.has(measure) {
                print("  \(RunResult.pad(measure.name, 32))\(RunResult.pad(subject.text(measure), 26))\(rival.text(measure))")
            }
            verdicts += Verdict.all(scenario, mode, subject: subject, rival: rival, rivalName: self.rival)
        }
        print("\nTargets")
        for verdict in verdicts { print("  \(verdict.isMet ? "met   " : "MISSED")  \(verdict.text)") }
        if self.strict && verdicts.contains(where: { !$0.isMet }) { throw ExitCode(1) }
    }
}

/// One figure of a result.
struct Measure: Sendable {
    let name: String
    let value: @Sendable (RunResult) -> Double?

    init(name: String, value: @escaping @Sendable (RunResult) -> Double?) {
        self.name = name
        self.value = value
    }

    static let cpu = Measure(name: "server CPU, µs/message") { $0.serverCPUMicrosecondsPerMessage }
    static let medianViewer = Measure(name: "median viewer behind live, ms") { $0.medianViewerMs }
    static let joinP99 = Measure(name: "join p99, ms") { $0.join.p99 }
    static let perViewer = Measure(name: "memory per viewer, KiB") { $0.memory.perViewerKiB }
    static let perStalled = Measure(name: "memory per stalled viewer, KiB") { $0.stall?.growthPerStalledViewerKiB }
    static let missing = Measure(name: "frames missing") { Double($0.loss.missing) }
    static let broken = Measure(name: "twice, disordered or damaged") {
        Double($0.loss.duplicates + $0.loss.outOfOrder + $0.loss.damaged)
    }
    static let failed = Measure(name: "viewers failed") { Double($0.loss.failedViewers) }
    private static let generator = [
        Measure(name: "load generator, % of a core") { $0.generatorCPUPercent },
        Measure(name: "anything else, % of a core") { $0.othersCPUPercent },
    ]
    private static let latency = [
        Measure(name: "latency p50, ms") { $0.latency.p50 }, Measure(name: "latency p99, ms") { $0.latency.p99 },
        Measure(name: "latency max, ms") { $0.latency.max },
    ]
    private static let loss = [Self.missing, Self.broken, Self.failed]

    static func of(_ mode: RunResult.Mode) -> [Measure] {
        switch mode {
        case .fanout: [self.cpu] + self.latency + [self.medianViewer, self.perViewer] + self.loss + self.generator
        case .idle: [self.perViewer, self.failed]
        case .join:
            [Measure(name: "join p50, ms") { $0.join.p50 }, self.joinP99, Measure(name: "join max, ms") { $0.join.max }]
                + [
                    Measure(name: "play answered p50, ms") { $0.playAnswer.p50 },
                    Measure(name: "play answered p99, ms") { $0.playAnswer.p99 },
                ]
                + [Measure(name: "server CPU, µs/join") { $0.serverCPUMicrosecondsPerJoin }] + self.loss + self.generator
        case .stall:
            [self.perStalled, Measure(name: "stalled viewers disconnected") { ($0.stall?.disconnected).map(Double.init) }, self.cpu]
                + self.latency + self.loss + self.generator
        }
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

    func worst(_ measure: Measure) -> Double? { self.sorted(measure).last }

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

/// A target and whether it is met.
struct Verdict {
    var isMet: Bool
    var text: String

    // The targets, in the units of their measures.
    private static let behindLiveMs = 50.0
    private static let cpuRatio = 1.2
    private static let stalledKiB = 1024.0
    private static let idleKiB = 12.0
    private static let joinMs = 10.0

    static func all(_ scenario: String, _ mode: RunResult.Mode, subject: Rounds, rival: Rounds, rivalName: String) -> [Verdict] {
        guard subject.first != nil else { return [] }
        var verdicts: [Verdict] = []
        func below(_ measure: Measure, _ limit: Double, orEqual: Bool = false) {
            guard let value = subject.median(measure) else { return }
            let isMet = orEqual ? value <= limit : value < limit
            verdicts.append(
                Verdict(
                    isMet: isMet,
                    text:
                        "\(scenario): \(measure.name) \(RunResult.format(value)), target \(orEqual ? "≤" : "<") \(RunResult.format(limit))")
            )
        }
        switch mode {
        case .fanout:
            below(Measure.medianViewer, self.behindLiveMs)
            if let own = subject.median(Measure.cpu), let other = rival.median(Measure.cpu), other > 0 {
                verdicts.append(
                    Verdict(
                        isMet: own / other <= self.cpuRatio,
                        text: "\(scenario): CPU per message \(RunResult.format(own / other)) × \(rivalName)'s, "
                            + "target ≤ \(RunResult.format(self.cpuRatio))"))
            }
        case .idle: below(Measure.perViewer, self.idleKiB, orEqual: true)
        case .join: below(Measure.joinP99, self.joinMs)
        case .stall: below(Measure.perStalled, self.stalledKiB)
        }
        let what = mode == .idle ? "every viewer stays" : mode == .stall ? "the others lose no byte" : "no viewer loses a byte"
        verdicts.append(Verdict(isMet: subject.isLossless, text: "\(scenario): \(what)"))
        return verdicts
    }
}
