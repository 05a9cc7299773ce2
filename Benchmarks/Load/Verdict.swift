/// A target and whether it is met.
struct Verdict {
    var isMet: Bool
    var text: String

    /// One of our figures against a number, or against another figure of the same run.
    private struct Target {
        enum Limit {
            case below(Double)
            case times(Double, of: String, scenario: String? = nil)
            /// At most this much more.
            case above(Double, of: String)
        }
        var scenario: String
        var measure: Measure
        var limit: Limit
        var server = "earshot"
    }

    private static let bare = "bare C"
    private static let rival = "nginx-rtmp"

    private static let targets: [Target] =
        ["fanout-500x800k", "fanout-300x2M", "talk-1000"].flatMap { scenario in
            [
                Target(scenario: scenario, measure: .cpu, limit: .times(1.10, of: Self.bare)),
                Target(scenario: scenario, measure: .cpu, limit: .times(1, of: Self.rival)),
                Target(scenario: scenario, measure: .latencyP99, limit: .times(1, of: Self.rival)),
            ]
        } + [
            Target(scenario: "fanout-500x800k", measure: .userShare, limit: .below(10)),
            Target(scenario: "rooms-200", measure: .cpu, limit: .times(1.25, of: Self.bare)),
            Target(scenario: "rooms-200", measure: .cpu, limit: .times(1, of: Self.rival)),
            Target(
                scenario: "window-300x2M", measure: .cpu, limit: .times(1.25, of: "bare C, 100 ms"), server: "earshot, 100 ms"),
            Target(scenario: "flv-300x2M", measure: .cpu, limit: .times(1.25, of: "earshot"), server: "earshot, FLV"),
            Target(scenario: "hls-20", measure: .perStream, limit: .above(10, of: "earshot"), server: "earshot, HLS"),
            Target(scenario: "capacity-0.6x", measure: .latencyP99, limit: .below(10)),
            Target(scenario: "idle-2000", measure: .perViewer, limit: .below(8)),
            Target(scenario: "join-1000", measure: .joinP99, limit: .below(20)),
            Target(scenario: "stall-500", measure: .perStalled, limit: .below(1024)),
            Target(scenario: "stall-500", measure: .latencyP99, limit: .times(1.2, of: "earshot", scenario: "stall-none")),
        ]

    /// The verdicts on the figures. No viewer may lose anything in any scenario.
    static func all(_ figures: Figures) -> [Verdict] {
        var verdicts = self.targets.compactMap { self.judge($0, figures) }
        if let capacity = self.capacity(figures) { verdicts.append(capacity) }
        for scenario in figures.scenarios {
            let joined = figures.rounds(scenario, "earshot")
            if let before = joined.median(.playersBefore), let meanwhile = joined.median(.playersMeanwhile), before > 0 {
                verdicts.append(
                    Verdict(
                        isMet: meanwhile <= before * 2,
                        text:
                            "\(scenario): players' latency p99 \(RunResult.format(meanwhile / before)) × that before the joins, target ≤ 2")
                )
            }
            for server in figures.servers(in: scenario) where server.hasPrefix("earshot") {
                verdicts.append(
                    Verdict(isMet: figures.rounds(scenario, server).isLossless, text: "\(scenario), \(server): nobody lacks a byte"))
            }
        }
        return verdicts
    }

    /// The highest multiple of the rival's viewers that was served. Served means a p99 within 250 ms, and nobody a second behind.
    private static func capacity(_ figures: Figures) -> Verdict? {
        let points = figures.scenarios.compactMap { scenario -> (times: Double, p99: Double, isServed: Bool)? in
            guard let prefix = ["capacity-", "curve-"].first(where: { scenario.hasPrefix($0) }), scenario.hasSuffix("x"),
                let times = Double(scenario.dropFirst(prefix.count).dropLast())
            else { return nil }
            let rounds = figures.rounds(scenario, "earshot")
            guard let p99 = rounds.median(.latencyP99), let most = rounds.median(.latencyMax) else { return nil }
            return (times, p99, rounds.isLossless && p99 <= 250 && most <= 1_000)
        }
        guard let most = points.max(by: { $0.times < $1.times }) else { return nil }
        let reached = points.filter(\.isServed).map(\.times).max() ?? 0
        return Verdict(
            isMet: reached >= 6,
            text: "capacity: \(RunResult.format(reached)) × \(self.rival)'s viewers within p99 250 ms "
                + "(\(RunResult.format(most.times)) × at \(RunResult.format(most.p99)) ms), target ≥ 6 ×")
    }

    /// Nil when one of the two figures was not measured.
    private static func judge(_ target: Target, _ figures: Figures) -> Verdict? {
        guard let own = figures.rounds(target.scenario, target.server).median(target.measure) else { return nil }
        let name = "\(target.scenario): \(target.measure.name)"
        switch target.limit {
        case .below(let limit):
            return Verdict(isMet: own <= limit, text: "\(name) \(RunResult.format(own)), target ≤ \(RunResult.format(limit))")
        case .above(let limit, let other):
            guard let base = figures.rounds(target.scenario, other).median(target.measure) else { return nil }
            return Verdict(
                isMet: own - base <= limit,
                text: "\(name) \(RunResult.format(own - base)) more than \(other), target ≤ \(RunResult.format(limit))")
        case .times(let limit, let other, let scenario):
            guard let base = figures.rounds(scenario ?? target.scenario, other).median(target.measure), base > 0 else { return nil }
            return Verdict(
                isMet: own <= limit * base,
                text: "\(name) \(RunResult.format(own / base)) × \(scenario.map { "that of \($0)" } ?? "that of \(other)"), "
                    + "target ≤ \(RunResult.format(limit))")
        }
    }
}
