import HTTPAPI
import Notifications
import RoomRegistry
import Rooms
import Support

/// Rooms, their events, and the nodes that share them.
extension Metrics {
    mutating func addRooms(_ figures: StoreFigures) {
        self.page.gauges(
            "earshot_rooms", "Rooms by state now.", "state", RoomState.allCases.map { ($0.rawValue, Double(figures.rooms[$0] ?? 0)) })
        self.page.gauge(
            "earshot_webhooks_waiting", "Deliveries that wait for their target, up to \(StoreFigures.mostCounted).",
            figures.waitingDeliveries)
        self.page.gauges(
            "earshot_webhook_target_waiting", "Deliveries that wait for each target, counted every 10 s by the node that sends.", "target",
            self.services.webhookLog.waiting.map { ($0.target, Double($0.count)) })
        let ageMs = figures.oldestDeliveryAt.map { max(0, self.services.rooms.now - $0) } ?? 0
        self.page.gauge("earshot_webhook_oldest_age_seconds", "Age of the oldest waiting delivery; 0 without any.", Double(ageMs) / 1_000)
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
}
