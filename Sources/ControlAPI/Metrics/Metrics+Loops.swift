import Health
import HTTPAPI
import Listening
import Relay
import ServerConfiguration
import Streaming
import Support
import Trace

/// Connections, loops and streams, as the loops reported them.
extension Metrics {
    mutating func addConnections(_ reports: [LoopReport]) {
        let (connections, transports) = (self.services.connections, SessionSnapshot.Transport.allCases)
        self.page.gauge("earshot_connections", "RTMP and RTMPS connections now.", connections.admission.current.connections)
        self.page.gauge("earshot_publishers", "Streams that connections publish now.", connections.admission.current.publishers)
        self.page.gauge("earshot_players_waiting", "Players over HTTP that wait for a publisher now.", connections.waitingPlayers)
        self.page.gauges(
            "earshot_connections_by_protocol", "Publishers and viewers connected now, by protocol.", "protocol",
            transports.map { transport in
                (transport.rawValue, Double(reports.reduce(0) { $0 + ($1.connections[transport] ?? 0) }))
            })
        let traffic = transports.map { transport in
            reports.reduce(into: LoopFigures.Traffic()) { $0 += $1.traffic[transport] ?? LoopFigures.Traffic() }
        }
        // Ended pushes first: a push that ends in between is missing for a moment instead of being counted twice.
        let ended = self.services.streams.pulledBytes
        let pulled = self.services.figures.pulled(ended &+ self.services.figures.links.receivedBytes)
        self.page.counters(
            "earshot_received_bytes_total", "Bytes of media from publishers, without the protocol's headers; pull: from links.", "protocol",
            zip(transports, traffic).filter { $0.0 == .rtmp || $0.0 == .rtmps }.map { ($0.rawValue, $1.received) } + [("pull", pulled)])
        self.page.counters(
            "earshot_sent_bytes_total", "Bytes sent to viewers, headers included; over HLS playlists, segments and parts.", "protocol",
            zip(transports, traffic).map { ($0.rawValue, $1.sent) })
    }

    mutating func addLoops(_ reports: [LoopReport]) {
        let lags = self.services.streams.allLoops.map { loop in
            // A blocked loop cannot report its lag, but its last report grows old.
            let silentMs = loop.report.atMs.map { max(0, LoopSweeper.nowMs - $0 - Self.reportMs) } ?? 0
            return Double(max(Int64(loop.relay.pressure.lagMs), silentMs)) / 1_000
        }
        self.page.gauge("earshot_loop_lag_seconds", "Lag of the slowest event loop now.", lags.max() ?? 0)
        self.page.gauges(
            "earshot_event_loop_lag_seconds", "Lag of each event loop now.", "loop", lags.enumerated().map { ("\($0)", $1) })
        let sum = reports.reduce(into: RelayFigures.Values()) { $0.add($1.relay) }
        self.page.histogram("earshot_loop_lag_sampled_seconds", "Lag of the event loops, each sampled ten times a second.", sum.lag)
        self.page.histogram(
            "earshot_loop_lap_seconds", "Time of a lap: until all viewers of a stream on a loop have been sent what is new.", sum.lap)
        self.page.histogram("earshot_viewer_behind_seconds", "How far behind live each viewer is, sampled once a second.", sum.behind)
        self.page.histogram(
            "earshot_viewer_join_seconds", "Time from a viewer's admission to its first picture or sound, for streams that had some.",
            sum.join)
    }

    /// Milliseconds between two reports of a loop, plus an allowance for its own work.
    private static let reportMs: Int64 = 1_500

    mutating func addStreams(_ reports: [LoopReport]) {
        self.page.gauge(
            "earshot_streams_live", "Streams with a publisher now, talk mixes included.", reports.reduce(0) { $0 + $1.liveStreams })
        self.page.gauges(
            "earshot_streams_by_verdict", "Published streams by verdict now.", "verdict",
            StreamVerdict.allCases.map { verdict in (verdict.rawValue, Double(reports.reduce(0) { $0 + ($1.verdicts[verdict] ?? 0) })) })
        self.page.gauge("earshot_viewers", "Viewers of all streams now.", reports.reduce(0) { $0 + $1.viewers })
        self.addShown(reports)
    }

    /// The streams that `metrics.streams` names, by path; the first ones when there are too many.
    private mutating func addShown(_ reports: [LoopReport]) {
        guard !self.services.config.metrics.streams.isEmpty else { return }
        let all = reports.flatMap(\.shown).sorted { $0.path < $1.path }
        let shown = all.prefix(LoopReport.mostShown)
        let leftOut = all.count - shown.count + reports.reduce(0) { $0 + $1.leftOut }
        self.page.gauge("earshot_stream_series_left_out", "Streams of metrics.streams without figures here: there are too many.", leftOut)
        func each(_ name: String, _ help: String, _ value: (ShownStream) -> Double) {
            self.page.gauges("earshot_stream_\(name)", help, "stream", shown.map { ($0.path, value($0)) })
        }
        each("live", "1 while the stream has a publisher.") { $0.isLive ? 1 : 0 }
        each("viewers", "Viewers of the stream now.") { Double($0.viewers) }
        each("bytes_per_second", "Bytes a second of its audio and video, over two seconds.") { Double($0.bitsPerSecond) / 8 }
        each("frames_per_second", "Pictures a second, over two seconds.", \.framesPerSecond)
        each("verdict", "How it does: 0 good, 1 degraded, 2 bad; -1: not judged.") { stream in
            stream.verdict.flatMap { StreamVerdict.allCases.firstIndex(of: $0) }.map(Double.init) ?? -1
        }
        self.page.counters(
            "earshot_stream_received_bytes_total", "Bytes of its media, since it began.", "stream", shown.map { ($0.path, $0.bytesIn) })
    }

    mutating func addMemory(_ reports: [LoopReport]) {
        self.page.gauge("earshot_ring_bytes", "Bytes of media kept for viewers now.", reports.reduce(0) { $0 + $1.ringBytes })
        self.page.gauge(
            "earshot_gop_cache_bytes", "The part of these that joiners begin with: groups of pictures.",
            reports.reduce(0) { $0 + $1.cachedBytes })
        self.page.gauge("earshot_hls_window_bytes", "Bytes of HLS segments and parts in memory now.", self.services.figures.windowBytes)
        let traces = self.services.connections.traces.store
        self.page.gauge("earshot_trace_bytes", "Bytes of the sessions' traces now.", traces.used)
        self.page.counter(
            "earshot_traces_refused_total", "Times that a trace was not made or did not grow for want of memory.",
            UInt64(clamping: traces.refused))
    }
}
