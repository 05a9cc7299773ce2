package import Access
package import HTTPAPI
import Listening
import Logging
package import Notifications
package import Packaging
package import RoomRegistry
import Rooms
package import ServerConfiguration
package import Streaming
package import Support
package import Statistics
import Synchronization
package import Talkback

/// The services that the API's calls use. Any thread.
package final class APIServices: Sendable {
    let config: Live<ServerConfig>
    private let liveKeys: Live<KeyRing>
    let streams: LiveStreams
    let connections: Connections
    let control: LiveControl
    let memory: MemoryBudget
    let rooms: RoomRegistry
    let recordings: Recordings
    let snapshots: SnapshotMaker
    let talk: Talkback
    let events: EventHub
    let webhookLog: WebhookLog
    /// Nil when the setting turns statistics off.
    let statistics: Statistics?
    let webhookTester: WebhookTester
    /// Other parts of the server with figures of their own.
    let others: [any MetricSource]
    package let figures: MetricFigures
    /// Tickets for the event feed, which replace tokens in URLs.
    package let tickets: EventTickets
    private let running = Mutex(Operator())

    /// Weak, because the operations use all parts, including this one.
    private struct Operator {
        weak var operations: (any ServerOperations)?
    }

    package init(
        _ config: Live<ServerConfig>, _ keys: Live<KeyRing>, _ rooms: RoomRegistry, streams: LiveStreams, connections: Connections,
        control: LiveControl, memory: MemoryBudget, recordings: Recordings, snapshots: SnapshotMaker,
        talk: Talkback, events: EventHub, webhookLog: WebhookLog, statistics: Statistics?, webhookTester: WebhookTester,
        others: [any MetricSource], figures: MetricFigures
    ) {
        self.config = config
        self.liveKeys = keys
        self.rooms = rooms
        self.streams = streams
        self.connections = connections
        self.control = control
        self.memory = memory
        self.recordings = recordings
        self.snapshots = snapshots
        self.talk = talk
        self.events = events
        self.webhookLog = webhookLog
        self.statistics = statistics
        self.webhookTester = webhookTester
        self.others = others
        self.figures = figures
        self.tickets = EventTickets(ClusterKey(config.current))
    }

    /// Sets the operations for calls about the server's run. Call before the ports open.
    package func operate(_ operations: any ServerOperations) {
        self.running.withLock { $0.operations = operations }
        self.control.observeOutcomes { [weak self] in self?.handle($0) }
    }

    var operations: (any ServerOperations)? { self.running.withLock { $0.operations } }
    var keys: KeyRing { self.liveKeys.current }
    var clients: ClientAddresses { self.connections.clients }
    var log: Logger { self.connections.log }
}
