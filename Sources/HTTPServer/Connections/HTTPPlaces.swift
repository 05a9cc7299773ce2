import HTTPTypes
import Listening
import NIOCore
import ServerConfiguration
import Support
import Synchronization

/// The places of all HTTP connections on all ports. Any thread; holds one lock briefly, per connection and request.
final class HTTPPlaces: Sendable {
    private struct State {
        var table: HTTPPlaceTable
        var channels: [HTTPPlaceTable.ID: any Channel] = [:]
        var next: HTTPPlaceTable.ID = 0
        var access: ServerConfig.Access
        var stage = Stage.open
    }

    private enum Stage {
        case open
        /// The server is shutting down: a connection gets one answer.
        case ending
        case ended
    }

    private let state: Mutex<State>
    private let clients: ClientAddresses
    private let proxies: ProxyEntrance
    private let counters: ServerCounters
    private let holdings: HTTPHoldings

    init(
        limits: HTTPLimits, access: ServerConfig.Access, clients: ClientAddresses, proxies: ProxyEntrance, counters: ServerCounters,
        holdings: HTTPHoldings
    ) {
        self.holdings = holdings
        self.state = Mutex(State(table: HTTPPlaceTable(.init(limits)), access: access))
        self.clients = clients
        self.proxies = proxies
        self.counters = counters
    }

    func set(_ limits: HTTPLimits, _ access: ServerConfig.Access) {
        self.state.withLock { state in
            state.table.set(.init(limits))
            state.access = access
        }
    }

    /// Gives a new connection its place until it closes. Call before adding any handler; on its loop.
    ///
    /// A proxy that speaks the PROXY protocol sends the address in its header. Until then the connection counts only in the total.
    ///
    /// Throws when the server has ended.
    func enter(_ channel: any Channel) throws -> HTTPPlace {
        let (id, stage) = self.state.withLock { state in
            state.next += 1
            if state.stage != .ended { state.channels[state.next] = channel }
            return (state.next, state.stage)
        }
        switch stage {
        case .open: break
        // When its handlers are there.
        case .ending: channel.eventLoop.execute { channel.quiesce() }
        case .ended: throw ChannelError.ioOnClosedChannel
        }
        let place = HTTPPlace(id: id, in: self, self.holdings.account(of: nil))
        let bound = NIOLoopBound(place, eventLoop: channel.eventLoop)
        channel.closeFuture.whenComplete { _ in
            self.leave(id)
            bound.value.left()
        }
        let waits = try self.proxies.guardConnection(channel) { self.acquire(bound.value, channel) }
        if waits { self.enter(place, nil, mayUseReserve: false) } else { self.acquire(place, channel) }
        return place
    }

    private func acquire(_ place: HTTPPlace, _ channel: any Channel) {
        let peer = self.clients.peer(of: channel)
        let access = self.state.withLock { $0.access }
        let isTrusted = peer.map { access.trustedProxies.contains(address: $0) } ?? false
        // Each request that a trusted proxy forwards names its own client.
        place.isProxy = isTrusted
        let host = isTrusted ? nil : peer.map { HostKey.of($0) }
        self.enter(place, host, mayUseReserve: !isTrusted && peer.map { access.apiFrom.contains(address: $0) } ?? false)
    }

    private func enter(_ place: HTTPPlace, _ host: HostKey?, mayUseReserve: Bool) {
        let (refusal, shed) = self.state.withLock { state in
            state.table.leave(place.id)
            let (refusal, shed) = state.table.enter(place.id, host, mayUseReserve: mayUseReserve, nowMs: LoopSweeper.nowMs)
            return (refusal, shed.compactMap { id in state.channels[id].map { (id, $0) } })
        }
        place.host = host
        place.refusal = refusal
        place.moved(to: self.holdings.account(of: host, mayUseReserve: mayUseReserve))
        if let refusal { self.counters.limits.hit(refusal.limit) }
        if refusal != nil || !shed.isEmpty {
            self.counters.update {
                if refusal != nil { $0.httpConnectionsRefused += 1 }
                $0.httpConnectionsShed += UInt64(shed.count)
            }
        }
        for (id, channel) in shed {
            channel.eventLoop.execute {
                // A request may have arrived meanwhile and taken the place back.
                guard !self.state.withLock({ $0.table.has(id) }) else { return }
                // Close as at shutdown: idle connections close, each as its protocol requires. Then cut, because the place is already given away and
                // TLS would wait for the client's close_notify.
                channel.quiesce()
                channel.cut()
            }
        }
    }

    /// Asks all connections to close when their requests are answered, and closes the others after `limit`. Returns when they are closed. Those that
    /// were accepted last still have their first request answered; after the limit, new ones find no place.
    func end(within limit: TimeAmount, on loop: any EventLoop) async {
        let (isFirst, channels) = self.state.withLock { state in
            defer { if state.stage == .open { state.stage = .ending } }
            return (state.stage == .open, Array(state.channels.values))
        }
        // HTTP and HTTPS share these places. The first listener to end asks all connections.
        if isFirst {
            for channel in channels { channel.quiesce() }
            loop.scheduleTask(in: limit) { self.closeAll() }
        }
        while let channel = self.state.withLock({ $0.channels.values.first }) { try? await channel.closeFuture.get() }
    }

    private func closeAll() {
        let channels = self.state.withLock { state in
            state.stage = .ended
            return Array(state.channels.values)
        }
        for channel in channels {
            channel.close(promise: nil)
            // TLS would wait for the client's close_notify for longer than the whole end may take.
            channel.eventLoop.scheduleTask(in: Self.farewell) { channel.cut() }
        }
    }

    private static let farewell = TimeAmount.milliseconds(500)

    private func leave(_ id: HTTPPlaceTable.ID) {
        self.state.withLock { state in
            state.table.leave(id)
            state.channels[id] = nil
        }
    }

    fileprivate func work(_ place: HTTPPlace) {
        self.state.withLock { $0.table.work(place.id, place.host, isRefused: place.refusal != nil) }
    }

    fileprivate func rest(_ place: HTTPPlace) { self.state.withLock { $0.table.rest(place.id, nowMs: LoopSweeper.nowMs) } }

    /// Counts a request that a trusted proxy forwards, by its client's address. Throws 503.
    func enterRequest(peer: SocketAddress?, forwarded: [String]) throws(APIError) -> HTTPForwarded? {
        guard let client = self.clients.client(peer: peer, forwarded: forwarded), client != peer else { return nil }
        let host = HostKey.of(client)
        guard self.state.withLock({ $0.table.enterRequest(of: host) }) else {
            self.counters.update { $0.httpConnectionsRefused += 1 }
            self.counters.limits.hit(.httpPerAddress)
            throw HTTPPlaceTable.Refusal.tooManyFromAddress.error
        }
        let access = self.state.withLock { $0.access }
        return HTTPForwarded(
            host: host, places: self, account: self.holdings.account(of: host, mayUseReserve: access.apiFrom.contains(address: client)))
    }

    fileprivate func hit(_ limit: CountedLimit) { self.counters.limits.hit(limit) }

    fileprivate func leaveRequest(of host: HostKey) { self.state.withLock { $0.table.release(host) } }

    func peer(of channel: any Channel) -> SocketAddress? { self.clients.peer(of: channel) }
}

extension Channel {
    /// Asks the handlers to end the connection as its protocol requires.
    fileprivate func quiesce() { self.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
}

/// One connection's place. Loop-bound.
final class HTTPPlace {
    fileprivate let id: HTTPPlaceTable.ID
    private let places: HTTPPlaces
    fileprivate var host: HostKey?
    /// The reason why the connection has no place, to be sent as its answer.
    fileprivate(set) var refusal: HTTPPlaceTable.Refusal?
    /// Whether the peer is a trusted proxy.
    fileprivate(set) var isProxy = false

    /// What the connection itself makes the server hold.
    private var holding: HTTPHolding

    fileprivate init(id: HTTPPlaceTable.ID, in places: HTTPPlaces, _ account: HTTPHoldings.Account) {
        self.id = id
        self.places = places
        self.holding = HTTPHolding(account)
        self.holding.add(HTTPHolding.connectionBytes)
    }

    fileprivate func moved(to account: HTTPHoldings.Account) {
        let holding = HTTPHolding(account)
        holding.add(self.holding.bytes)
        self.holding = holding
    }

    /// The connection is closed.
    fileprivate func left() { self.holding = HTTPHolding(self.holding.account) }

    /// Charges what TLS takes, with HTTP/2.
    func secured() { self.holding.set(HTTPHolding.secureConnectionBytes) }

    /// Charges a request to its client: that of the connection, or the one that a trusted proxy names.
    func holding(for forwarded: HTTPForwarded?) -> HTTPHolding { HTTPHolding(forwarded?.account ?? self.holding.account) }

    /// Counts the refusal of a request by what its client holds already.
    static let pastShare: APIError = {
        var error = APIError.unavailable("This address has too much unread or unfinished here (limits.memory).")
        error.headers[.retryAfter] = "5"
        return error
    }()

    /// Marks a request as under way.
    func work() { self.places.work(self) }
    /// Marks the connection as idle: all requests are answered.
    func rest() { self.places.rest(self) }

    /// Counts a hit of a time limit.
    func hit(_ limit: CountedLimit) { self.places.hit(limit) }

    /// Counts a forwarded request; returns nil if it is not one. Throws 503.
    func forwarded(_ headers: [String], on channel: any Channel) throws(APIError) -> HTTPForwarded? {
        guard self.isProxy, !headers.isEmpty else { return nil }
        return try self.places.enterRequest(peer: self.places.peer(of: channel), forwarded: headers)
    }
}

/// Counts a forwarded request against its client's address for as long as this exists.
final class HTTPForwarded: Sendable {
    private let host: HostKey
    private let places: HTTPPlaces
    fileprivate let account: HTTPHoldings.Account

    fileprivate init(host: HostKey, places: HTTPPlaces, account: HTTPHoldings.Account) {
        self.host = host
        self.places = places
        self.account = account
    }

    deinit { self.places.leaveRequest(of: self.host) }
}

extension HTTPPlaceTable.Limits {
    /// One address gets half of all places at most, or this many if more. Its setting can only lower that, since few descriptors
    /// leave few places.
    private static let leastPerAddress = 64
    private static let mostReserved = 64

    package init(_ limits: HTTPLimits) {
        self.total = limits.connections
        self.reserved = min(Self.mostReserved, limits.connections / 16)
        self.perAddress = min(limits.perAddress, max(Self.leastPerAddress, limits.connections / 2))
        // Half of the connections that the listeners accept beyond the limit.
        self.refused = min(64, max(2, limits.connections / 64))
    }
}

extension HTTPPlaceTable.Refusal {
    fileprivate var limit: CountedLimit {
        switch self {
        case .tooMany: .httpConnections
        case .tooManyFromAddress: .httpPerAddress
        }
    }

    package var error: APIError {
        switch self {
        case .tooMany: .unavailable("The server has too many HTTP connections (limits.httpConnections).")
        case .tooManyFromAddress: .unavailable("This address has too many HTTP connections (limits.httpPerAddress).")
        }
    }
}
