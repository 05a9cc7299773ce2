import ArgumentParser
import FoundationEssentials

/// The command line of the load generator.
@main
struct EarshotLoad: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "earshot-load",
        abstract: "Publishes and plays over RTMP, plays by WHEP, changes rooms over HTTP, and measures the server meanwhile.",
        subcommands: [Run.self, Compare.self, Churn.self, Overload.self, Transitions.self, Pages.self, Watch.self])
}

extension RunResult.Mode: ExpressibleByArgument {}

struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run one load and report.",
        discussion: """
            fanout  rooms × viewers play live streams
            idle    viewers play a name that nobody publishes
            join    viewers join one live stream, evenly paced; join time is connect() to the first whole keyframe.
                    --players play it already, and their latency before and during the joins is measured too
            stall   some of a live stream's viewers stop reading
            """)

    @Option(help: "Where to publish and play: rtmp://127.0.0.1:PORT/APP.")
    var url: String
    @Option(help: "Viewers play HTTP-FLV from this port of the same host: http://127.0.0.1:PORT/APP/NAME.flv.")
    var httpPort: UInt16?
    @Option(help: "fanout, idle, join or stall.")
    var mode = RunResult.Mode.fanout
    @Option(help: "Streams, each with its own publisher.")
    var rooms = 1
    @Option(help: "Viewers of each stream.")
    var viewers = 500
    @Option(help: "Viewers that play already when the joins begin, in mode join.")
    var players = 0
    @Option(help: "Video of each stream, kbit/s; 0 for none.")
    var videoKbps = 1800
    @Option(help: "Frames a second.")
    var fps = 30
    @Option(help: "Frames from one keyframe to the next.")
    var gop = 60
    @Option(help: "AAC of each stream, kbit/s, 46.9 frames a second; 0 for none.")
    var audioKbps = 64
    @Option(help: "Seconds that are measured.")
    var seconds = 20.0
    @Option(help: "Seconds between the last join and the measured ones; in mode join before the first join.")
    var warmup = 3.0
    @Option(help: "Microseconds between joins.")
    var joinIntervalUs = 1000
    @Option(help: "How many viewers stop reading in mode stall.")
    var stalled = 10
    @Option(help: "Receive buffer of the viewers that will stop reading, KiB.")
    var stalledBufferKib = 32
    @Option(help: "Exit with 2 when a viewer failed, lacks a frame, or was ever more than this many milliseconds behind.")
    var maxBehindMs: Double?
    @Option(help: "The server's process: its CPU and memory are measured.")
    var serverPid: Int32?
    @Option(help: "What to call the server in the report.")
    var server = "server"
    @Option(help: "What to call this load in the report.")
    var scenario = "load"
    @Option(help: "Write the figures to this file.")
    var json: String?
    @Flag(help: "Permit a server that is not on this machine. Load only servers of your own.")
    var allowRemote = false

    func validate() throws {
        let bounds: [(String, ClosedRange<Double>, Double)] = [
            ("--rooms", 1...2_000, Double(self.rooms)), ("--viewers", 1...25_000, Double(self.viewers)),
            ("--rooms × --viewers", 1...25_000, Double(self.rooms) * Double(self.viewers)),
            ("--video-kbps", 0...100_000, Double(self.videoKbps)), ("--fps", 1...240, Double(self.fps)),
            ("--gop", 1...3_600, Double(self.gop)), ("--audio-kbps", 0...1_000, Double(self.audioKbps)),
            ("--seconds", 0.1...600, self.seconds), ("--warmup", 0...60, self.warmup),
            ("--join-interval-us", 0...1_000_000, Double(self.joinIntervalUs)),
            ("--stalled", 0...Double(max(0, self.viewers - 1)), Double(self.mode == .stall ? self.stalled : 0)),
            ("--players", 0...5_000, Double(self.players)), ("--stalled-buffer-kib", 4...65_536, Double(self.stalledBufferKib)),
        ]
        for (name, range, value) in bounds where !range.contains(value) {
            throw ValidationError("\(name) is \(value); expected \(range.lowerBound) to \(range.upperBound)")
        }
        if self.mode == .idle && self.httpPort != nil {
            throw ValidationError("--mode idle is for RTMP: HTTP answers that there is no stream")
        }
        if self.mode == .stall && self.rooms != 1 { throw ValidationError("--mode stall takes one room") }
        if self.videoKbps + self.audioKbps == 0 { throw ValidationError("there must be video or audio") }
        if self.mode == .join && self.videoKbps == 0 { throw ValidationError("--mode join waits for a keyframe, so it needs video") }
        let shape = self.shape
        guard shape.videoBytes(isKeyframe: true) <= Pattern.longestMessage else {
            throw ValidationError("a keyframe would have \(shape.videoBytes(isKeyframe: true)) bytes; at most \(Pattern.longestMessage)")
        }
        if self.serverPid.map({ ProcessStats(pid: $0).residentBytes() == nil }) == true {
            throw ValidationError("--server-pid \(self.serverPid ?? 0) is not a running process")
        }
    }

    private var shape: StreamShape {
        StreamShape(videoKbps: self.videoKbps, framesPerSecond: self.fps, gop: self.gop, audioKbps: self.audioKbps)
    }

    func run() throws {
        OpenFiles.raiseLimit()
        let scenario = Scenario(
            target: try Target(url: self.url, httpPort: self.httpPort, allowRemote: self.allowRemote), mode: self.mode, rooms: self.rooms,
            viewersPerRoom: self.viewers, shape: self.shape, joinIntervalUs: self.joinIntervalUs, warmupSeconds: self.warmup,
            seconds: self.seconds, players: self.mode == .join ? self.players : 0, stalledViewers: self.mode == .stall ? self.stalled : 0,
            stalledReceiveBufferBytes: self.stalledBufferKib << 10,
            // A name of this run's own, so that leftovers of an earlier run do not count.
            namePrefix: "load-\(Clock.now() / 1_000_000)", server: self.serverPid.map { ProcessStats(pid: $0) })
        var result = RunResult(
            server: self.server, scenario: self.scenario, mode: self.mode, rooms: self.rooms, viewersPerRoom: self.viewers,
            shape: self.shape)
        try scenario.run(into: &result)
        print(result.text)
        if let json = self.json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try encoder.encode(result).write(to: URL(filePath: json))
        }
        if let limit = self.maxBehindMs, !result.loss.isNone || (result.latency.max ?? .infinity) > limit { throw ExitCode(2) }
    }
}
