import LibC
package import NIOCore
import Synchronization
import TestSupport

/// One end of a connection within this process: what one end writes, the other one reads. No socket, no port.
///
/// Reads as NIO's sockets do: in pieces that the receive allocator chooses, a few in a turn, and none while `autoRead` is off. What is written and not
/// yet read waits without a bound, where a socket's sender would have to wait.
///
/// `@unchecked Sendable`: every stored `var` that is no atomic is touched on the event loop only, or before the channel is handed out.
package final class MemoryChannel: Channel, ChannelCore, @unchecked Sendable {
    package let eventLoop: any EventLoop
    package let localAddress: SocketAddress?
    package let remoteAddress: SocketAddress?
    package let allocator = ByteBufferAllocator()
    package let parent: (any Channel)? = nil
    private let closePromise: EventLoopPromise<Void>
    private var ownPipeline: ChannelPipeline?
    /// The other end, until this one is closed.
    private var peer: MemoryChannel?
    private let active = Atomic<Bool>(false)
    private var isOpen = true
    private var isOutputOpen = true

    private var isAutoRead = true
    /// A read was asked for while `autoRead` is off.
    private var isReadWanted = false
    private var isReading = false
    private var readsPerTurn: UInt = 4
    private var sizes: any RecvByteBufferAllocator = AdaptiveRecvByteBufferAllocator()
    /// Bytes that the other end has written.
    private var arrived = ByteBuffer()
    private var peersEnd: PeersEnd?
    private var written: [(bytes: ByteBuffer, promise: EventLoopPromise<Void>?, isFlushed: Bool)] = []

    private enum PeersEnd { case orderly, reset }

    private init(_ eventLoop: any EventLoop, local: SocketAddress, remote: SocketAddress) {
        self.eventLoop = eventLoop
        self.localAddress = local
        self.remoteAddress = remote
        self.closePromise = eventLoop.makePromise()
        self.ownPipeline = ChannelPipeline(channel: self)
    }

    /// Two connected ends, which are not active yet. Each has a loop of its own; `address` is the client's.
    package static func pair(
        client: any EventLoop, server: any EventLoop, address: SocketAddress, serverAddress: SocketAddress
    ) -> (client: MemoryChannel, server: MemoryChannel) {
        let ends = (
            client: MemoryChannel(client, local: address, remote: serverAddress),
            server: MemoryChannel(server, local: serverAddress, remote: address)
        )
        ends.client.peer = ends.server
        ends.server.peer = ends.client
        return ends
    }

    /// Adds the handlers and makes the channel active; then what has arrived by now is read.
    package func activate(_ prepare: @escaping @Sendable (any Channel) throws -> Void) async throws {
        try await self.eventLoop.submit {
            do {
                try prepare(self)
            } catch {
                self.close0(error: error, mode: .all, promise: nil)
                throw error
            }
            self.active.store(true, ordering: .sequentiallyConsistent)
            self.pipeline.syncOperations.fireChannelRegistered()
            self.pipeline.syncOperations.fireChannelActive()
            self.readOn()
        }.get()
    }

    /// Ends the connection as a TCP reset does.
    package func reset() -> EventLoopFuture<Void> {
        self.eventLoop.submit { self.end(.reset, error: ChannelError.ioOnClosedChannel) }
    }

    package var pipeline: ChannelPipeline {
        guard let ownPipeline else { preconditionFailure("set by the initialiser") }
        return ownPipeline
    }
    package var closeFuture: EventLoopFuture<Void> { self.closePromise.futureResult }
    package var _channelCore: any ChannelCore { self }
    package var isWritable: Bool { true }
    package var isActive: Bool { self.active.load(ordering: .sequentiallyConsistent) }

    // MARK: Reading

    private func arrived(_ bytes: ByteBuffer) {
        guard self.isOpen else { return }
        self.arrived.writeImmutableBuffer(bytes)
        self.readOn()
    }

    private func ended(_ end: PeersEnd) {
        guard self.isOpen, self.peersEnd == nil else { return }
        self.peersEnd = end
        self.readOn()
    }

    /// The end of the other side is noticed, and all before it is read, whatever `autoRead` is: so do sockets.
    private var mayRead: Bool { self.isAutoRead || self.isReadWanted || self.peersEnd != nil }

    private func readOn() {
        guard self.isActive, !self.isReading, self.mayRead else { return }
        self.isReading = true
        self.readTurn()
        self.isReading = false
        guard self.isOpen else { return }
        if self.arrived.readableBytes > 0 {
            // The loop's other work goes first.
            if self.mayRead { self.eventLoop.assumeIsolated().execute { self.readOn() } }
        } else if let end = self.peersEnd {
            if end == .reset {
                self.pipeline.syncOperations.fireErrorCaught(IOError(errnoCode: ECONNRESET, reason: "read"))
            }
            self.close0(error: ChannelError.eof, mode: .all, promise: nil)
        }
    }

    private func readTurn() {
        var reads: UInt = 0
        while reads < self.readsPerTurn, self.isOpen, self.mayRead {
            // A buffer of its own, as for each read of a socket: the handlers may keep parts of it.
            var bytes = self.sizes.buffer(allocator: self.allocator)
            let count = min(bytes.writableBytes, self.arrived.readableBytes)
            guard count > 0 else { break }
            bytes.writeBytes(self.arrived.readableBytesView.prefix(count))
            self.arrived.moveReaderIndex(forwardBy: count)
            _ = self.sizes.record(actualReadBytes: count)
            reads += 1
            self.pipeline.syncOperations.fireChannelRead(NIOAny(bytes))
        }
        if self.arrived.readerIndex > self.arrived.readableBytes { self.arrived.discardReadBytes() }
        guard reads > 0 else { return }
        self.isReadWanted = false
        self.pipeline.syncOperations.fireChannelReadComplete()
    }

    package func read0() {
        self.isReadWanted = true
        self.readOn()
    }

    // MARK: Writing and closing

    package func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard self.isOpen, self.isOutputOpen else {
            promise?.fail(self.isOpen ? ChannelError.outputClosed : ChannelError.ioOnClosedChannel)
            return
        }
        self.written.append((self.unwrapData(data, as: ByteBuffer.self), promise, false))
    }

    package func flush0() {
        for index in self.written.indices { self.written[index].isFlushed = true }
        // A promise's callback may write more.
        while self.isOpen, let next = self.written.first, next.isFlushed {
            self.written.removeFirst()
            if next.bytes.readableBytes > 0, let peer = self.peer { peer.eventLoop.execute { peer.arrived(next.bytes) } }
            next.promise?.succeed()
        }
    }

    package func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard self.isOpen else {
            promise?.fail(ChannelError.alreadyClosed)
            return
        }
        switch mode {
        case .output:
            self.isOutputOpen = false
            if let peer = self.peer { peer.eventLoop.execute { peer.ended(.orderly) } }
        case .input: break
        case .all: self.end(.orderly, error: error)
        }
        promise?.succeed()
    }

    private func end(_ end: PeersEnd, error: any Error) {
        guard self.isOpen else { return }
        self.isOpen = false
        let wasActive = self.active.exchange(false, ordering: .sequentiallyConsistent)
        let left = self.written
        self.written = []
        for one in left { one.promise?.fail(error) }
        if let peer = self.peer { peer.eventLoop.execute { peer.ended(end) } }
        self.peer = nil
        if wasActive { self.pipeline.syncOperations.fireChannelInactive() }
        self.pipeline.syncOperations.fireChannelUnregistered()
        // The caller may still be within the pipeline.
        self.eventLoop.assumeIsolated().execute {
            self.removeHandlers(pipeline: self.pipeline)
            self.closePromise.succeed()
        }
    }

    // MARK: Options

    package func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> EventLoopFuture<Void> {
        self.eventLoop.submit { try self.set(option, value) }
    }

    package func getOption<Option: ChannelOption>(_ option: Option) -> EventLoopFuture<Option.Value> {
        self.eventLoop.submit { try self.get(option) }
    }

    package var syncOptions: (any NIOSynchronousChannelOptions)? { Options(channel: self) }

    private struct Options: NIOSynchronousChannelOptions {
        let channel: MemoryChannel

        func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) throws { try self.channel.set(option, value) }
        func getOption<Option: ChannelOption>(_ option: Option) throws -> Option.Value { try self.channel.get(option) }
    }

    /// Throws for the options of sockets.
    private func set<Option: ChannelOption>(_ option: Option, _ value: Option.Value) throws {
        guard self.isOpen else { throw ChannelError.ioOnClosedChannel }
        switch (option, value) {
        case (_ as ChannelOptions.Types.AutoReadOption, let value as Bool):
            self.isAutoRead = value
            self.readOn()
        case (_ as ChannelOptions.Types.MaxMessagesPerReadOption, let value as UInt): self.readsPerTurn = value
        case (_ as ChannelOptions.Types.RecvAllocatorOption, let value as any RecvByteBufferAllocator): self.sizes = value
        default: throw ChannelError.operationUnsupported
        }
    }

    private func get<Option: ChannelOption>(_ option: Option) throws -> Option.Value {
        guard option is ChannelOptions.Types.AutoReadOption, let value = self.isAutoRead as? Option.Value else {
            throw ChannelError.operationUnsupported
        }
        return value
    }

    // MARK: The rest of a channel's core

    package func localAddress0() throws -> SocketAddress { try self.localAddress.orThrow() }
    package func remoteAddress0() throws -> SocketAddress { try self.remoteAddress.orThrow() }
    package func register0(promise: EventLoopPromise<Void>?) { promise?.fail(ChannelError.operationUnsupported) }
    package func registerAlreadyConfigured0(promise: EventLoopPromise<Void>?) { promise?.fail(ChannelError.operationUnsupported) }
    package func bind0(to address: SocketAddress, promise: EventLoopPromise<Void>?) { promise?.fail(ChannelError.operationUnsupported) }
    package func connect0(to address: SocketAddress, promise: EventLoopPromise<Void>?) { promise?.fail(ChannelError.operationUnsupported) }
    /// Nothing here knows events.
    package func triggerUserOutboundEvent0(_ event: Any, promise: EventLoopPromise<Void>?) { promise?.succeed() }
    package func channelRead0(_ data: NIOAny) {}
    package func errorCaught0(error: any Error) {}
}
