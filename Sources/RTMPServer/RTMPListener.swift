package import Listening
import Logging
package import NIOCore
import NIOPosix
import NIOSSL
import ServiceLifecycle
import Streaming
package import Support
import Synchronization

/// Listens for RTMP, or for RTMPS if it has a certificate. Gives each connection its handler. A service of the server's group.
package final class RTMPListener: Service, Sendable {
    private let services: RTMPServices
    private let address: HostPort
    private let certificate: CertificateStore?
    private let sockets: ListeningSockets
    private let channel = Mutex<(any Channel)?>(nil)

    package init(services: RTMPServices, address: HostPort, certificate: CertificateStore?, sockets: ListeningSockets) {
        self.services = services
        self.address = address
        self.certificate = certificate
        self.sockets = sockets
    }

    /// "rtmp" or "rtmps".
    package var scheme: String { self.certificate == nil ? "rtmp" : "rtmps" }

    /// Binds the port. Returns the address in use, with the port that the system chose for port 0. Throws ``ListenError``.
    package func bind() async throws -> HostPort {
        let channel = try await self.sockets.listen(self.scheme, on: self.address, self.bootstrap())
        self.channel.withLock { $0 = channel }
        return HostPort(host: self.address.host, port: channel.localAddress?.port ?? self.address.port)
    }

    /// Runs until the group shuts down gracefully.
    package func run() async throws {
        try? await gracefulShutdown()
        // A restart may already have closed the listener.
        try? await self.channel.withLock({ $0 })?.close()
    }

    private func bootstrap() -> ServerBootstrap {
        let (services, certificate) = (self.services, self.certificate)
        return services.streams.placement.bootstrap(services.connections.rtmpGate) { channel in
            channel.eventLoop.makeCompletedFuture {
                try Self.setOptions(of: channel)
                try Self.prepare(channel, services, certificate)
            }
        }
    }

    private static func setOptions(of channel: any Channel) throws {
        guard let options = channel.syncOptions else { return }
        try options.setOption(.tcpOption(.tcp_nodelay), value: 1)
        try options.setOption(.socketOption(.so_keepalive), value: 1)
        try options.setOption(.tcpOption(.tcpUserTimeout), value: ViewerSocket.timeoutMs)
        try options.setOption(.tcpOption(.tcpNotSentLowWater), value: ViewerSocket.notSentBytes)
        try options.setOption(.maxMessagesPerRead, value: 4)
        try options.setOption(.recvAllocator, value: Self.smallReads)
    }

    /// Adds the handlers of a new connection. On its loop, before it is active.
    package static func prepare(_ channel: any Channel, _ services: RTMPServices, _ certificate: CertificateStore? = nil) throws {
        guard let loop = services.streams.context(of: channel.eventLoop) else { throw ChannelError.inappropriateOperationForState }
        let isProxied = try services.connections.proxies.guardConnection(channel)
        if !isProxied, certificate == nil { channel.lendInput() }
        if let certificate { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: certificate.current)) }
        let id = services.connections.nextSessionID()
        try channel.pipeline.syncOperations.addHandler(
            RTMPConnection(id: id, services: services, loop: loop, isTLS: certificate != nil))
    }

    /// Read sizes until a publish: what a stranger may send in one turn is a few of them.
    static let smallReads = AdaptiveRecvByteBufferAllocator(minimum: 1024, initial: 2048, maximum: RTMPListener.smallReadBytes)
    static let smallReadBytes = 8 << 10
    /// Read sizes of publishers.
    static let largeReads = AdaptiveRecvByteBufferAllocator(minimum: 1024, initial: 16 << 10, maximum: 64 << 10)
}
