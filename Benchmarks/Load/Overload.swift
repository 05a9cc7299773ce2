import ArgumentParser
import FoundationEssentials

/// More viewers than a server can carry.
struct Overload: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Find how many viewers of one stream a server carries, then offer it as many, half as many again and twice as many.",
        discussion: """
            Capacity: as many as join, a few milliseconds apart, before the p99 latency of a second passes --limit-ms or one is refused or cut.
            Then, from nobody each time, viewers join one each --join-interval-us; who is refused or cut comes again after a second.
            Served: viewers that get nine of ten frames of the measured seconds. At last half of the capacity stays, and the seconds are
            counted until the p99 latency is what it was at capacity and newcomers are served at once.
            """)

    @Option(help: "Where to publish and play: rtmp://127.0.0.1:PORT/APP.")
    var url: String
    @Option(help: "Video of the stream, kbit/s.")
    var videoKbps = 136
    @Option(help: "AAC of the stream, kbit/s, 46.9 frames a second.")
    var audioKbps = 64
    @Option(help: "Frames a second.")
    var fps = 25
    @Option(help: "Frames from one keyframe to the next.")
    var gop = 50
    @Option(help: "Milliseconds of latency, p99 of a second, that a server at its capacity may have.")
    var limitMs = 500.0
    @Option(help: "Microseconds between joins while capacity is looked for.")
    var rampIntervalUs = 5_000
    @Option(help: "Microseconds between joins of what is offered.")
    var joinIntervalUs = 1_000
    @Option(help: "Most viewers that are offered.")
    var most = 24_000
    @Option(help: "Seconds from the last join to the measured ones.")
    var settle = 15.0
    @Option(help: "Seconds that are measured.")
    var seconds = 10.0
    @Option(help: "What to call the server in the report.")
    var server = "server"
    @Option(help: "Write the figures to this file.")
    var json: String?

    func validate() throws {
        let bounds: [(String, ClosedRange<Double>, Double)] = [
            ("--video-kbps", 1...100_000, Double(self.videoKbps)), ("--audio-kbps", 0...1_000, Double(self.audioKbps)),
            ("--fps", 1...240, Double(self.fps)), ("--gop", 1...3_600, Double(self.gop)), ("--limit-ms", 1...60_000, self.limitMs),
            ("--ramp-interval-us", 0...1_000_000, Double(self.rampIntervalUs)),
            ("--join-interval-us", 0...1_000_000, Double(self.joinIntervalUs)), ("--most", 10...25_000, Double(self.most)),
            ("--settle", 0...600, self.settle), ("--seconds", 1...600, self.seconds),
        ]
        for (name, range, value) in bounds where !range.contains(value) {
            throw ValidationError("\(name) is \(value); expected \(range.lowerBound) to \(range.upperBound)")
        }
    }

    func run() throws {
        OpenFiles.raiseLimit()
        let most = min(self.most, OpenFiles.viewers)
        let shape = StreamShape(videoKbps: self.videoKbps, framesPerSecond: self.fps, gop: self.gop, audioKbps: self.audioKbps)
        let run = OverloadRun(
            target: try Target(url: self.url, httpPort: nil, allowRemote: false), shape: shape, limitMs: self.limitMs,
            rampIntervalUs: self.rampIntervalUs, joinIntervalUs: self.joinIntervalUs, most: most, settleSeconds: self.settle,
            seconds: self.seconds)
        var result = OverloadResult(server: self.server)
        try run.run(into: &result)
        print(result.text)
        if let json = self.json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try encoder.encode(result).write(to: URL(filePath: json))
        }
    }
}

/// The measurements of ``Overload``. A plain value.
struct OverloadResult: Codable {
    var server: String
    /// Viewers.
    var capacity = 0
    /// The reason why the search ended; nil at the highest number of viewers allowed.
    var limitedBy: String?
    /// At capacity, in milliseconds.
    var capacityP99Ms: Double?
    var offers: [Offer] = []
    /// Seconds until all was normal after the load fell; nil when that took too long.
    var recoverySeconds: Double?

    struct Offer: Codable {
        /// As a multiple of the capacity.
        var factor: Double
        var viewers: Int
        /// Viewers that got nine of ten frames.
        var served = 0
        /// Their latency, in milliseconds.
        var p50Ms: Double?
        var p99Ms: Double?
        /// In the measured seconds: refused with a reason, closed without one, and cut after being served.
        var refused = 0
        var turnedAway = 0
        var cut = 0
        /// Cut since the first join.
        var cutInAll = 0
    }

    var text: String {
        var lines = [
            "\(self.server): capacity \(self.capacity) viewers (\(self.limitedBy ?? "all there may be")), p99 "
                + "\(RunResult.optional(self.capacityP99Ms)) ms",
            "offered        served  of capacity  p50, ms  p99, ms  refused/s  turned away/s  cut  cut in all",
        ]
        for offer in self.offers {
            let share = Double(offer.served) * 100 / Double(max(1, self.capacity))
            let cells: [(String, Int)] = [
                ("\(offer.factor)x \(offer.viewers)", 13), ("\(offer.served)", 8), ("\(RunResult.format(share)) %", 13),
                (RunResult.optional(offer.p50Ms), 9), (RunResult.optional(offer.p99Ms), 9), ("\(offer.refused)", 11),
                ("\(offer.turnedAway)", 15), ("\(offer.cut)", 5), ("\(offer.cutInAll)", 12),
            ]
            lines.append(
                cells.map { text, width in String(repeating: " ", count: max(0, width - text.count)) + text }.joined())
        }
        lines.append("as usual again \(self.recoverySeconds.map { "\(RunResult.format($0)) s" } ?? "not in time") after the load fell")
        return lines.joined(separator: "\n")
    }
}
