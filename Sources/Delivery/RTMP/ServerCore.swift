package import Access
package import Listening
package import Logging
package import NIOCore
package import Notifications
package import Outbound
package import Relay
package import Rooms
package import ServerConfiguration
package import Support
import Synchronization

/// State shared by all connections of a server. Any thread.
package final class ServerCore: Sendable {
    package let config: ServerConfig
    package let registry = StreamRegistry()
    /// Streams of MP4 pieces, under the paths of their source streams.
    package let pieces = StreamRegistry(isListed: false)
    package let remuxers = RemuxTable()
    package let hlsSessions = HLSSessions()
    package let relayTasks = RelayTasks()
    let origins = LoopDetector()
    package let talk: Talkback
    let pushRates: PushRates
    package let snapshots = SnapshotMaker()
    package let recordings: Recordings
    package let rooms: RoomRegistry
    package let keys: KeyRing
    package let admissions: AdmissionRules
    /// The server's own requests: hooks and webhooks.
    package let outbound: OutboundClient
    package let counters = Counters()
    package let events = EventHub()
    package let tickets = EventTickets()
    /// The health of webhook targets, and the log lines about it.
    package let webhookLog: WebhookLog
    package let readiness = Readiness()
    let storeWatch: StoreWatch
    package let log: Logger
    /// Separate throttles for log lines of closed connections, begun roles and rooms. One kind must not hold another back.
    package let closeFlood = LogRateLimiter()
    package let roleFlood = LogRateLimiter()
    let roomFlood = LogRateLimiter()
    let eventObservers = Mutex<[@Sendable ([RoomEvent]) -> Void]>([])
    package let admission: ConnectionAdmission
    package let memory: MemoryBudget
    /// Accept gates: one for the listeners of RTMP and RTMPS, one for those of HTTP and HTTPS.
    let rtmpGate: AcceptGate
    package let httpGate: AcceptGate
    package let clients: ClientAddresses
    package let proxies: ProxyEntrance
    /// The room of each push.
    let activePushes = ActivePushes()
    package let shownPeaks = ShownPeaks()
    package let placement: Placement
    private let loops: [ObjectIdentifier: LoopContext]
    private let isDraining = Atomic<Bool>(false)
    private let boundTo = Mutex<BoundAddresses?>(nil)
    private let sessionIDs = Atomic<UInt64>(0)

    package init(config: ServerConfig, rooms: RoomRegistry, keys: KeyRing, group: any EventLoopGroup, log: Logger) {
        self.config = config
        self.rooms = rooms
        self.keys = keys
        self.recordings = Recordings(config: config, rooms: rooms, log: log)
        let outbound = OutboundClient(config: config.outbound)
        self.outbound = outbound
        self.admissions = AdmissionRules(config: config, keys: keys, outbound: outbound, log: log)
        self.log = log
        self.storeWatch = StoreWatch(log: log)
        self.memory = MemoryBudget(config.limits)
        self.webhookLog = WebhookLog(log)
        self.admission = ConnectionAdmission(total: config.limits.connections, perAddress: config.limits.connectionsPerAddress)
        var policy = RelayPolicy(config)
        policy.ledger = self.memory.ledger
        let loops = group.makeIterator().map { [policy] loop in LoopContext(loop, policy, log) }
        let pressures = loops.map(\.relay.pressure)
        self.loops = Dictionary(uniqueKeysWithValues: loops.map { (ObjectIdentifier($0.relay.eventLoop), $0) })
        self.placement = Placement(group, pressures)
        self.rtmpGate = AcceptGate(limit: config.limits.connections, pace: AcceptPace(pressures), counters: self.counters, log: log)
        // Only some of HTTP's connections are viewers, and each counts as opening for a tenth of a second.
        self.httpGate = AcceptGate(
            limit: config.limits.httpConnections, pace: AcceptPace(pressures, factor: 4, openingMs: 100),
            reserve: AcceptReserve(config), counters: self.counters, log: log)
        self.clients = ClientAddresses(trusted: config.access.trustedProxies, log: log)
        self.proxies = ProxyEntrance(
            from: config.access.proxyProtocolFrom, deadlineMs: config.limits.handshakeMs, clients: self.clients, counters: self.counters,
            flood: self.closeFlood, sweepers: LoopSweepers(group), log: log)
        self.pushRates = PushRates(config.limits)
        self.talk = Talkback(main: self.registry, cores: loops.count)
    }

    /// A new id for a connection that publishes or plays, as in `GET /sessions`.
    package func nextSessionID() -> UInt64 { self.sessionIDs.add(1, ordering: .relaxed).newValue }

    /// Starts what follows a publish by itself: recordings, relay tasks and remuxing. Any thread.
    func publishBegan(_ stream: Relay.Stream, _ grant: PushGrant) {
        self.recordings.publishBegan(stream, grant, core: self)
        self.relayTasks.streamBegan(stream.path, of: self)
        guard self.config.hls.always else { return }
        let path = stream.path
        Task { _ = try? await self.remuxers.use(path, of: self) }
    }

    package func start() {
        for loop in self.loops.values { loop.start() }
    }

    package func stop() {
        self.talk.stop()
        for remuxer in self.remuxers.all { Task { await remuxer.stop() } }
        for loop in self.loops.values { loop.stop() }
    }

    /// The server's state on this loop. The loop must be one of the group that the core was made with.
    package func context(of eventLoop: any EventLoop) -> LoopContext? {
        self.loops[ObjectIdentifier(eventLoop)]
    }

    package var allLoops: [LoopContext] { Array(self.loops.values) }

    /// The addresses of the server's ports; nil until all are open.
    package var addresses: BoundAddresses? { self.boundTo.withLock { $0 } }

    package func isBound(to addresses: BoundAddresses) { self.boundTo.withLock { $0 = addresses } }

    package var draining: Bool { self.isDraining.load(ordering: .relaxed) }

    /// Announces the shutdown to every client. Connections close after a moment for their last bytes.
    package func drain() async {
        self.isDraining.store(true, ordering: .relaxed)
        for loop in self.loops.values {
            // The loop group outlives the server; a submit cannot fail.
            _ = try? await loop.relay.eventLoop.submit { loop.closeAll(.serverShutdown) }.get()
        }
    }

    /// Collects values from every loop, on each loop.
    package func collect<Value: Sendable>(_ body: @escaping @Sendable (LoopContext) -> [Value]) async throws -> [Value] {
        var all: [Value] = []
        for loop in self.loops.values {
            all += try await loop.relay.eventLoop.submit { body(loop) }.get()
        }
        return all
    }
}

extension AcceptReserve {
    private static let most = 16

    /// HTTP's reserve, for addresses that may call the API. Excludes proxies, whose clients show only later.
    init(_ config: ServerConfig) {
        let access = config.access
        self.init(places: min(Self.most, max(2, config.limits.httpConnections / 32))) { peer in
            access.apiFrom.contains(address: peer) && !access.proxyProtocolFrom.contains(address: peer)
                && !access.trustedProxies.contains(address: peer)
        }
    }
}

extension RelayPolicy {
    init(_ config: ServerConfig) {
        self.init()
        let relay = config.relay
        self.skipBehindMs = relay.skipBehindMs
        self.maxBehindMs = relay.maxBehindMs
        self.overloadMs = config.limits.lagMs
        self.coalesceMs = relay.coalesceMs
        self.coalesceByAppMs = relay.coalesceByAppMs
        self.maxQueueByAppMs = [TalkStreamName.app: config.talk.maxQueueMs]
        self.grace = GracePeriods(config.rooms.policy)
        self.ring.gopBytes = relay.gopCache.maxBytes
        self.ring.gopMs = relay.gopCache.maxDurationMs
        self.ring.totalBytes = relay.gopCache.maxBytes * 2
    }
}
