package import APITestSupport
package import EarshotServer
package import NIOCore
import NIOPosix
package import RTMPServer
package import ServerConfiguration
package import ServerTestSupport
import Sockets
import Support
import Synchronization
package import Testing

/// Connections to a server's RTMP services without a port: each is a pair of channels in memory. Any thread.
package struct MemoryDoor: RTMPDoor {
    /// Ports of clients, so that no two have the same address.
    private static let nextPort = Atomic<UInt16>(10_000)

    private let services: RTMPServices
    private let group: any EventLoopGroup

    /// `group` has the server's loops.
    package init(_ services: RTMPServices, _ group: any EventLoopGroup) {
        self.services = services
        self.group = group
    }

    package func open(
        _ options: RawClient.Options, _ prepare: @escaping @Sendable (any Channel) throws -> Void
    ) async throws -> any Channel {
        let port = Int(Self.nextPort.wrappingAdd(1, ordering: .relaxed).oldValue)
        let ends = MemoryChannel.pair(
            client: options.group.next(), server: self.group.next(),
            address: try SocketAddress(ipAddress: options.from ?? "127.0.0.1", port: port),
            serverAddress: try SocketAddress(ipAddress: "127.0.0.1", port: UnboundServer.addresses.rtmp.port))
        try await ends.client.setOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: options.readBytes)).get()
        let services = self.services
        try await ends.server.activate { try RTMPListener.prepare($0, services) }
        try await ends.client.activate(prepare)
        return ends.client
    }
}

extension UnboundServer: LiveServer {
    package var parts: ServerParts { self.server.parts }
    package var port: MemoryDoor { MemoryDoor(self.server.parts.rtmp, SocketLoopGroup.singleton) }

    /// Runs a server and a canary while the body misbehaves.
    package static func withCanary(
        _ configure: (inout ServerConfig) -> Void = { _ in }, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: @escaping @Sendable (UnboundServer) async throws -> Void
    ) async throws {
        try await Self.run(configure) { try await $0.withCanary(sourceLocation: sourceLocation, body) }
    }
}
