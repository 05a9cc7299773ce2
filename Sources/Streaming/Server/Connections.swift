package import Listening
package import Logging
package import NIOCore
import Relay
import Rooms
package import ServerConfiguration
package import Support
import Synchronization

/// Shared by all connections: admission by address, ids, counts and log lines. Any thread.
package final class Connections: Sendable {
    package let admission: ConnectionAdmission
    /// The places of players over HLS, who have no connections.
    package let hls: HLSPlaces
    package let counters = ServerCounters()
    /// Accept gates: one for the listeners of RTMP and RTMPS, one for those of HTTP and HTTPS.
    package let rtmpGate: AcceptGate
    package let httpGate: AcceptGate
    package let clients: ClientAddresses
    package let proxies: ProxyEntrance
    /// Limits the log's lines about closed connections.
    package let closes: CloseLog
    /// Throttles the lines of begun roles.
    package let roleFlood = LogRateLimiter()
    /// The flight recorders of its sessions.
    package let traces = SessionTraces()
    package let refusals = RecentRefusals()
    package let log: Logger
    private let settings: Live<ServerConfig>
    private let boundTo = Mutex<BoundAddresses?>(nil)
    private let sessionIDs: Atomic<UInt64>
    private let waiting = Atomic<Int>(0)

    /// `node`: this server's number among those that share the registry, which makes ids unique among them; 0 for a server that is alone.
    package init(_ settings: Live<ServerConfig>, pressures: [LoopPressure], sweepers: LoopSweepers, node: Int64 = 0, log: Logger) {
        let config = settings.current
        self.settings = settings
        self.sessionIDs = Atomic(UInt64(clamping: node) << SessionNumber.nodeShift)
        self.log = log
        self.closes = CloseLog { reason, address, count in
            var metadata: Logger.Metadata = ["reason": "\(reason.rawValue)", "connections": "\(count)"]
            if let address { metadata["remote"] = "\(address)" }
            log.info("More connections closed", metadata: metadata)
        }
        self.admission = ConnectionAdmission(.connections(config.limits))
        self.hls = HLSPlaces(.hls(config.limits))
        // A newcomer takes the place of one that has done nothing, whose socket closes in a moment.
        self.rtmpGate = AcceptGate(
            limit: config.limits.connections, pace: AcceptPace(pressures), reserve: AcceptReserve(pushes: settings, self.admission),
            counters: self.counters, log: log)
        // Only some of HTTP's connections are viewers, and each counts as opening for a tenth of a second.
        self.httpGate = AcceptGate(
            limit: config.limits.httpConnections, pace: AcceptPace(pressures, factor: 4, openingMs: 100),
            reserve: AcceptReserve(api: settings), counters: self.counters, log: log)
        self.clients = ClientAddresses(trusted: config.access.trustedProxies, log: log)
        self.proxies = ProxyEntrance(
            from: config.access.proxyProtocolFrom, deadlineMs: config.limits.handshakeMs, clients: self.clients, counters: self.counters,
            flood: LogRateLimiter(), sweepers: sweepers, log: log)
    }

    /// Applies changed limits and proxies. Connections that are open stay.
    package func set(_ config: ServerConfig) {
        self.admission.set(.connections(config.limits))
        self.hls.set(.hls(config.limits))
        self.rtmpGate.set(limit: config.limits.connections)
        self.httpGate.set(limit: config.limits.httpConnections)
        self.clients.set(trusted: config.access.trustedProxies)
        self.proxies.set(from: config.access.proxyProtocolFrom, deadlineMs: config.limits.handshakeMs)
    }

    /// Gives a new RTMP connection its place. Returns nil if it is admitted.
    package func enter(_ id: UInt64, _ peer: SocketAddress?, _ channel: any Channel) -> CloseReason? {
        let mayPush = peer.map { self.settings.access.publishFrom.contains(address: $0) } ?? false
        return self.admission.enter(id, HostKey.of(peer), mayPush: mayPush, channel)
    }

    /// A new id for a connection that publishes or plays, as in `GET /sessions`.
    package func nextSessionID() -> UInt64 { self.sessionIDs.add(1, ordering: .relaxed).newValue }

    /// HTTP players that wait for a publisher. They count as connections, and are not yet sessions.
    package var waitingPlayers: Int { self.waiting.load(ordering: .relaxed) }

    package func playerWaits() { self.waiting.add(1, ordering: .relaxed) }
    package func playerWaitsNoLonger() { self.waiting.subtract(1, ordering: .relaxed) }

    /// The addresses of the server's ports; nil until all are open.
    package var addresses: BoundAddresses? { self.boundTo.withLock { $0 } }

    package func isBound(to addresses: BoundAddresses) { self.boundTo.withLock { $0 = addresses } }

    /// Counts a viewer that was refused before it counted as a connection.
    package func countRefused(_ reason: CloseReason) {
        self.counters.update {
            $0.connectionsAccepted += 1
            $0.closed[reason, default: 0] += 1
        }
    }
}

extension AcceptReserve {
    private static let most = 16

    /// HTTP's reserve, for addresses that may call the API. Excludes proxies, since their clients' addresses are known only later.
    init(api config: Live<ServerConfig>) {
        self.init(places: min(Self.most, max(2, config.limits.httpConnections / 32))) { peer in
            let access = config.access
            return access.apiFrom.contains(address: peer) && !access.proxyProtocolFrom.contains(address: peer)
                && !access.trustedProxies.contains(address: peer)
        }
    }

    /// RTMP's reserve, for those who have pushed lately or need no credential for it. Excludes proxies for the same reason.
    init(pushes config: Live<ServerConfig>, _ admission: ConnectionAdmission) {
        self.init(places: 2) { peer in
            let access = config.access
            return !access.proxyProtocolFrom.contains(address: peer)
                && (access.publishFrom.contains(address: peer) || admission.hasPushed(HostKey.of(peer)))
        }
    }
}

extension PlaceTable.Limits {
    /// Plays leave some places to pushes.
    static func connections(_ limits: ServerConfig.Limits) -> Self {
        Self(total: limits.connections, perHost: limits.connectionsOfAddress, reserved: limits.connectionsForPushes)
    }

    static func hls(_ limits: ServerConfig.Limits) -> Self { Self(total: limits.hlsPlayers, perHost: limits.hlsPlayersOfAddress) }
}
