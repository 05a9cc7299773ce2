import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import Synchronization
import Upstream

/// Whose a connection is, and whose an HTTP request, when proxies stand before the server: the one place that knows.
///
/// A TCP proxy says it at the connection's beginning (``ProxyEntrance``); an HTTP proxy in `X-Forwarded-For`, each adding whom it got the
/// request from, at the end. Only HTTP proxies that `access.trustedProxies` names are believed; others' headers are anybody's invention. Any
/// thread.
final class ClientAddresses: Sendable {
    private let trusted: [CIDR]
    private let log: Logger
    private let hasWarned = Atomic<Bool>(false)
    /// For whom TCP proxies made their connections; nil: for somebody they do not know. While these are open.
    private let connections = Mutex<[ObjectIdentifier: SocketAddress?]>([:])
    /// Without such proxies nobody takes the lock.
    private let hasConnections = Atomic<Bool>(false)

    init(trusted: [CIDR], log: Logger) {
        self.trusted = trusted
        self.log = log
    }

    /// A proxy made this connection for somebody else. On its loop, while it is open.
    func proxied(_ channel: any Channel, _ client: SocketAddress?) {
        let id = ObjectIdentifier(channel)
        self.hasConnections.store(true, ordering: .releasing)
        self.connections.withLock { $0[id] = .some(client) }
        channel.closeFuture.whenComplete { _ in self.connections.withLock { _ = $0.removeValue(forKey: id) } }
    }

    /// Whose the connection is; nil: not known. Of a stream of HTTP/2: its connection's.
    func peer(of channel: any Channel) -> SocketAddress? {
        guard self.hasConnections.load(ordering: .acquiring) else { return channel.remoteAddress }
        let (own, parent) = (ObjectIdentifier(channel), channel.parent.map { ObjectIdentifier($0) })
        let found = self.connections.withLock { all in all[own] ?? parent.flatMap { all[$0] } }
        guard let found else { return channel.remoteAddress }
        return found
    }

    func client(peer: SocketAddress?, _ fields: HTTPFields) -> SocketAddress? {
        self.client(peer: peer, forwarded: Self.header.map { fields[values: $0] } ?? [])
    }

    func client(of request: HTTPTakeoverRequest) -> SocketAddress? {
        self.client(peer: self.peer(of: request.channel), forwarded: request.head.headers["x-forwarded-for"])
    }

    /// Nil: not known. `forwarded`: the header's values, in order.
    ///
    /// A proxy on this machine that is not named would make everybody a local client, who may do what others may not: what comes by one
    /// comes from nowhere that is known.
    func client(peer: SocketAddress?, forwarded: [String]) -> SocketAddress? {
        guard !forwarded.isEmpty, let peer else { return peer }
        guard self.trusted.contains(address: peer) else {
            guard CIDR.loopback.contains(address: peer) else { return peer }
            self.warn(peer)
            return nil
        }
        var client = peer
        for entry in forwarded.joined(separator: ",").split(separator: ",", omittingEmptySubsequences: false).reversed() {
            // Written by a trusted proxy: if it is no address, so be it.
            guard let address = Self.address(entry.trimmingSpaces) else { return nil }
            client = address
            guard self.trusted.contains(address: address) else { break }
        }
        return client
    }

    /// Not registered; what nginx, HAProxy and CDNs send.
    private static let header = HTTPField.Name("X-Forwarded-For")

    /// An IP address; some proxies add the port.
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
