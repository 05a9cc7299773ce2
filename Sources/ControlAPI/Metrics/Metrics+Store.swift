import HTTPAPI
import RoomRegistry
import Rooms
import Statistics
import Streaming
import Support
import Talkback

/// The store, rooms and their events, statistics, talk.
extension Metrics {
    mutating func addStore(_ store: StoreStatus) {
        let figures = self.services.figures.current
        self.page.gauge("earshot_store_failing", "1 while the store cannot be written.", store.isFailing ? 1 : 0)
        if let free = store.freeBytes { self.page.gauge("earshot_store_free_bytes", "Bytes free on the store's disk.", Double(free)) }
        self.page.gauge(
            "earshot_store_min_free_bytes", "Bytes that must stay free there, or nothing new begins: data.minFree.",
            Double(store.minFreeBytes))
        self.page.gauge("earshot_store_waiting_facts", "Facts that wait to be written to the store.", store.waitingFacts)
        self.page.gauge("earshot_store_waiting_bytes", "Approximate bytes of the waiting facts.", store.waitingBytes)
        self.page.counter(
            "earshot_store_dropped_facts_total", "Facts dropped because too many were waiting.", UInt64(clamping: store.droppedFacts))
        self.page.histogram("earshot_store_commit_seconds", "Time of the store's transactions.", figures.commits)
        self.page.counter("earshot_store_failures_total", "Transactions that failed.", figures.failedCommits)
    }

    mutating func addRooms(_ figures: StoreFigures) {
        self.page.gauges(
            "earshot_rooms", "Rooms by state now.", "state", RoomState.allCases.map { ($0.rawValue, Double(figures.rooms[$0] ?? 0)) })
        self.page.gauge(
            "earshot_webhooks_waiting", "Deliveries that wait for their target, up to \(StoreFigures.mostCounted).",
            figures.waitingDeliveries)
        let ageMs = figures.oldestDeliveryAt.map { max(0, self.services.rooms.now - $0) } ?? 0
        self.page.gauge("earshot_webhook_oldest_age_seconds", "Age of the oldest of these; 0 without any.", Double(ageMs) / 1_000)
    }

    /// Nothing for a server that has its registry to itself. `nodes`: nil while the store cannot be read.
    mutating func addCluster(_ nodes: [ClusterNode]?) {
        guard let status = self.services.rooms.nodeStatus else { return }
        if let nodes {
            self.page.gauges(
                "earshot_cluster_nodes", "Nodes that share the registry, or did, by state.", "state",
                ClusterNode.State.allCases.map { state in (state.rawValue, Double(nodes.count { $0.state == state })) })
        }
        self.page.gauge(
            "earshot_cluster_keeper", "1 if this node applies deadlines, clears up after lost nodes and sends webhooks for all.",
            status.isKeeper ? 1 : 0)
        self.page.gauge(
            "earshot_cluster_signal_lag_seconds", "Seconds since this node last knew all that the others had done.",
            Double(status.signalLagMs) / 1_000)
        self.page.gauge(
            "earshot_cluster_lease_seconds", "What is left of this node's lease; 0 when it has ended.", Double(status.leaseMs) / 1_000)
        self.page.gauge(
            "earshot_cluster_clock_ahead_seconds", "The database's clock less this machine's.", Double(status.clockAheadMs) / 1_000)
    }

    mutating func addEvents() {
        let events = self.services.figures.current.events
        let kinds = RoomEvent.Kind.allCases
        self.page.counters(
            "earshot_room_transitions_total", "Changes of rooms' states, by the event's kind.", "kind",
            kinds.filter(\.isTransition).map { ($0.rawValue, events[$0] ?? 0) })
        self.page.counters(
            "earshot_events_total", "Events of other kinds.", "kind",
            kinds.filter { !$0.isTransition }.map { ($0.rawValue, events[$0] ?? 0) })
        self.page.counter(
            "earshot_recordings_failed_total", "Recordings that could not begin, or ended early, because of an error.",
            events[.recordFailed] ?? 0)
    }

    mutating func addTalk(_ totals: TalkTotals) {
        self.page.gauge(
            "earshot_talk_delay_seconds", "Time from the arrival of a talker's voice to its mix, for the latest talker now.",
            totals.delayMs / 1_000)
    }

    mutating func addStatistics(_ statistics: Statistics) {
        self.page.gauge("earshot_stats_paused", "1 while the statistics cannot be written.", statistics.store.problem == nil ? 0 : 1)
        self.page.gauge("earshot_stats_waiting_rows", "Rows of statistics that wait to be written.", statistics.waiting)
        self.page.counter(
            "earshot_stats_lost_rows_total", "Rows of statistics lost because too many were waiting.", UInt64(clamping: statistics.lost))
        self.page.counter(
            "earshot_stats_surplus_rows_total", "Rows of statistics deleted before their time: there were more than stats.maxRows.",
            UInt64(clamping: statistics.store.surplusRows))
    }
}
