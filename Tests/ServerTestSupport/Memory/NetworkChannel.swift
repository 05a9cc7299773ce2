import LibC
import NIOCore
import Synchronization
import TestSupport

/// One end of a connection in memory, on a real event loop: what a socket is to its handlers, without a kernel. It has what they notice of a
/// socket: reads when they are asked for, back-pressure, and ends of each direction by itself.
///
/// `@unchecked Sendable`: its `var`s are touched on its loop only, but for the flags, which have a lock.
final class NetworkChannel: Channel, @unchecked Sendable {
    let eventLoop: any EventLoop
    let allocator = ByteBufferAllocator()
    let localAddress: SocketAddress?
    let remoteAddress: SocketAddress?
    private let incoming: MemoryPipe
    private let outgoing: MemoryPipe
    private let closePromise: EventLoopPromise<Void>
    private let flags = Mutex((isActive: false, isWritable: true))
    private var ownPipeline: ChannelPipeline?

    private var waiting = CircularBuffer<(bytes: ByteBuffer, promise: EventLoopPromise<Void>?)>()
    private var flushed = 0
    private var waitingBytes = 0
    private var wantsRead = false
    private var inputEnded = false
    private var outputEnded = false
    /// The output ends once all that was flushed is taken.
    private var ending: EventLoopPromise<Void>?
    private var isClosed = false

    // Options.
    private var autoRead = true
    private var allowsHalfClosure = false
    private var waterMark = ChannelOptions.Types.WriteBufferWaterMark(low: 32 << 10, high: 64 << 10)

    init(
        on eventLoop: any EventLoop, _ incoming: MemoryPipe, _ outgoing: MemoryPipe, localAddress: SocketAddress,
        remoteAddress: SocketAddress
    ) {
        self.eventLoop = eventLoop
        self.incoming = incoming
        self.outgoing = outgoing
        self.localAddress = localAddress
        self.remoteAddress = remoteAddress
        self.closePromise = eventLoop.makePromise()
        self.ownPipeline = ChannelPipeline(channel: self)
    }

    var pipeline: ChannelPipeline {
        guard let pipeline = self.ownPipeline else { fatalError("made with the channel") }
        return pipeline
    }
    var closeFuture: EventLoopFuture<Void> { self.closePromise.futureResult }
    var parent: (any Channel)? { nil }
    var isActive: Bool { self.flags.withLock { $0.isActive } }
    var isWritable: Bool { self.flags.withLock { $0.isWritable } }
    var _channelCore: any ChannelCore { self }

    /// Begins, once the handlers are there. On its loop.
    func activate() {
        guard !self.isClosed else { return }
        self.flags.withLock { $0.isActive = true }
        self.pipeline.fireChannelRegistered()
        self.pipeline.fireChannelActive()
        if self.autoRead, !self.isClosed { self.pipeline.read() }
    }

    /// The other side has done something. On any thread.
    func wake() {
        self.eventLoop.execute {
            self.drain()
            self.receive()
        }
    }

    // MARK: - In

    private func receive() {
        guard self.isActive, !self.inputEnded else { return }
        // As with a socket, the end is noticed by who does not read, and everything before it is read.
        while self.isActive, !self.inputEnded, self.wantsRead || self.incoming.hasEnded {
            let (bytes, isEnd) = self.incoming.pop()
            guard bytes != nil || isEnd else { return }
            if let bytes {
                self.wantsRead = false
                self.pipeline.fireChannelRead(bytes)
                self.pipeline.fireChannelReadComplete()
            }
            guard self.isActive, !self.inputEnded else { return }
            if isEnd { return self.inputEnds() }
            if self.autoRead, !self.wantsRead { self.pipeline.read() }
        }
    }

    private func inputEnds() {
        self.inputEnded = true
        guard self.allowsHalfClosure, !self.outputEnded else { return self.end(ChannelError.eof) }
        self.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }

    // MARK: - Out

    private func drain() {
        while self.flushed > 0, !self.isClosed {
            let before = self.waiting[self.waiting.startIndex].bytes.readableBytes
            guard let taken = self.outgoing.push(&self.waiting[self.waiting.startIndex].bytes) else {
                // TCP hears of it only after a write that seemed to go well.
                self.eventLoop.execute { self.end(IOError(errnoCode: ECONNRESET, reason: "the other side is gone")) }
                return
            }
            self.waitingBytes -= before - self.waiting[self.waiting.startIndex].bytes.readableBytes
            guard taken == .all else { break }
            let promise = self.waiting.removeFirst().promise
            self.flushed -= 1
            promise?.succeed()
        }
        guard !self.isClosed else { return }
        if self.waitingBytes < self.waterMark.low, !self.isWritable { self.becomesWritable(true) }
        if self.flushed == 0, let ending = self.ending { self.outputEnds(ending) }
    }

    private func becomesWritable(_ isWritable: Bool) {
        self.flags.withLock { $0.isWritable = isWritable }
        self.pipeline.fireChannelWritabilityChanged()
    }

    private func outputEnds(_ promise: EventLoopPromise<Void>) {
        self.ending = nil
        self.outputEnded = true
        self.outgoing.end()
        self.pipeline.fireUserInboundEventTriggered(ChannelEvent.outputClosed)
        promise.succeed()
        if self.inputEnded { self.end(ChannelError.eof) }
    }

    // MARK: - The end

    private func end(_ error: any Error) {
        guard !self.isClosed else { return }
        self.isClosed = true
        let wasActive = self.flags.withLock { flags in
            defer { flags = (false, false) }
            return flags.isActive
        }
        self.outgoing.end()
        self.incoming.breakOff()
        let lost = self.waiting.compactMap(\.promise) + (self.ending.map { [$0] } ?? [])
        self.waiting.removeAll()
        self.ending = nil
        for promise in lost { promise.fail(error) }
        if wasActive {
            self.pipeline.fireChannelInactive()
            self.pipeline.fireChannelUnregistered()
        }
        // Handlers may be at work on this close.
        self.eventLoop.execute {
            self.removeHandlers(pipeline: self.pipeline)
            self.closePromise.succeed()
        }
    }

    // MARK: - Options

    func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> EventLoopFuture<Void> {
        self.onLoop { self.set(option, value) }
    }

    func getOption<Option: ChannelOption>(_ option: Option) -> EventLoopFuture<Option.Value> {
        self.onLoop { try self.get(option) }
    }

    private func onLoop<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) -> EventLoopFuture<Result> {
        self.eventLoop.inEventLoop ? self.eventLoop.makeCompletedFuture { try body() } : self.eventLoop.submit(body)
    }

    var syncOptions: (any NIOSynchronousChannelOptions)? { Options(channel: self) }

    private struct Options: NIOSynchronousChannelOptions {
        let channel: NetworkChannel
        func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) throws { self.channel.set(option, value) }
        func getOption<Option: ChannelOption>(_ option: Option) throws -> Option.Value { try self.channel.get(option) }
    }

    /// Those of sockets have no effect.
    private func set<Option: ChannelOption>(_ option: Option, _ value: Option.Value) {
        switch (option, value) {
        case (is ChannelOptions.Types.AutoReadOption, let value as Bool):
            self.autoRead = value
            if value, self.isActive { self.pipeline.read() }
        case (is ChannelOptions.Types.AllowRemoteHalfClosureOption, let value as Bool): self.allowsHalfClosure = value
        case (is ChannelOptions.Types.WriteBufferWaterMarkOption, let value as ChannelOptions.Types.WriteBufferWaterMark):
            self.waterMark = value
        default: break
        }
    }

    private func get<Option: ChannelOption>(_ option: Option) throws -> Option.Value {
        let value: Any? =
            switch option {
            case is ChannelOptions.Types.AutoReadOption: self.autoRead
            case is ChannelOptions.Types.AllowRemoteHalfClosureOption: self.allowsHalfClosure
            case is ChannelOptions.Types.WriteBufferWaterMarkOption: self.waterMark
            case is ChannelOptions.Types.BufferedWritableBytesOption: self.waitingBytes
            default: nil
            }
        guard let value = value as? Option.Value else { throw ChannelError.operationUnsupported }
        return value
    }
}

/// The operations at the pipeline's head. On its loop.
extension NetworkChannel: ChannelCore {
    func localAddress0() throws -> SocketAddress { try self.localAddress.orThrow() }
    func remoteAddress0() throws -> SocketAddress { try self.remoteAddress.orThrow() }
    func register0(promise: EventLoopPromise<Void>?) { promise?.succeed() }
    func registerAlreadyConfigured0(promise: EventLoopPromise<Void>?) { promise?.succeed() }
    func bind0(to: SocketAddress, promise: EventLoopPromise<Void>?) { promise?.fail(ChannelError.operationUnsupported) }
    func connect0(to: SocketAddress, promise: EventLoopPromise<Void>?) { promise?.fail(ChannelError.operationUnsupported) }
    func triggerUserOutboundEvent0(_ event: Any, promise: EventLoopPromise<Void>?) {
        promise?.fail(ChannelError.operationUnsupported)
    }
    func channelRead0(_ data: NIOAny) {}
    func errorCaught0(error: any Error) {}

    func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !self.isClosed, !self.outputEnded, self.ending == nil else {
            promise?.fail(self.isClosed ? ChannelError.ioOnClosedChannel : ChannelError.outputClosed)
            return
        }
        guard case .byteBuffer(let bytes) = self.unwrapData(data, as: IOData.self) else {
            promise?.fail(ChannelError.operationUnsupported)
            return
        }
        self.waiting.append((bytes, promise))
        self.waitingBytes += bytes.readableBytes
        if self.waitingBytes > self.waterMark.high, self.isWritable { self.becomesWritable(false) }
    }

    func flush0() {
        self.flushed = self.waiting.count
        self.drain()
    }

    func read0() {
        self.wantsRead = true
        self.eventLoop.execute { self.receive() }
    }

    func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard !self.isClosed else {
            promise?.fail(ChannelError.alreadyClosed)
            return
        }
        switch mode {
        case .all:
            self.end(error)
            promise?.succeed()
        case .output where self.outputEnded || self.ending != nil: promise?.fail(ChannelError.outputClosed)
        case .output:
            let ending = promise ?? self.eventLoop.makePromise()
            self.ending = ending
            self.drain()
        case .input where self.inputEnded: promise?.fail(ChannelError.inputClosed)
        case .input:
            self.inputEnded = true
            self.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            promise?.succeed()
            if self.outputEnded { self.end(error) }
        }
    }
}
