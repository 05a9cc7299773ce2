import ArgumentParser
import FoundationEssentials

/// Random viewers under load. Every byte they get is compared with what was published.
struct Churn: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Have viewers come, stop reading, read on and go at random while streams are published, and check every byte they get.",
        discussion: "Exits with 1 when a byte is wrong, missing or another stream's, or a viewer that reads is disconnected.")

    @Option(help: "Where to publish and play: rtmp://127.0.0.1:PORT/APP.")
    var url: String
    @Option(help: "Streams, each with its own publisher.")
    var streams = 2
    @Option(help: "Viewers at a time, over all streams.")
    var viewers = 60
    @Option(help: "End when so many viewers have come and gone; 0: after the seconds.")
    var cycles = 0
    @Option(help: "Seconds, at most.")
    var seconds = 30.0
    @Option(help: "Milliseconds that a viewer stays, on average.")
    var lifeMs = 2_000
    @Option(help: "How many viewers of a hundred stop reading now and then.")
    var stalling = 0
    @Option(help: "Video of each stream, kbit/s.")
    var videoKbps = 1200
    @Option(help: "Frames a second.")
    var fps = 30
    @Option(help: "Frames from one keyframe to the next.")
    var gop = 30
    @Option(help: "AAC of each stream, kbit/s; 0 for none.")
    var audioKbps = 64
    @Option(help: "Another order of things.")
    var seed: UInt64 = 1
    @Option(help: "Write the figures to this file.")
    var json: String?

    /// Time for viewers to catch up after the publishers have stopped. Nanoseconds.
    private static let drainNs: UInt64 = 10_000_000_000

    func validate() throws {
        let bounds: [(String, ClosedRange<Double>, Double)] = [
            ("--streams", 1...64, Double(self.streams)), ("--viewers", 1...4_000, Double(self.viewers)),
            ("--cycles", 0...1_000_000, Double(self.cycles)), ("--seconds", 0.1...3_600, self.seconds),
            ("--life-ms", 1...600_000, Double(self.lifeMs)), ("--stalling", 0...100, Double(self.stalling)),
            ("--video-kbps", 1...50_000, Double(self.videoKbps)), ("--fps", 1...240, Double(self.fps)),
            ("--gop", 1...3_600, Double(self.gop)),
            ("--audio-kbps", 0...1_000, Double(self.audioKbps)),
        ]
        for (name, range, value) in bounds where !range.contains(value) {
            throw ValidationError("\(name) is \(value); expected \(range.lowerBound) to \(range.upperBound)")
        }
    }

    func run() throws {
        OpenFiles.raiseLimit()
        let totals = try self.churn()
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        let report = try encoder.encode(totals)
        print(String(decoding: report, as: UTF8.self))
        if let json = self.json { try report.write(to: URL(filePath: json)) }
        guard totals.isRight, totals.gone >= self.cycles else { throw ExitCode(1) }
    }

    private func churn() throws(LoadError) -> ChurnTotals {
        let target = try Target(url: self.url, allowRemote: false)
        let prefix = "churn-\(Clock.now() / 1_000_000)"
        let names = (0..<self.streams).map { "\(prefix)-\($0)" }
        let shape = StreamShape(videoKbps: self.videoKbps, framesPerSecond: self.fps, gop: self.gop, audioKbps: self.audioKbps)
        let publisher = try Publisher(target: target, names: names, shape: shape)
        defer { publisher.close() }
        try publisher.start()
        let loop = try ChurnLoop(
            target: target,
            plan: ChurnLoop.Plan(
                names: names, lanes: self.viewers, meanLifeNs: UInt64(self.lifeMs) * 1_000_000, stallingPercent: self.stalling,
                stalledReceiveBufferBytes: 16 << 10, seed: self.seed))
        var totals: ChurnTotals
        do throws(LoadError) {
            try loop.run(untilNs: Clock.now() + UInt64(self.seconds * 1e9)) { self.cycles > 0 && loop.totals.gone >= self.cycles }
            try loop.calmDown()
            try publisher.stop()
            try loop.run(untilNs: Clock.now() + Self.drainNs) { loop.steadyViewers.allSatisfy { Self.isComplete($0, publisher) } }
            let incomplete = loop.steadyViewers.count { !Self.isComplete($0, publisher) }
            loop.closeAll()
            totals = loop.totals
            totals.incomplete = incomplete
        } catch {
            loop.closeAll()
            // The publisher's failure best explains the viewers'.
            try publisher.stop()
            throw error
        }
        return totals
    }

    /// Whether the viewer has its stream's last frames. One that joined too late for any frame lacks none.
    private static func isComplete(_ viewer: Viewer, _ publisher: Publisher) -> Bool {
        let sent = publisher.sent(room: viewer.room)
        return viewer.phase == .closed
            || (viewer.check.video.next ?? sent.video) == sent.video
                && (viewer.check.audio.next ?? sent.audio) == sent.audio
    }
}
