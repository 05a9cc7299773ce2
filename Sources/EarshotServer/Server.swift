import Access
import AppServer
import Console
import ControlAPI
import HTTPAPI
package import HTTPServer
package import Hummingbird
import LibC
import Links
package import Listening
package import Logging
import NIOCore
import Notifications
import Packaging
import Playback
import RTMPServer
import RoomRegistry
package import Rooms
package import ServerConfiguration
import ServerData
package import ServiceLifecycle
import Sockets
import Statistics
import Store
import Streaming
package import Support
import Synchronization
import UnixSignals

/// A whole server: RTMP listeners, HTTP, and all services. Call `bind`, then `run` (or run `services` in your own group).
package final class Server: Sendable {
    package let parts: ServerParts
    private let config: ServerConfig
    private let log: Logger
    private let certificate: CertificateStore?
    private let listeners: [RTMPListener]
    /// HTTP, and HTTPS when there is a certificate.
    package let http: [HTTPService]
    private let httpConnections: HTTPServerChannel.Shared
    package let sockets: ListeningSockets
    private let webhooks: WebhookDispatcher
    private let firstToken = Mutex<String?>(nil)
    private let consoleLogin: ConsoleLogin?
    private let auditor: Auditor
    package let operations: Operations
    /// Answers the requests of all HTTP ports.
    package let responder: RouterResponder<APIContext>
    /// Nil when no service manager started this process.
    private let manager = ServiceManager.ofThisProcess()
    private let signals = Mutex<Signals?>(nil)

    /// Trapped signals. A reload waits for its file; nothing waits for a reload.
    private struct Signals {
        let orders: UnixSignalsSequence
        let reloads: UnixSignalsSequence
    }

    /// A one-time code for the console, valid for five minutes on this machine; nil without a console or a valid admin token.
    package func consoleCode() async -> String? { try? await self.consoleLogin?.firstCode() }

    /// The file with the first token, once bound; nil when there is no such file (any more).
    package var tokenFile: String? { self.firstToken.withLock { $0 } }

    /// Throws when a certificate, the store or the keys cannot be read. Blocks. `clock`: room time, if it is not this machine's.
    ///
    /// `origins`: the sources of the settings, by path. `reloading`: how to reload the settings of a process that is the server's own, which then
    /// listens with the sockets that it was given; without it a reload reads only the certificate.
    package init(
        config: ServerConfig, origins: [String: ConfigOrigin] = [:], log: Logger, clock: RoomClock? = nil, reloading: Reloading? = nil
    ) throws {
        let group = SocketLoopGroup.singleton
        self.config = config
        self.log = log
        var settings = RoomRegistry.Settings()
        settings.policy = config.rooms.policy
        settings.historyMs = config.rooms.historyMs
        settings.audit = config.api.audit
        settings.webhooks = config.webhooks.targets
        settings.notifies = { $0.accepts($1) }
        let figures = MetricFigures()
        settings.committed = { figures.committed(micros: $0, isStored: $1) }
        try DataDirectory.prepare(config.data.directory)
        settings.disk = DiskFloor(minFreeBytes: Int64(config.data.minFreeBytes), directory: config.data.directory)
        let location = StoreLocation(config)
        let rooms = try RoomRegistry(location, settings: settings, clock: clock ?? RoomClock(holdMs: config.rooms.clockHoldMs))
        location.announce(in: config.data.directory, log)
        for notice in rooms.notices { log.warning("\(notice)") }
        let keys = try KeyRing.load(config: config)
        let parts = ServerParts(config: config, rooms: rooms, keys: keys, group: group, figures: figures, log: log)
        self.parts = parts
        let rtmp = parts.rtmp
        let sockets = ListeningSockets(reloading == nil ? .none : ProcessStart.inheritSockets(), loops: group, log: log)
        self.sockets = sockets
        var listeners = [RTMPListener(services: rtmp, address: config.rtmp.listen, certificate: nil, sockets: sockets)]
        if let address = config.rtmps.address, let pair = try CertificateStore.pair(config.rtmps.files) {
            let store = CertificateStore(pair)
            store.warn(log)
            listeners.append(RTMPListener(services: rtmp, address: address, certificate: store, sockets: sockets))
            self.certificate = store
            figures.add { $0.certificateEnds = { [store] in store.ends } }
        } else {
            self.certificate = nil
        }
        self.listeners = listeners
        let (connections, playback) = (parts.connections, parts.playback)
        let shared = HTTPServerChannel.Shared(
            limits: HTTPLimits(config),
            loopPart: CountedLoopPart(HLSLoopPart(HLSEndpoint(services: playback)), route: HLSEndpoint.fileRoute, figures.requests),
            neighbor: config.webrtc.isEnabled && config.webrtc.acceptsTCP ? parts.webrtc.port : nil,
            handoffs: CountedHandoff.all(
                [
                    LiveEndpoint(services: playback), EventsEndpoint(services: parts.api, sweepers: parts.sweepers),
                    MeshEndpoint(parts.apps), ChannelEndpoint(parts.apps), BoardEndpoint(parts.apps),
                ], figures.requests),
            sweepers: parts.sweepers, access: config.access, clients: connections.clients, proxies: connections.proxies,
            counters: connections.counters, ledger: parts.memory.ledger)
        self.httpConnections = shared
        // One instance for all ports, so that a token's rate limit counts across them.
        let auditor = Auditor(parts.rooms, connections.counters, log: log)
        self.auditor = auditor
        let login = config.console.isEnabled ? try Self.consoleLogin(config, parts, auditor) : nil
        self.consoleLogin = login
        let responder = APIRouter(
            readiness: parts.readiness, playback: playback, webrtc: parts.webrtc,
            service: parts.apiService(auditor: auditor, sessions: login?.sessions),
            console: login.map(ConsoleService.init(login:)), apps: AppRoutes(parts.apps), nodes: parts.nodes, requests: figures.requests
        ).router().buildResponder()
        self.responder = responder
        var http = [
            HTTPService(
                responder: responder, address: config.http.listen, shared: shared, placement: parts.streams.placement,
                gate: connections.httpGate, sockets: sockets, group: group, log: log)
        ]
        if let address = config.httpsAddress, let certificate = self.certificate {
            http.append(
                HTTPService(
                    responder: responder, address: address, certificate: certificate, shared: shared, placement: parts.streams.placement,
                    gate: connections.httpGate, sockets: sockets, group: group, log: log))
        }
        self.http = http
        self.webhooks = WebhookDispatcher(
            parts.live, rooms: rooms,
            sender: { [live = parts.live, keys = parts.liveKeys] in
                WebhookSender(config: live.current, addresses: connections.addresses, keys: keys.current)
            },
            outbound: parts.outbound, counters: connections.counters, log: parts.webhookLog, eventLoop: group.any())
        self.operations = Operations(
            parts, origins: origins, certificate: self.certificate, http: shared, sockets: sockets, manager: self.manager,
            reloading: reloading)
        parts.api.operate(self.operations)
        for warning in ConfigWarnings.of(config) { log.warning("Settings: \(warning)") }
    }

    private static func consoleLogin(_ config: ServerConfig, _ parts: ServerParts, _ auditor: Auditor) throws -> ConsoleLogin {
        let key = try SessionKey(ClusterKey(config), directory: config.data.directory)
        let address = config.urls.http.flatMap { PublicAddress.host($0.split(separator: "/").dropFirst().first.map(String.init) ?? "") }
        let sessions = ConsoleSessions(key, hosts: ConsoleHosts(config.console.hosts + (address.map { [$0] } ?? [])))
        return ConsoleLogin(
            sessions, parts.rooms, Authentication(registry: parts.rooms, rate: config.api.rateLimit, figures: parts.api.figures.calls),
            parts.connections, parts.live,
            parts.memory.ledger, auditor)
    }

    /// Opens the ports. Throws ``ListenError``.
    package func bind() async throws -> BoundAddresses {
        // A recording that reaches the file size limit gets an error; the signal would end the process.
        signal(SIGXFSZ, SIG_IGN)
        try await self.start()
        var http: [HostPort] = []
        for service in self.http { http.append(try await service.bind()) }
        var bound: [HostPort] = []
        for listener in self.listeners { bound.append(try await listener.bind()) }
        let webrtc = self.config.webrtc.isEnabled ? try await self.bindWebRTC(http) : nil
        self.sockets.closeOthers()
        let addresses = BoundAddresses(
            rtmp: bound[0], rtmps: bound.count > 1 ? bound[1] : nil, http: http[0], https: http.count > 1 ? http[1] : nil, webrtc: webrtc)
        self.parts.connections.isBound(to: addresses)
        // Only `earshot doctor` reads it: the server does without.
        if let problem = ServedAddresses(process: Int(getpid()), addresses).write(in: self.config.data.directory) {
            self.log.warning("The addresses that are served could not be written down", metadata: ["error": "\(problem)"])
        }
        try await NodeForwarder.announce(self.parts.rooms, self.config, http: addresses.http)
        return addresses
    }

    /// Opens the port of WebRTC for UDP, and for TCP if it is none of HTTP's. `http`: those.
    private func bindWebRTC(_ http: [HostPort]) async throws -> HostPort {
        let port = self.parts.webrtc.port
        guard let listen = self.config.webrtc.listen else {
            do {
                _ = try await port.bind(to: http[0], self.sockets)
            } catch let error as ListenError {
                // A port that the system chose for HTTP may be another program's for UDP.
                guard self.config.http.listen.port == 0 else { throw error }
                return try await self.bindWebRTC(at: HostPort(host: http[0].host, port: 0))
            }
            if self.config.webrtc.acceptsTCP { port.acceptStreams() }
            return http[0]
        }
        if self.config.webrtc.acceptsTCP, http.contains(where: { $0.port == listen.port && ($0.isEverywhere || $0.host == listen.host) }) {
            port.acceptStreams()
            return try await port.bind(to: listen, self.sockets)
        }
        return try await self.bindWebRTC(at: listen)
    }

    /// Opens the port of WebRTC apart from HTTP's. One of the system's choice is free for TCP and for UDP.
    private func bindWebRTC(at address: HostPort) async throws -> HostPort {
        let port = self.parts.webrtc.port
        var triesLeft = address.port == 0 ? 8 : 1
        while self.config.webrtc.acceptsTCP {
            let listener: any Channel
            do {
                listener = try await self.httpConnections.listen(
                    "webrtc", on: address, self.parts.streams.placement, self.parts.connections.httpGate, self.sockets)
            } catch let error as ListenError {
                self.log.warning("WebRTC is reached by UDP only", metadata: ["error": "\(error)"])
                break
            }
            do {
                let number = listener.localAddress?.port ?? address.port
                let bound = try await port.bind(to: HostPort(host: address.host, port: number), self.sockets)
                port.acceptStreams(of: listener)
                return bound
            } catch let error as ListenError {
                await self.sockets.close(listener)
                triesLeft -= 1
                guard triesLeft > 0 else { throw error }
            }
        }
        return try await port.bind(to: address, self.sockets)
    }

    /// Opens the store and starts all that needs no port. `bind` calls it.
    package func start() async throws {
        self.parts.handleRooms { [webhooks = self.webhooks] in webhooks.wake() }
        try await self.parts.rooms.start()
        try await self.parts.recordings.start()
        try await self.parts.apps.start()
        await self.parts.statistics?.start()
        let tokenFile = try await FirstToken.ensure(self.parts.rooms, directory: self.config.data.directory, log: self.log)
        self.firstToken.withLock { $0 = tokenFile }
        self.parts.streams.start()
    }

    /// All services, for a service group.
    package var services: [any Service] {
        self.servicesBehindPorts + self.listeners + self.http + [self.parts.webrtc.port, DrainService(parts: self.parts)]
    }

    /// The services that need no port. The first in the list ends last.
    package var servicesBehindPorts: [any Service] {
        let parts = self.parts
        let first: [any Service] = [
            CloseLogService(closes: parts.connections.closes, auditor: self.auditor), parts.outbound,
            RoomService(
                rooms: parts.rooms, control: parts.control, streams: parts.streams, storeWatch: parts.storeWatch, log: self.log),
            // Ends after every service whose end causes room events, and before the store.
            self.webhooks, RecordingService(parts.recordings),
            SnapshotService(parts.live, parts.rooms, parts.streams, parts.pushes, parts.snapshots, log: self.log),
            LinkService(parts.links), GatheringService(parts.apps.gatherings),
            MemoryService(parts.memory, parts.connections.admission, log: self.log),
        ]
        // Statistics before the links and connections, so that they stop after all of these have reported.
        return (parts.statistics.map { [StatisticsService($0, parts.streams) { [links = parts.links] in links.received }] } ?? [])
            + first
    }

    /// Runs until SIGTERM, SIGINT, SIGQUIT or a call to drain. Lets pushes go on for the time of the drain, then notifies the clients and returns
    /// within five seconds. Calls `announce` once these signals are trapped, since a reader of its output may send them at once.
    package func run(announce: @escaping @Sendable () -> Void = {}) async throws {
        let (parts, operations, manager) = (self.parts, self.operations, self.manager)
        let reports = manager.map {
            ServiceReports(
                $0, parts, stopsWithinMs: Self.stopsWithinMs + max(parts.live.drain.timeoutMs, operations.drainState?.leftMs ?? 0),
                isRestarting: { operations.drainState?.restarts == true })
        }
        await self.trapSignals()
        let signals = self.signals.withLock { $0 }
        // Once the group runs: a shutdown before that would be an error.
        let hearing = AnnounceService {
            if let signals {
                Task { for await order in signals.orders { Task { await Self.handle(order, operations) } } }
                // The reload logs its result.
                Task { for await _ in signals.reloads { _ = await operations.reload(by: "SIGHUP") } }
            }
            announce()
        }
        let services: [any Service] = (reports.map { [$0] } ?? []) + [hearing] + self.services + [WatchdogService { operations.leave() }]
        // Shutdown begins with the last service.
        var configuration = ServiceGroupConfiguration(services: services, logger: Self.quiet(self.log))
        configuration.maximumGracefulShutdownDuration = .seconds(4)
        let group = ServiceGroup(configuration: configuration)
        operations.follow(
            begun: { ms, restarts in
                // A process that a manager believes to stop may not start again.
                manager?.send(
                    restarts
                        ? [.reloadingNow, .status("Restarting")] : [.stopping(withinMs: Self.stopsWithinMs + ms), .status("Stopping")])
            },
            over: {
                if operations.drainState?.restarts == true { manager?.send([.watchdog(everyMs: Self.startsWithinMs)]) }
                await group.triggerGracefulShutdown()
            })
        do {
            try await group.run()
        } catch {
            guard operations.drainState != nil else { throw error }
            // The group cancels what takes longer than it may.
            self.log.warning("The end took too long and was cut short", metadata: ["error": "\(error)"])
        }
    }

    /// Prepares a process that is the server's own, as ``ProcessStart/prepare()`` says. Call before anything else.
    package static func prepareProcess() { ProcessStart.prepare() }

    /// Traps the signals that the process handles, from now on: those that come before `run` wait for it. For a process that is the server's own.
    package func trapSignals() async {
        guard self.signals.withLock({ $0 == nil }) else { return }
        let orders = await UnixSignalsSequence(trapping: .sigterm, .sigint, .sigquit, .sigusr2)
        let trapped = Signals(orders: orders, reloads: await UnixSignalsSequence(trapping: .sighup))
        self.signals.withLock { $0 = trapped }
    }

    private static func handle(_ order: UnixSignal, _ operations: Operations) async {
        if order == .sigusr2 { await operations.restart(by: "SIGUSR2") } else { await operations.signalled() }
    }

    /// How long the service manager waits for the end after a drain: the 4.8 s of ``WatchdogService`` and a margin.
    private static let stopsWithinMs: Int64 = 10_000

    /// How long the manager's watchdog waits for the next program's start, which may have much to change in the store.
    private static let startsWithinMs: Int64 = 300_000

    /// The group's own lines (services started, signal received) are useful to developers only.
    private static func quiet(_ log: Logger) -> Logger {
        var quiet = log
        if log.logLevel > .debug { quiet.logLevel = .warning }
        return quiet
    }
}
