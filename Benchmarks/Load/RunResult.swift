/// All measurements of one run, as stored in the JSON file. A plain value.
struct RunResult: Codable {
    var server: String
    var scenario: String
    var mode: Mode
    var rooms: Int
    var viewersPerRoom: Int
    var shape: StreamShape

    /// Seconds that were measured.
    var seconds: Double = 0
    /// In the measured seconds, over all viewers.
    var messages = 0
    var bytes = 0
    /// CPU of the server in the measured seconds, user and system, all threads.
    var serverCPUSeconds: Double?
    /// The share of it spent outside the kernel.
    var serverUserPercent: Double?
    var serverCPUMicrosecondsPerMessage: Double?
    /// In mode join, includes the fan-out to viewers that have already joined.
    var serverCPUMicrosecondsPerJoin: Double?
    /// Share of one core that this tool used meanwhile. Near 100, the latencies are its own.
    var generatorCPUPercent: Double = 0
    /// Share of one core that everything else on this machine used meanwhile. Above a few percent, latencies are not the server's.
    var othersCPUPercent: Double?
    /// The worst delay of the publisher behind its schedule.
    var publisherWorstDelayMs: Double = 0

    var latency = Spread()
    /// The median and the worst of the viewers' own medians.
    var medianViewerMs: Double?
    var worstViewerMs: Double?
    /// Time from connect() to the first complete keyframe, and to the earlier answer to play.
    var join = Spread()
    var playAnswer = Spread()
    var loss = Loss()
    var memory = Memory()
    var stall: Stall?
    var players: Players?

    enum Mode: String, Codable, CaseIterable { case fanout, idle, join, stall }

    /// Milliseconds.
    struct Spread: Codable {
        var p50: Double?
        var p99: Double?
        var max: Double?
    }

    /// Over the whole run, without viewers that stalled on purpose.
    struct Loss: Codable {
        /// Frames that never arrived, including those still missing long after the publisher stopped.
        var missing = 0
        var duplicates = 0
        var outOfOrder = 0
        var backwardTimestamps = 0
        /// Frames with a wrong byte or length, or of another room.
        var damaged = 0
        /// Viewers that were refused, disconnected, or never got a frame.
        var failedViewers = 0
        /// The reason why the first of them failed.
        var firstFailure: String?

        /// Whether every viewer has every byte, once, in order.
        var isNone: Bool { self.missing + self.duplicates + self.outOfOrder + self.damaged + self.failedViewers == 0 }
    }

    /// Resident memory of the server.
    struct Memory: Codable {
        var beforeKiB: Double?
        /// With all viewers connected, at the end of the measured seconds.
        var withViewersKiB: Double?
        var perViewerKiB: Double?
    }

    /// Viewers that played while others joined.
    struct Players: Codable {
        var count: Int
        var before: Spread
        var meanwhile: Spread
    }

    struct Stall: Codable {
        var stalledViewers = 0
        /// The highest rise of resident memory over its value before the stall.
        var growthKiB: Double?
        var growthPerStalledViewerKiB: Double?
        /// Stalled viewers that had been disconnected by the time they resumed reading.
        var disconnected = 0
    }

    /// Lines for human readers.
    var text: String {
        var rows: [(String, String)] = [
            ("server", self.server), ("scenario", "\(self.scenario) (\(self.mode.rawValue))"),
            ("load", "\(self.rooms) room(s) × \(self.viewersPerRoom) viewers, \(self.shape.videoKbps) + \(self.shape.audioKbps) kbit/s"),
        ]
        if self.mode != .idle {
            let rate = Double(self.bytes) * 8 / 1e6 / Swift.max(self.seconds, 1e-9)
            rows += [
                ("measured", "\(Self.format(self.seconds)) s, \(self.messages) messages, \(Self.format(rate)) Mbit/s"),
                ("latency", Self.spread(self.latency)),
                ("viewers behind live", "median \(Self.optional(self.medianViewerMs)) ms, worst \(Self.optional(self.worstViewerMs)) ms"),
                ("join", Self.spread(self.join)), ("  play answered", Self.spread(self.playAnswer)),
                (
                    "server CPU",
                    "\(Self.optional(self.serverCPUMicrosecondsPerMessage)) µs/message, "
                        + (self.serverCPUMicrosecondsPerJoin.map { "\(Self.format($0)) µs/join, " } ?? "")
                        + "\(Self.optional(self.serverCPUSeconds)) s in all"
                ),
                (
                    "loss",
                    "missing \(self.loss.missing), duplicates \(self.loss.duplicates), out of order \(self.loss.outOfOrder), "
                        + "damaged \(self.loss.damaged), backward timestamps \(self.loss.backwardTimestamps)"
                ),
            ]
        }
        rows += [
            ("failed viewers", "\(self.loss.failedViewers)\(self.loss.firstFailure.map { " (\($0))" } ?? "")"),
            (
                "server memory",
                "\(Self.optional(self.memory.beforeKiB)) → \(Self.optional(self.memory.withViewersKiB)) KiB, "
                    + "\(Self.optional(self.memory.perViewerKiB)) KiB/viewer"
            ),
        ]
        if let stall = self.stall {
            rows.append(
                (
                    "stalled viewers",
                    "\(stall.stalledViewers), growth \(Self.optional(stall.growthPerStalledViewerKiB)) KiB each, "
                        + "\(stall.disconnected) disconnected"
                ))
        }
        if let players = self.players {
            rows += [
                ("\(players.count) players", "before: " + Self.spread(players.before)),
                ("", "meanwhile: " + Self.spread(players.meanwhile)),
            ]
        }
        rows.append(
            (
                "this tool",
                "\(Self.format(self.generatorCPUPercent)) % of a core (others \(Self.optional(self.othersCPUPercent)) %), publisher at most \(Self.format(self.publisherWorstDelayMs)) ms late"
            ))
        return rows.map { name, value in Self.pad(name, 21) + value }.joined(separator: "\n")
    }

    private static func spread(_ spread: Spread) -> String {
        "p50 \(self.optional(spread.p50)) ms, p99 \(self.optional(spread.p99)) ms, max \(self.optional(spread.max)) ms"
    }

    static func optional(_ value: Double?) -> String { value.map(self.format) ?? "–" }

    /// Two decimals below 100, none above and for whole numbers.
    static func format(_ value: Double) -> String {
        guard abs(value) < 100, value != value.rounded() else { return String(Int(value.rounded())) }
        let hundredths = Int((abs(value) * 100).rounded())
        let fraction = hundredths % 100
        return "\(value < 0 && hundredths > 0 ? "-" : "")\(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction)"
    }

    static func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: Swift.max(1, width - text.count))
    }
}
