import Apps
import HTTPServer
package import NIOCore
package import Support
import Synchronization

/// An app's WebSocket: reads whole messages within limits, pings, and cuts who reads too slowly. Loop-bound.
package final class AppSocket: ChannelInboundHandler, Sweepable {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    private enum Mode: Equatable {
        case open
        /// Our close frame is on its way. Waits for the peer's, unless the peer broke the protocol.
        case closing(untilMs: Int64, listens: Bool)
        case closed
    }

    private let session: any AppSession
    private let limits: AppSocketLimits
    private let sweepers: LoopSweepers
    private let counters: AppCounters

    private var mode = Mode.open
    private var context: ChannelHandlerContext?
    private var sweeper: LoopSweeper?
    private var reader: WebSocketReader
    private var isOver = false
    private var isFlushDue = false
    private var lastFrameMs: Int64 = 0
    private var lastPingMs: Int64 = 0
    private var messages: TokenBucket
    private var bad: TokenBucket

    private static let next = Atomic<UInt64>(1)

    package init(_ session: any AppSession, limits: AppSocketLimits, sweepers: LoopSweepers, counters: AppCounters) {
        self.session = session
        self.limits = limits
        self.sweepers = sweepers
        self.counters = counters
        self.reader = WebSocketReader(messageBytes: limits.messageBytes)
        let nowNs = NIODeadline.now().uptimeNanoseconds
        let rate = Double(limits.messageRate)
        self.messages = TokenBucket(rate: rate, burst: 4 * rate, nowNs: nowNs)
        self.bad = TokenBucket(rate: AppSocketLimits.badMessages / 10, burst: AppSocketLimits.badMessages, nowNs: nowNs)
    }

    // MARK: - Life

    private var nowMs: Int64 { LoopSweeper.nowMs }

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let sweeper = self.sweepers.of(context.eventLoop)
        self.sweeper = sweeper
        self.lastFrameMs = self.nowMs
        self.lastPingMs = self.lastFrameMs
        sweeper.add(self)
        self.counters.update { $0.connections += 1 }
        let id = ConnectionID(Self.next.wrappingAdd(1, ordering: .relaxed).oldValue)
        self.session.opened(AppPeer(id, NIOLoopBound(self, eventLoop: context.eventLoop)))
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.end()
        self.sweeper?.remove(self)
        self.mode = .closed
        self.context = nil
        self.counters.update { $0.connections -= 1 }
    }

    package func channelInactive(context: ChannelHandlerContext) {
        self.end()
        self.mode = .closed
        context.fireChannelInactive()
    }

    private func end() {
        guard !self.isOver else { return }
        self.isOver = true
        self.session.closed()
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent: self.close(1001, "the server is shutting down")
        case ChannelEvent.inputClosed as ChannelEvent: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    package func sweep(nowMs: Int64) {
        guard let context = self.context else { return }
        switch self.mode {
        case .closed: break
        case .closing(let untilMs, _):
            if nowMs >= untilMs { context.close(promise: nil) }
        case .open:
            if nowMs - self.lastFrameMs >= AppSocketLimits.deadMs {
                self.close(1013, "no answer to pings")
            } else if nowMs - self.lastPingMs >= AppSocketLimits.pingMs {
                self.lastPingMs = nowMs
                self.write(WebSocketWriter.ping(), context)
            }
        }
    }

    // MARK: - Out

    func send(_ frame: ByteBuffer) {
        guard case .open = self.mode, let context = self.context else { return }
        let waiting = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        guard waiting <= self.limits.backlogBytes else {
            self.counters.update { $0.cut[.tooSlow, default: 0] += 1 }
            return self.close(1013, "reads too slowly: \(waiting) bytes wait")
        }
        self.write(frame, context)
    }

    /// Flushes once for all frames of this turn of the loop.
    private func write(_ frame: ByteBuffer, _ context: ChannelHandlerContext) {
        context.write(self.wrapOutboundOut(frame), promise: nil)
        guard !self.isFlushDue else { return }
        self.isFlushDue = true
        context.eventLoop.assumeIsolated().execute {
            self.isFlushDue = false
            self.context?.flush()
        }
    }

    /// Sends code and reason, then waits a moment for the peer's close frame.
    func close(_ code: UInt16, _ reason: String, listens: Bool = true) {
        guard case .open = self.mode, let context = self.context else { return }
        self.mode = .closing(untilMs: self.nowMs + AppSocketLimits.closeMs, listens: listens)
        self.write(WebSocketWriter.close(code, reason), context)
        self.end()
    }

    // MARK: - In

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = self.unwrapInboundIn(data)
        guard self.isListening else { return }
        self.reader.append(&bytes)
        let before = self.reader.frames
        do throws(WebSocketError) {
            while self.isListening, let input = try self.reader.next() { self.take(input, context) }
            if self.reader.frames > before { self.lastFrameMs = self.nowMs }
        } catch {
            self.counters.update { $0.cut[.protocolError, default: 0] += 1 }
            if case .open = self.mode { self.close(error.code, error.reason, listens: false) } else { context.close(promise: nil) }
        }
    }

    private var isListening: Bool {
        switch self.mode {
        case .open: true
        case .closing(_, let listens): listens
        case .closed: false
        }
    }

    private func take(_ input: WebSocketReader.Input, _ context: ChannelHandlerContext) {
        if case .close(let code) = input {
            // RFC 6455 §5.5.1: return the same code; the server then closes first, §7.1.1.
            if case .open = self.mode { self.close(code ?? 1000, "") }
            self.mode = .closing(untilMs: self.nowMs + AppSocketLimits.closeMs, listens: false)
            let done = context.eventLoop.makePromise(of: Void.self)
            done.futureResult.assumeIsolated().whenComplete { _ in context.close(promise: nil) }
            context.writeAndFlush(self.wrapOutboundOut(ByteBuffer()), promise: done)
            return
        }
        guard case .open = self.mode else { return }
        guard self.messages.take(nowNs: NIODeadline.now().uptimeNanoseconds).isAllowed else {
            self.counters.update { $0.cut[.tooMany, default: 0] += 1 }
            return self.close(1008, "more than \(self.limits.messageRate) messages a second", listens: false)
        }
        switch input {
        case .ping(let payload): self.write(WebSocketWriter.pong(payload), context)
        case .text(let text):
            self.counters.update { $0.messages += 1 }
            if !self.session.received(text) { self.noteBad() }
        case .binary:
            self.close(1003, "expected text, not binary", listens: false)
        case .pong, .close: break
        }
    }

    /// Twenty within ten seconds end the connection.
    private func noteBad() {
        self.counters.update { $0.badMessages += 1 }
        guard !self.bad.take(nowNs: NIODeadline.now().uptimeNanoseconds).isAllowed else { return }
        self.counters.update { $0.cut[.badMessages, default: 0] += 1 }
        self.close(1008, "too many messages that cannot be taken", listens: false)
    }
}
