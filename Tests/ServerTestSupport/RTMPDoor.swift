package import NIOCore
import NIOPosix

/// A way to a server's RTMP connections: a port, or a server in this process that has none.
package protocol RTMPDoor: Sendable {
    /// Opens a connection. `prepare` adds the client's handler, on the connection's loop and before it is active.
    func open(
        _ options: RawClient.Options, _ prepare: @escaping @Sendable (any Channel) throws -> Void
    ) async throws -> any Channel
}

/// A TCP port of this machine, or one of the ``MemoryNetwork``.
extension Int: RTMPDoor {
    package func open(
        _ options: RawClient.Options, _ prepare: @escaping @Sendable (any Channel) throws -> Void
    ) async throws -> any Channel {
        let inMemory: (any Channel)? = try await MemoryNetwork.connect(self, from: options.from, receiveBuffer: options.receiveBuffer) {
            channel in
            try prepare(channel)
            return channel
        }
        if let inMemory { return inMemory }
        var bootstrap = ClientBootstrap(group: options.group)
            .channelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: options.waitsForAcknowledgement ? 0 : 1)
            .channelOption(ChannelOptions.maxMessagesPerRead, value: 1)
            .channelOption(ChannelOptions.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: options.readBytes))
            .channelInitializer { channel in channel.eventLoop.makeCompletedFuture { try prepare(channel) } }
        if let bytes = options.receiveBuffer { bootstrap = bootstrap.channelOption(ChannelOptions.socketOption(.so_rcvbuf), value: bytes) }
        if let from = options.from { bootstrap = bootstrap.bind(to: try SocketAddress(ipAddress: from, port: 0)) }
        return try await bootstrap.connect(host: "127.0.0.1", port: self).get()
    }
}
