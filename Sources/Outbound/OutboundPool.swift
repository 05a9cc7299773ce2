internal import AsyncHTTPClient
import LibC
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
import Support
internal import Synchronization

/// Pools HTTP clients, each bound to one checked address of one name. Any thread.
///
/// AsyncHTTPClient reads the address to use for a name from its configuration, not from a request, so each pair of name and address needs
/// its own client. Clients are cheap (they share the event loops) and are closed when others are needed.
final class OutboundPool: Sendable {
    struct Key: Hashable, Sendable {
        let pool: String
        /// Lower case; empty for URLs with an address.
        let name: String
        /// As text; empty for URLs with an address, which need no override.
        let address: String
    }

    /// A client in use. Return it with ``OutboundPool/giveBack(_:)``.
    struct Lease: Sendable {
        let client: HTTPClient
        fileprivate let key: Key
    }

    private struct Entry {
        let client: HTTPClient
        var uses = 0
        var lastUse: ContinuousClock.Instant
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var isClosed = false
    }

    private let state = Mutex(State())
    private let tls: TLSConfiguration?

    /// Clients kept; more exist only while all of these are in use.
    private static let maxClients = 64

    /// The pool of the cluster's nodes.
    static let nodes = "nodes"
    /// So long a node may acknowledge nothing of what it was sent.
    private static let nodePatienceMs = 5_000

    init(tls: TLSConfiguration?) { self.tls = tls }

    deinit {
        // A client must be shut down before it is released; its shutdown retains it until then.
        for client in self.state.withLock({ $0.entries.values.map(\.client) }) {
            client.shutdown { _ in withExtendedLifetime(client) {} }
        }
    }

    /// Returns nil after `shutdown`.
    func lease(_ target: OutboundURL, address: [UInt8], pool: String) -> Lease? {
        let key: Key =
            switch target.host {
            case .name(let name): Key(pool: pool, name: name, address: IPText.text(address))
            case .address: Key(pool: pool, name: "", address: "")
            }
        let (lease, surplus): (Lease?, HTTPClient?) = self.state.withLock { state in
            guard !state.isClosed else { return (nil, nil) }
            var surplus: HTTPClient?
            if state.entries[key] == nil {
                if state.entries.count >= Self.maxClients {
                    let oldest = state.entries.filter { $0.value.uses == 0 }.min { $0.value.lastUse < $1.value.lastUse }
                    surplus = oldest.flatMap { state.entries.removeValue(forKey: $0.key)?.client }
                }
                state.entries[key] = Entry(client: self.makeClient(key), lastUse: .now)
            }
            state.entries[key]?.uses += 1
            state.entries[key]?.lastUse = .now
            return (state.entries[key].map { Lease(client: $0.client, key: key) }, surplus)
        }
        if let surplus { surplus.shutdown { _ in withExtendedLifetime(surplus) {} } }
        return lease
    }

    func giveBack(_ lease: Lease) {
        self.state.withLock { state in
            // After a shutdown there is no entry.
            state.entries[lease.key]?.uses -= 1
        }
    }

    func shutdown() async {
        let clients = self.state.withLock { state in
            state.isClosed = true
            defer { state.entries = [:] }
            return state.entries.values.map(\.client)
        }
        for client in clients {
            await withCheckedContinuation { continuation in
                client.shutdown { _ in continuation.resume() }
            }
        }
    }

    private func makeClient(_ key: Key) -> HTTPClient {
        var configuration = HTTPClient.Configuration(tlsConfiguration: self.tls, redirectConfiguration: .disallow)
        if !key.name.isEmpty { configuration.dnsOverride = [key.name: key.address] }
        configuration.httpVersion = .http1Only
        configuration.timeout.connect = .seconds(10)
        if key.pool == Self.nodes {
            // A node whose machine says nothing is gone, or soon said to be: who waits for its answer should hear of that before giving up.
            configuration.timeout.connect = .seconds(3)
            // The only way to a connection's socket.
            configuration.http1_1ConnectionDebugInitializer = { channel in
                channel.setOption(.tcpOption(NIOBSDSocket.Option(rawValue: LinuxSocket.userTimeout)), value: Self.nodePatienceMs)
            }
        }
        configuration.connectionPool.idleTimeout = .seconds(15)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 64
        // The caller decides whether to try again, sooner or later than a connection pool would.
        configuration.connectionPool.retryConnectionEstablishment = false
        return HTTPClient(eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton), configuration: configuration)
    }
}
