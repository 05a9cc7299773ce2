package import HTTPTypes
package import Logging
package import NIOCore
import NIOHTTP1
package import Support
import Synchronization

/// Resolves the client address of connections and HTTP requests behind proxies, for all other code. Any thread.
///
/// A TCP proxy sends the address when the connection begins (``ProxyEntrance``). HTTP proxies use `X-Forwarded-For`: each appends the address that it
/// got the request from. Only HTTP proxies in `access.trustedProxies` are believed; anybody else can invent the header.
///
/// A forwarded address never makes a client local: a loopback address in a header is that of the proxy's own machine, or an invention that a proxy
/// passed on, and its client is unknown.
package final class ClientAddresses: Sendable {
    private let proxies: Mutex<[CIDR]>
    private let log: Logger
    private let hasWarned = Atomic<Bool>(false)
    /// Clients of the open connections that TCP proxies made; nil if the proxy does not know the client.
    private let connections = Mutex<[ObjectIdentifier: SocketAddress?]>([:])
    /// Spares the lock if there are no such proxies.
    private let hasConnections = Atomic<Bool>(false)

    package init(trusted: [CIDR], log: Logger) {
        self.proxies = Mutex(trusted)
        self.log = log
    }

    package func set(trusted: [CIDR]) { self.proxies.withLock { $0 = trusted } }

    /// Records the client of a connection that a proxy made. On its loop, while it is open.
    func proxied(_ channel: any Channel, _ client: SocketAddress?) {
        let client = client.flatMap(Self.remote)
        let id = ObjectIdentifier(channel)
        self.hasConnections.store(true, ordering: .releasing)
        self.connections.withLock { $0[id] = .some(client) }
        channel.closeFuture.whenComplete { _ in self.connections.withLock { _ = $0.removeValue(forKey: id) } }
    }

    /// The client address of a connection; nil if unknown. An HTTP/2 stream has its connection's.
    package func peer(of channel: any Channel) -> SocketAddress? {
        guard self.hasConnections.load(ordering: .acquiring) else { return channel.remoteAddress }
        let (own, parent) = (ObjectIdentifier(channel), channel.parent.map { ObjectIdentifier($0) })
        let found = self.connections.withLock { all in all[own] ?? parent.flatMap { all[$0] } }
        guard let found else { return channel.remoteAddress }
        return found
    }

    package func client(peer: SocketAddress?, _ fields: HTTPFields) -> SocketAddress? {
        self.client(peer: peer, forwarded: Self.header.map { fields[values: $0] } ?? [])
    }

    /// The client address of a request; nil if unknown. `forwarded`: the header's values, in order.
    ///
    /// An unlisted proxy on this machine would make everybody a local client, with more rights. So its clients count as unknown.
    package func client(peer: SocketAddress?, forwarded: [String]) -> SocketAddress? {
        guard !forwarded.isEmpty, let peer else { return peer }
        let trusted = self.proxies.withLock { $0 }
        guard trusted.contains(address: peer) else {
            guard CIDR.loopback.contains(address: peer) else { return peer }
            self.warn(peer)
            return nil
        }
        var client = peer
        for entry in forwarded.joined(separator: ",").split(separator: ",", omittingEmptySubsequences: false).reversed() {
            // A trusted proxy wrote this entry; if it is not an address, the client is unknown.
            guard let address = Self.address(entry.trimmingSpaces) else { return nil }
            client = address
            guard trusted.contains(address: address) else { break }
        }
        return Self.remote(client)
    }

    /// The forwarded address, unless only this machine's own connections can have it.
    private static func remote(_ address: SocketAddress) -> SocketAddress? {
        CIDR.ofThisMachine.contains(address: address) ? nil : address
    }

    /// An unregistered header that nginx, HAProxy and CDNs send.
    private static let header = HTTPField.Name("X-Forwarded-For")

    /// Parses an IP address, with the port that some proxies add.
    private static func address(_ text: String) -> SocketAddress? {
        var host = text
        if IPText.v4(text) == nil, IPText.v6(text) == nil {
            guard text.utf8.count <= 64, let pair = try? HostPort(parsing: text) else { return nil }
            host = pair.host
        }
        return try? SocketAddress(ipAddress: host, port: 0)
    }

    private func warn(_ peer: SocketAddress) {
        guard !self.hasWarned.exchange(true, ordering: .relaxed) else { return }
        self.log.warning(
            "A proxy on this machine forwards HTTP requests; name it in access.trustedProxies, so that its clients' addresses are known",
            metadata: ["proxy": "\(peer.ipAddress ?? "")"])
    }
}

extension Substring {
    fileprivate var trimmingSpaces: String {
        var text = self.drop { $0 == " " || $0 == "\t" }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text)
    }
}
