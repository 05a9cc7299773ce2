/// One figure of a result.
struct Measure: Sendable {
    let name: String
    let value: @Sendable (RunResult) -> Double?

    init(_ name: String, value: @escaping @Sendable (RunResult) -> Double?) {
        self.name = name
        self.value = value
    }

    static let cpu = Measure("server CPU, µs/message") { $0.serverCPUMicrosecondsPerMessage }
    static let cpuPerGB = Measure("server CPU, s/GB") { result in
        guard let seconds = result.serverCPUSeconds, result.bytes > 0 else { return nil }
        return seconds * 1e9 / Double(result.bytes)
    }
    static let load = Measure("server CPU, % of a core") { result in
        result.serverCPUSeconds.map { $0 * 100 / max(result.seconds, 1e-9) }
    }
    static let userShare = Measure("of the server's CPU, not the kernel's, %") { $0.serverUserPercent }
    static let perStream = Measure("server CPU, ms/stream in 10 s") { result in
        result.serverCPUSeconds.map { $0 * 10_000 / max(result.seconds, 1e-9) / Double(max(1, result.rooms)) }
    }
    static let viewers = Measure("viewers") { Double($0.rooms * $0.viewersPerRoom) }
    static let latencyP50 = Measure("latency p50, ms") { $0.latency.p50 }
    static let latencyP99 = Measure("latency p99, ms") { $0.latency.p99 }
    static let latencyMax = Measure("latency max, ms") { $0.latency.max }
    static let medianViewer = Measure("median viewer behind live, ms") { $0.medianViewerMs }
    static let joinP50 = Measure("join p50, ms") { $0.join.p50 }
    static let joinP99 = Measure("join p99, ms") { $0.join.p99 }
    static let perViewer = Measure("memory per viewer, KiB") { $0.memory.perViewerKiB }
    static let perStalled = Measure("memory per stalled viewer, KiB") { $0.stall?.growthPerStalledViewerKiB }
    static let playersBefore = Measure("players' latency p99 before, ms") { $0.players?.before.p99 }
    static let playersMeanwhile = Measure("players' latency p99 meanwhile, ms") { $0.players?.meanwhile.p99 }
    static let missing = Measure("frames missing") { Double($0.loss.missing) }
    static let broken = Measure("twice, disordered or damaged") { Double($0.loss.duplicates + $0.loss.outOfOrder + $0.loss.damaged) }
    static let failed = Measure("viewers failed") { Double($0.loss.failedViewers) }

    private static let generator = [
        Measure("load generator, % of a core") { $0.generatorCPUPercent }, Measure("anything else, % of a core") { $0.othersCPUPercent },
    ]
    private static let latency = [Self.latencyP50, Self.latencyP99, Self.latencyMax]
    private static let loss = [Self.missing, Self.broken, Self.failed]

    static func of(_ mode: RunResult.Mode) -> [Measure] {
        switch mode {
        case .fanout:
            [self.viewers, self.cpu, self.cpuPerGB, self.load, self.userShare, self.perStream] + self.latency + [
                self.medianViewer, self.perViewer,
            ]
                + self.loss
                + self.generator
        case .idle: [self.viewers, self.perViewer, self.failed]
        case .join:
            [
                self.joinP50, self.joinP99, Measure("join max, ms") { $0.join.max },
                Measure("play answered p50, ms") { $0.playAnswer.p50 }, Measure("play answered p99, ms") { $0.playAnswer.p99 },
                self.playersBefore, self.playersMeanwhile, Measure("server CPU, µs/join") { $0.serverCPUMicrosecondsPerJoin },
            ] + self.loss + self.generator
        case .stall:
            [self.perStalled, Measure("stalled viewers disconnected") { ($0.stall?.disconnected).map(Double.init) }, self.cpu]
                + self.latency + self.loss + self.generator
        }
    }
}
