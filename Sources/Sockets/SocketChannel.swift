import LibC
package import NIOCore
import Synchronization

/// A connected stream socket on a ``SocketLoop``, as a channel for NIO's handlers. It behaves as NIO's own socket channels do; what a server's
/// connections never ask of those is refused with `operationUnsupported`.
///
/// Index: life · writing · closing. Reading is in `SocketChannel+Reading.swift`, options are in `SocketChannel+Options.swift`.
///
/// `@unchecked Sendable`: what is neither constant nor atomic is touched on the loop only.
package final class SocketChannel: Channel, NIOTransportAccessibleChannelCore, @unchecked Sendable {
    let loop: SocketLoop
    package var allocator: ByteBufferAllocator { Self.ordinary }
    private static let ordinary = ByteBufferAllocator()
    package let remoteAddress: SocketAddress?
    package let localAddress: SocketAddress?
    private let closePromise: EventLoopPromise<Void>
    /// Set in the initializer; only then is there a channel that it can be made for.
    @exclusivity(unchecked) private var madePipeline: ChannelPipeline?
    /// -1 once it is closed.
    @exclusivity(unchecked) private(set) var descriptor: CInt
    /// Its token in the loop while it is watched.
    private(set) var token: UInt64?
    @exclusivity(unchecked) private var asked: Epoll.Readiness = []
    private let active = Atomic<Bool>(false)
    private let writable = Atomic<Bool>(true)

    // Reading
    @exclusivity(unchecked) var readsByItself = true
    @exclusivity(unchecked) var isReadAsked = false
    @exclusivity(unchecked) var mostReads = 4
    @exclusivity(unchecked) var mostBytesPerRead = SocketLoop.scratchBytes
    var allowsHalfClosure = false
    @exclusivity(unchecked) private(set) var isInputClosed = false
    /// The channel's only handler neither keeps the buffers that it is given nor holds reads back but by `autoRead`: small pieces come in the loop's own
    /// buffer, and no handler is asked before the next is read.
    @exclusivity(unchecked) package var lendsInput = false

    // Writing
    private var pending = PendingWrites()
    private var isSending = false
    private var isOutputClosed = false
    /// Waits for the output to be sent, to close that direction.
    private var closesOutput: [EventLoopPromise<Void>?]?
    var waterMark = ChannelOptions.Types.WriteBufferWaterMark(low: 32 << 10, high: 64 << 10)

    /// Calls of one flush, while the kernel accepts all that it gets.
    private static let mostSends = 16

    /// Owns the descriptor from now on, a connected socket. Nothing happens until ``start(_:)``.
    package init(_ descriptor: CInt, on loop: SocketLoop, local: SocketAddress? = nil, remote: SocketAddress? = nil) {
        self.loop = loop
        self.descriptor = descriptor
        self.localAddress = local
        self.remoteAddress = remote
        self.closePromise = loop.makePromise(of: Void.self)
        self.madePipeline = ChannelPipeline(channel: self)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    // MARK: Life

    package var eventLoop: any EventLoop { self.loop }
    package var _channelCore: any ChannelCore { self }
    package var closeFuture: EventLoopFuture<Void> { self.closePromise.futureResult }
    package var parent: (any Channel)? { nil }
    package var isActive: Bool { self.active.load(ordering: .relaxed) }
    package var isWritable: Bool { self.writable.load(ordering: .relaxed) }
    var isOpen: Bool { self.descriptor >= 0 }
    var pendingBytes: Int { self.pending.bytes }

    package var pipeline: ChannelPipeline {
        guard let pipeline = self.madePipeline else { preconditionFailure("the pipeline is made with its channel") }
        return pipeline
    }

    /// Adds the handlers by `prepare` and begins to read. Closes the channel if it fails. From any thread, once.
    package func start(_ prepare: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>) {
        self.loop.execute {
            guard self.isOpen else { return }
            prepare(self).assumeIsolated().whenComplete { result in
                switch result {
                case .success: self.begin()
                case .failure(let error): self.close0(error: error, mode: .all, promise: nil)
                }
            }
        }
    }

    private func begin() {
        guard self.isOpen else { return }
        do throws(IOError) {
            self.asked = [.read, .hangUp]
            self.token = try self.loop.add(self, self.descriptor, self.asked)
        } catch {
            return self.close0(error: error, mode: .all, promise: nil)
        }
        let events = self.pipeline.syncOperations
        events.fireChannelRegistered()
        guard self.isOpen else { return }
        self.active.store(true, ordering: .relaxed)
        events.fireChannelActive()
        self.askToRead()
        if self.isOpen, !self.isReadAsked { self.ignore(.read) }
        if self.pending.hasFlushed { self.send() }
    }

    /// Asks the kernel for this too.
    func watch(_ readiness: Epoll.Readiness) { self.watchOnly(self.asked.union(readiness)) }
    func ignore(_ readiness: Epoll.Readiness) { self.watchOnly(self.asked.subtracting(readiness)) }

    private func watchOnly(_ readiness: Epoll.Readiness) {
        guard readiness != self.asked, let token = self.token else { return }
        self.asked = readiness
        do throws(IOError) {
            try self.loop.change(token, self.descriptor, readiness)
        } catch {
            self.close0(error: error, mode: .all, promise: nil)
        }
    }

    /// What the loop saw.
    func isReady(_ readiness: Epoll.Readiness) {
        if readiness.contains(.closed) || readiness.contains(.error) { return self.wasReset() }
        if readiness.contains(.write) {
            self.send()
            guard self.isOpen else { return }
        }
        if readiness.contains(.hangUp), self.asked.contains(.hangUp) {
            self.readToTheEnd()
        } else if readiness.contains(.read), self.asked.contains(.read) {
            _ = self.readTurn()
        }
    }

    /// What has arrived before is read first.
    private func wasReset() {
        self.readToTheEnd()
        guard self.isOpen else { return }
        var (code, size) = (CInt(0), socklen_t(MemoryLayout<CInt>.size))
        _ = getsockopt(self.descriptor, SOL_SOCKET, SO_ERROR, &code, &size)
        self.close0(error: IOError(errnoCode: code == 0 ? ECONNRESET : code, reason: "reset"), mode: .all, promise: nil)
    }

    // MARK: Writing

    package func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard self.isOpen else { return Self.fail(promise, .ioOnClosedChannel) }
        guard !self.isOutputClosed, self.closesOutput == nil else { return Self.fail(promise, .outputClosed) }
        guard case .byteBuffer(let bytes)? = self.tryUnwrapData(data, as: IOData.self) else {
            return Self.fail(promise, .operationUnsupported)
        }
        self.pending.add(bytes, promise)
        if self.pending.bytes > self.waterMark.high, self.isWritable {
            self.writable.store(false, ordering: .relaxed)
            self.pipeline.syncOperations.fireChannelWritabilityChanged()
        }
    }

    private static func fail(_ promise: EventLoopPromise<Void>?, _ error: ChannelError) { promise?.fail(error) }

    package func flush0() {
        guard self.isOpen else { return }
        self.pending.flush()
        // While the kernel is full it tells when to go on; and who calls from a promise of the present call is served by that.
        guard !self.asked.contains(.write), self.isActive else { return }
        self.send()
    }

    /// Sends what was flushed until the kernel is full. What handlers flush meanwhile is sent by the same call.
    private func send() {
        guard !self.isSending else { return }
        self.isSending = true
        defer { self.isSending = false }
        var sends = 0
        while self.isOpen, self.pending.hasFlushed, sends < Self.mostSends {
            let count = self.pending.send(to: self.descriptor)
            if count < 0 {
                if errno == EINTR { continue }
                if errno == EAGAIN || errno == EWOULDBLOCK { break }
                return self.writeFailed(IOError(errnoCode: errno, reason: "write"))
            }
            sends += 1
            for promise in self.pending.accepted(count) { promise.succeed(()) }
            if !self.pending.hasFlushed { self.tellWritable() }
        }
        self.tellWritable()
        guard self.isOpen else { return }
        if self.pending.hasFlushed { self.watch(.write) } else { self.ignore(.write) }
        if self.isOpen, self.pending.isEmpty, let promises = self.closesOutput {
            self.closesOutput = nil
            self.closeOutput(promises)
        }
    }

    private func tellWritable() {
        guard self.isOpen, !self.isWritable, self.pending.bytes < self.waterMark.low else { return }
        self.writable.store(true, ordering: .relaxed)
        self.pipeline.syncOperations.fireChannelWritabilityChanged()
    }

    /// The peer may have said something before it went.
    private func writeFailed(_ error: IOError) {
        if self.readsByItself { self.readWhatIsLeft() }
        self.close0(error: error, mode: .all, promise: nil)
    }

    // MARK: Closing

    package func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard self.isOpen else { return Self.fail(promise, .alreadyClosed) }
        switch mode {
        case .all: self.closeAll(error, promise)
        case .input: self.closeInput(promise)
        case .output:
            guard !self.isOutputClosed else { return Self.fail(promise, .outputClosed) }
            if self.pending.isEmpty {
                self.closeOutput([promise])
            } else {
                self.closesOutput = (self.closesOutput ?? []) + [promise]
            }
        }
    }

    private func closeOutput(_ promises: [EventLoopPromise<Void>?]) {
        self.isOutputClosed = true
        if self.isInputClosed {
            self.closeAll(ChannelError.alreadyClosed, nil)
            for promise in promises { promise?.succeed(()) }
            return
        }
        _ = shutdown(self.descriptor, CInt(SHUT_WR))
        for promise in promises { promise?.succeed(()) }
        guard self.isOpen else { return }
        self.pipeline.syncOperations.fireUserInboundEventTriggered(ChannelEvent.outputClosed)
    }

    /// The peer sends no more, or what it sends is not wanted.
    func closeInput(_ promise: EventLoopPromise<Void>?) {
        guard !self.isInputClosed else { return Self.fail(promise, .inputClosed) }
        self.isInputClosed = true
        guard !self.isOutputClosed else { return self.closeAll(ChannelError.eof, promise) }
        self.ignore([.read, .hangUp])
        guard self.isOpen else { return Self.fail(promise, .alreadyClosed) }
        _ = shutdown(self.descriptor, CInt(SHUT_RD))
        promise?.succeed(())
        self.pipeline.syncOperations.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }

    private func closeAll(_ error: any Error, _ promise: EventLoopPromise<Void>?) {
        if let token = self.token { self.loop.remove(token, self.descriptor) }
        self.token = nil
        LibC.close(self.descriptor)
        self.descriptor = -1
        let (wasActive, failed) = (self.isActive, self.pending.removeAll())
        let closing = self.closesOutput ?? []
        self.closesOutput = nil
        self.active.store(false, ordering: .relaxed)
        for write in failed { write.fail(error) }
        for output in closing { output?.fail(error) }
        promise?.succeed(())
        let events = self.pipeline.syncOperations
        if wasActive {
            events.fireChannelInactive()
            events.fireChannelUnregistered()
        }
        // Handlers may be in the middle of the event that led here.
        self.loop._executeIsolatedUnsafeUnchecked {
            self.removeHandlers(pipeline: self.pipeline)
            self.closePromise.succeed(())
        }
    }

    // MARK: The rest of ChannelCore

    package func withUnsafeTransport<Result>(_ body: (NIOBSDSocket.Handle) throws -> Result) throws -> Result {
        guard self.isOpen else { throw ChannelError.ioOnClosedChannel }
        return try body(self.descriptor)
    }

    package func localAddress0() throws -> SocketAddress { try Self.known(self.localAddress) }
    package func remoteAddress0() throws -> SocketAddress { try Self.known(self.remoteAddress) }

    private static func known(_ address: SocketAddress?) throws -> SocketAddress {
        guard let address else { throw ChannelError.unknownLocalAddress }
        return address
    }

    package func register0(promise: EventLoopPromise<Void>?) { Self.fail(promise, .operationUnsupported) }
    package func registerAlreadyConfigured0(promise: EventLoopPromise<Void>?) { Self.fail(promise, .operationUnsupported) }
    package func bind0(to: SocketAddress, promise: EventLoopPromise<Void>?) { Self.fail(promise, .operationUnsupported) }
    package func connect0(to: SocketAddress, promise: EventLoopPromise<Void>?) { Self.fail(promise, .operationUnsupported) }
    package func triggerUserOutboundEvent0(_ event: Any, promise: EventLoopPromise<Void>?) { Self.fail(promise, .operationUnsupported) }

    /// Input that no handler took.
    package func channelRead0(_ data: NIOAny) {}
    package func errorCaught0(error: any Error) {}
}
