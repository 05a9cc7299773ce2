import Health
import HTTPAPI
import Listening
import Relay
import RoomRegistry
import Rooms
import Statistics
import Streaming
import Support
import Synchronization
import Talkback
import Trace

/// Everything that the server counts, for Prometheus.
///
/// Uses the loops' reports of the last second instead of asking the event loops. The page does not grow with the names that peers choose.
struct Metrics {
    let services: APIServices
    var page = MetricsText()

    /// The page, shared by all requests at about the same time.
    static func bytes(_ services: APIServices) async throws -> [UInt8] {
        try await services.figures.page.bytes { await Metrics.make(services) }
    }

    private static func make(_ services: APIServices) async -> [UInt8] {
        var metrics = Metrics(services: services)
        // Reads files and the file system.
        let system = await DiskWork.run { SystemFigures(services) }
        let (reports, totals) = (services.streams.reports, services.totals)
        metrics.addProcess(system)
        metrics.addConnections(reports)
        metrics.addLoops(reports)
        metrics.addStreams(reports)
        metrics.addCounters(totals)
        metrics.addLimits(totals)
        metrics.addMemory(reports)
        metrics.addStore(system.store)
        // Leaves out the rooms while the store cannot be read; the page reports that failure.
        if let figures = try? await services.rooms.figures() { metrics.addRooms(figures) }
        metrics.addCluster(try? await services.rooms.nodes())
        metrics.addEvents()
        metrics.addTalk(totals.talk.totals)
        metrics.addHTTP()
        metrics.addWebRTC()
        if let statistics = services.statistics { metrics.addStatistics(statistics) }
        for other in services.others { other.write(to: &metrics.page) }
        return Array(metrics.page.text.utf8)
    }

    // MARK: Totals

    /// Members of ``ServerTotals/outputType`` that may also fall.
    private static let gauges: Set<String> = ["talkMixes", "memoryUsedBytes", "memoryLimitBytes", "memoryTrimLongestMs"]

    private mutating func addCounters(_ values: ServerTotals) {
        guard case .object(let members) = ServerTotals.outputType.write(values) else { return }
        let help = Dictionary(ServerTotals.fields.map { ($0.property.name, $0.property.help) }) { first, _ in first }
        for member in members {
            let isGauge = Self.gauges.contains(member.name)
            let (unitless, perUnit) = Self.baseUnit(member.name)
            let name = "earshot_\(Self.snake(unitless))\(isGauge ? "" : "_total")"
            // Help texts of the API speak of milliseconds; Prometheus has seconds.
            let words = (help[member.name] ?? "").replacing("Milliseconds of", with: "Seconds of").replacing(", in milliseconds", with: "")
            self.page.family(name, isGauge ? .gauge : .counter, words)
            switch member.value {
            case .object(let parts): for part in parts { self.page.sample(name, ["reason": part.name], Self.number(part.value)) }
            default: self.page.sample(name, Self.number(member.value) / perUnit)
            }
        }
    }

    private static func number(_ value: JSONValue) -> Double {
        switch value {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: 0
        }
    }

    /// Prometheus counts in seconds: "talkDroppedMs" is "talkDroppedSeconds" there.
    private static func baseUnit(_ name: String) -> (name: String, perUnit: Double) {
        name.hasSuffix("Ms") ? (name.dropLast(2) + "Seconds", 1_000) : (name, 1)
    }

    /// Turns "talkDroppedFrames" into "talk_dropped_frames".
    private static func snake(_ name: String) -> String {
        name.reduce(into: "") { $0 += $1.isUppercase ? "_\($1.lowercased())" : String($1) }
    }
}

extension APIServices {
    /// Everything that is counted, now.
    package var totals: ServerTotals {
        ServerTotals(
            counters: self.connections.counters.current, logLinesDropped: LogLoss.lines.load(ordering: .relaxed), talk: self.talk.totals,
            memory: (self.memory.ledger.used, self.memory.ledger.limit, self.memory.current))
    }
}
