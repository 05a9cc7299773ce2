package import Logging
package import NIOCore
package import Support
import Synchronization

/// Requires a PROXY protocol header, which names the client, on connections of TCP proxies. Any thread.
///
/// Only proxies in `access.proxyProtocolFrom` may send the header, since its sender can claim any address.
package final class ProxyEntrance: Sendable {
    private let from: Mutex<[CIDR]>
    private let limitMs: Atomic<Int64>
    package let sweepers: LoopSweepers
    private let clients: ClientAddresses
    private let counters: ServerCounters
    private let flood: LogRateLimiter
    private let log: Logger

    package init(
        from: [CIDR], deadlineMs: Int64, clients: ClientAddresses, counters: ServerCounters, flood: LogRateLimiter, sweepers: LoopSweepers,
        log: Logger
    ) {
        self.from = Mutex(from)
        self.limitMs = Atomic(deadlineMs)
        self.clients = clients
        self.counters = counters
        self.flood = flood
        self.sweepers = sweepers
        self.log = log
    }

    /// Applies changed settings. Open connections are not affected.
    package func set(from: [CIDR], deadlineMs: Int64) {
        self.from.withLock { $0 = from }
        self.limitMs.store(deadlineMs, ordering: .relaxed)
    }

    package var deadlineMs: Int64 { self.limitMs.load(ordering: .relaxed) }

    /// Makes a proxy's connection wait for its header. Call before adding any other handler, TLS too, while the connection is not active
    /// yet. On its loop. Returns true if the connection is a proxy's; `admitted` is then called when the header has arrived.
    @discardableResult
    package func guardConnection(_ channel: any Channel, admitted: @escaping () -> Void = {}) throws -> Bool {
        guard let remote = channel.remoteAddress, self.from.withLock({ $0.contains(address: remote) }) else { return false }
        try channel.pipeline.syncOperations.addHandler(ProxyHeaderHandler(self, admitted))
        return true
    }

    /// Records the client that the connection's header names.
    package func admitted(_ channel: any Channel, _ header: ProxyHeader) {
        switch header {
        case .client(let address): self.clients.proxied(channel, address)
        case .unknownClient: self.clients.proxied(channel, nil)
        case .proxyItself: break
        }
    }

    /// Counts and logs a connection without a valid header in time. Works as for RTMP connections.
    package func refused(_ remote: SocketAddress?, _ detail: String) {
        self.counters.update {
            $0.connectionsAccepted += 1
            $0.closed[.proxyHeader, default: 0] += 1
        }
        guard let held = self.flood.pass(nowMs: LoopSweeper.nowMs) else { return }
        let metadata: Logger.Metadata = [
            "reason": "\(CloseReason.proxyHeader.rawValue)", "remote": "\(remote?.hostAndPort ?? "unknown")", "detail": "\(detail)",
        ]
        self.log.write("Connection closed", metadata, heldBack: held)
    }
}

/// Holds a proxy's connection until its PROXY protocol header arrives, then removes itself. Loop-bound.
///
/// The handlers behind it see the connection become active only then; without a header it never does.
final class ProxyHeaderHandler: ChannelInboundHandler, RemovableChannelHandler, Sweepable {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private enum State {
        case waiting(ByteBuffer)
        /// The handlers behind this one use the connection.
        case done
        case refused
    }

    private let entrance: ProxyEntrance
    private let hasHeader: () -> Void
    private var state = State.waiting(ByteBuffer())
    private var remote: SocketAddress?
    private var context: ChannelHandlerContext?
    private var deadlineMs = Int64.max
    /// The server is shutting down.
    private var isQuiescing = false

    init(_ entrance: ProxyEntrance, _ admitted: @escaping () -> Void) {
        self.entrance = entrance
        self.hasHeader = admitted
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        self.remote = context.remoteAddress
        self.deadlineMs = LoopSweeper.nowMs + self.entrance.deadlineMs
        self.entrance.sweepers.of(context.eventLoop).add(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.entrance.sweepers.of(context.eventLoop).remove(self)
        self.context = nil
    }

    func sweep(nowMs: Int64) {
        guard nowMs >= self.deadlineMs, let context = self.context else { return }
        self.refuse("no PROXY protocol header within \(self.entrance.deadlineMs) ms (setting access.proxyProtocolFrom)", context)
    }

    func channelActive(context: ChannelHandlerContext) {
        if case .done = self.state { context.fireChannelActive() }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .waiting(var bytes) = self.state else {
            if case .done = self.state { context.fireChannelRead(data) }
            return
        }
        // A read has at most 64 KiB, and the bytes kept are less than a header.
        var more = self.unwrapInboundIn(data)
        bytes.writeBuffer(&more)
        do throws(ProxyHeaderError) {
            guard let header = try ProxyHeader(&bytes) else {
                self.state = .waiting(bytes)
                return
            }
            self.state = .done
            self.entrance.admitted(context.channel, header)
            self.hasHeader()
        } catch {
            return self.refuse("\(error)", context)
        }
        context.fireChannelActive()
        if self.isQuiescing { context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
        if bytes.readableBytes > 0 { context.fireChannelRead(self.wrapInboundOut(bytes)) }
        context.fireChannelReadComplete()
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if case .done = self.state { context.fireChannelReadComplete() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        switch self.state {
        case .done: context.fireChannelInactive()
        case .waiting: self.refuse("closed before its PROXY protocol header", context)
        case .refused: break
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch (self.state, event) {
        case (.done, _): context.fireUserInboundEventTriggered(event)
        // The header may be on its way. The handlers behind it learn of the shutdown.
        case (_, is ChannelShouldQuiesceEvent): self.isQuiescing = true
        case (_, ChannelEvent.inputClosed as ChannelEvent):
            self.refuse("closed before its PROXY protocol header", context)
        default: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if case .done = self.state { return context.fireErrorCaught(error) }
        self.refuse("closed before its PROXY protocol header", context)
    }

    private func refuse(_ detail: String, _ context: ChannelHandlerContext) {
        guard case .waiting = self.state else { return }
        self.state = .refused
        self.entrance.refused(self.remote, detail)
        context.close(promise: nil)
    }
}
