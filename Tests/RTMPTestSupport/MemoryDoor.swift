package import APITestSupport
package import EarshotServer
package import NIOCore
import NIOPosix
package import RTMPServer
package import ServerConfiguration
package import ServerTestSupport
import Support
package import Testing

/// Connections to a server's RTMP services without a port: each is a pair of channels in memory. Any thread.
package struct MemoryDoor: RTMPDoor {
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
        let services = self.services
        return try await MemoryNetwork.connect(
            UnboundServer.addresses.rtmp.port, from: options.from, receiveBuffer: options.receiveBuffer,
            on: (client: options.group.next(), server: self.group.next()),
            { channel in channel.eventLoop.makeCompletedFuture { try RTMPListener.prepare(channel, services) } }
        ) { channel in
            try channel.syncOptions?.setOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: options.readBytes))
            try prepare(channel)
            return channel
        }
    }
}

extension UnboundServer: LiveServer {
    package var parts: ServerParts { self.server.parts }
    package var port: MemoryDoor { MemoryDoor(self.server.parts.rtmp, MultiThreadedEventLoopGroup.singleton) }

    /// Runs a server and a canary while the body misbehaves.
    package static func withCanary(
        _ configure: (inout ServerConfig) -> Void = { _ in }, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: @escaping @Sendable (UnboundServer) async throws -> Void
    ) async throws {
        try await Self.run(configure) { try await $0.withCanary(sourceLocation: sourceLocation, body) }
    }
}
