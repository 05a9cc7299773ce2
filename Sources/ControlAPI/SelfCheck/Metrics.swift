import AppServer
import Delivery
import Health
import Listening
import Relay
import RoomStore
import Rooms
import Statistics
import Support
import Synchronization
import Talkback
import Trace

/// Counters and gauges in Prometheus' text format 0.0.4.
struct Metrics {
    static let mediaType = "text/plain; version=0.0.4; charset=utf-8"
    /// Members of ``ServerTotals/outputType`` that may also fall.
    private static let gauges: Set<String> = ["talkMixes", "memoryUsedBytes", "memoryLimitBytes", "memoryTrimLongestMs"]

    private(set) var text = ""

    static func read(_ services: APIServices) async throws -> Metrics {
        let streams = try await services.streams.collect { $0.relay.streamSnapshots() }
        var metrics = Metrics()
        metrics.add("earshot_connections", "RTMP and RTMPS connections now.", Double(services.connections.admission.current.connections))
        metrics.add(
            "earshot_publishers", "Streams that connections publish now.", Double(services.connections.admission.current.publishers))
        let live = streams.count { if case .live = $0.phase { true } else { false } }
        metrics.add("earshot_streams_live", "Streams with a publisher now, talk mixes included.", Double(live))
        metrics.add(streams.compactMap(\.health))
        metrics.add("earshot_viewers", "Viewers of all streams now.", Double(streams.reduce(0) { $0 + $1.viewers }))
        metrics.add("earshot_ring_bytes", "Bytes of media kept for viewers now.", Double(streams.reduce(0) { $0 + $1.ringBytes }))
        metrics.add(
            "earshot_players_waiting", "Players over HTTP that wait for a publisher now.", Double(services.connections.waitingPlayers))
        let lags = services.streams.allLoops.map { Double($0.relay.pressure.lagMs) / 1_000 }
        metrics.add("earshot_loop_lag_seconds", "Lag of the slowest event loop now.", lags.max() ?? 0)
        metrics.head("earshot_event_loop_lag_seconds", "Lag of each event loop now.", true)
        for (loop, lag) in lags.enumerated() { metrics.line("earshot_event_loop_lag_seconds{loop=\"\(loop)\"}", .number(lag)) }
        let connections = try await services.streams.collect { [$0.figures().connections] }
        metrics.head("earshot_connections_by_protocol", "Publishers and viewers connected now, by protocol.", true)
        for transport in SessionSnapshot.Transport.allCases {
            let count = connections.reduce(0) { $0 + ($1[transport] ?? 0) }
            metrics.line("earshot_connections_by_protocol{protocol=\"\(transport.rawValue)\"}", .integer(Int64(count)))
        }
        metrics.add(ProcessFigures())
        metrics.add(services.rooms.storeStatus)
        let traces = services.connections.traces.store
        metrics.add("earshot_trace_bytes", "Bytes of the sessions' traces now.", Double(traces.used))
        metrics.head("earshot_traces_refused_total", "Times that a trace was not made or did not grow for want of memory.", false)
        metrics.line("earshot_traces_refused_total", .integer(Int64(clamping: traces.refused)))
        metrics.addCounters(services.totals)
        metrics.add(services.apps)
        if let statistics = services.statistics { metrics.add(statistics) }
        return metrics
    }

    private mutating func addCounters(_ values: ServerTotals) {
        guard case .object(let members) = ServerTotals.outputType.write(values) else { return }
        let help = Dictionary(ServerTotals.fields.map { ($0.property.name, $0.property.help) }) { first, _ in first }
        for member in members {
            let isGauge = Self.gauges.contains(member.name)
            let name = "earshot_\(Self.snake(member.name))\(isGauge ? "" : "_total")"
            self.head(name, help[member.name] ?? "", isGauge)
            switch member.value {
            case .object(let parts):
                // The names are cases of an enumeration: no label needs escaping.
                for part in parts { self.line("\(name){reason=\"\(part.name)\"}", part.value) }
            default: self.line(name, member.value)
            }
        }
    }

    /// Under the names that Prometheus' own libraries give them.
    private mutating func add(_ process: ProcessFigures) {
        self.head("process_cpu_seconds_total", "Seconds of CPU that the server has used.", false)
        self.line("process_cpu_seconds_total", .number(process.cpuSeconds))
        if let runs = process.runsForSeconds {
            self.add("process_uptime_seconds", "Seconds since the server was started.", runs)
        }
        if let bytes = SystemMemory().resident { self.add("process_resident_memory_bytes", "Bytes of the server in RAM.", Double(bytes)) }
    }

    private mutating func add(_ store: StoreStatus) {
        self.add("earshot_store_failing", "1 while the store cannot be written.", store.isFailing ? 1 : 0)
        if let free = store.freeBytes { self.add("earshot_store_free_bytes", "Bytes free on the store's disk.", Double(free)) }
        self.add("earshot_store_waiting_facts", "Facts that wait to be written to the store.", Double(store.waitingFacts))
        self.add("earshot_store_waiting_bytes", "Approximate bytes of the waiting facts.", Double(store.waitingBytes))
        self.head("earshot_store_dropped_facts_total", "Facts dropped because too many were waiting.", false)
        self.line("earshot_store_dropped_facts_total", .integer(Int64(store.droppedFacts)))
    }

    private mutating func add(_ apps: AppServices) {
        let (values, mesh) = (apps.counters.current, apps.mesh.size)
        self.add("earshot_app_connections", "Mesh and channel connections now.", Double(values.connections))
        self.add("earshot_mesh_rooms", "Mesh rooms now.", Double(mesh.rooms))
        for (name, help, value) in [
            ("messages", "Messages received on mesh and channel connections.", values.messages),
            ("bad_messages", "Messages among these that could not be taken.", values.badMessages),
            ("undelivered", "Mesh frames dropped because they were for somebody in no or another room.", values.undelivered),
            ("push_heartbeats", "Reports of broadcasters.", values.heartbeats),
            ("rongcloud_failed", "Calls of RongCloud's API without a good answer.", values.rongCloudFailed),
            ("rongcloud_dropped", "Calls of RongCloud's API given up because too many waited.", values.rongCloudDropped),
        ] {
            self.head("earshot_app_\(name)_total", help, false)
            self.line("earshot_app_\(name)_total", .integer(Int64(clamping: value)))
        }
        self.head("earshot_app_cut_total", "Mesh and channel connections that the server cut, by reason.", false)
        for cut in AppCounters.Cut.allCases {
            self.line("earshot_app_cut_total{reason=\"\(cut.rawValue)\"}", .integer(Int64(clamping: values.cut[cut] ?? 0)))
        }
        self.head("earshot_tencent_calls_total", "Calls of the Tencent-compatible API, by error code; none: done.", false)
        for (code, count) in values.tencentCalls.sorted(by: { $0.key < $1.key }) {
            self.line("earshot_tencent_calls_total{code=\"\(code.isEmpty ? "none" : code)\"}", .integer(Int64(clamping: count)))
        }
    }

    private mutating func add(_ healths: [StreamHealth]) {
        self.head("earshot_streams_by_verdict", "Published streams by verdict now.", true)
        for verdict in StreamVerdict.allCases {
            let count = healths.count { $0.verdict == verdict }
            self.line("earshot_streams_by_verdict{verdict=\"\(verdict.rawValue)\"}", .integer(Int64(count)))
        }
    }

    private mutating func add(_ statistics: Statistics) {
        self.add("earshot_stats_paused", "1 while the statistics cannot be written.", statistics.store.problem == nil ? 0 : 1)
        self.add("earshot_stats_waiting_rows", "Rows of statistics that wait to be written.", Double(statistics.waiting))
        self.head("earshot_stats_lost_rows_total", "Rows of statistics lost because too many were waiting.", false)
        self.line("earshot_stats_lost_rows_total", .integer(Int64(clamping: statistics.lost)))
        self.head(
            "earshot_stats_surplus_rows_total", "Rows of statistics deleted before their time: there were more than stats.maxRows.", false)
        self.line("earshot_stats_surplus_rows_total", .integer(Int64(clamping: statistics.store.surplusRows)))
    }

    private mutating func add(_ name: String, _ help: String, _ value: Double) {
        self.head(name, help, true)
        self.line(name, .number(value))
    }

    private mutating func head(_ name: String, _ help: String, _ isGauge: Bool) {
        self.text += "# HELP \(name) \(help)\n# TYPE \(name) \(isGauge ? "gauge" : "counter")\n"
    }

    private mutating func line(_ name: String, _ value: JSONValue) {
        switch value {
        case .integer(let value): self.text += "\(name) \(value)\n"
        case .number(let value): self.text += "\(name) \(value)\n"
        default: break
        }
    }

    /// Turns "talkDroppedMs" into "talk_dropped_ms".
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
