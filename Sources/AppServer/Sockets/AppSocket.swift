import Apps
package import HTTPServer
package import NIOCore
package import Support
import Synchronization

/// An app's WebSocket: reads whole messages within limits, pings, and cuts slow readers. Loop-bound.
package final class AppSocket: ChannelInboundHandler, Sweepable {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// Nil once `closed` has been called, because the session holds this connection.
    private var session: (any AppSession)?
    private let limits: AppSocketLimits
    private let sweepers: LoopSweepers
    private let counters: AppCounters
    private let note: (AppCounters.Cut, String) -> Void

    private var life = WebSocketLife(nowMs: LoopSweeper.nowMs)
    private var context: ChannelHandlerContext?
    private var sweeper: LoopSweeper?
    private var reader: WebSocketReader
    private var isOver = false
    private var isFlushDue = false
    /// Cut in this turn of the loop: nothing more is read, and the close frame follows the frames sent before.
    private var isCut = false
    private var messages: TokenBucket
    private var frames: TokenBucket
    /// Bytes of the largest frame since all was sent. Allowed on top of the backlog's limit, because a requested state may be larger than that.
    private var granted = 0
    private var bad: TokenBucket
    /// Unfinished messages and frames that wait to be sent, charged in steps.
    private let holding: HTTPHolding
    private static let chargeStep = 4 << 10

    private static let next = Atomic<UInt64>(1)

    /// `note` gets the reason when the server cuts the connection. `account`: whom its memory is charged to.
    package init(
        _ session: any AppSession, limits: AppSocketLimits, sweepers: LoopSweepers, counters: AppCounters, account: HTTPHoldings.Account,
        note: @escaping (AppCounters.Cut, String) -> Void = { _, _ in }
    ) {
        self.note = note
        self.holding = HTTPHolding(account)
        self.session = session
        self.limits = limits
        self.sweepers = sweepers
        self.counters = counters
        self.reader = WebSocketReader(messageBytes: limits.messageBytes)
        let nowNs = NIODeadline.now().uptimeNanoseconds
        let rate = Double(limits.messageRate)
        self.messages = TokenBucket(rate: rate, burst: 4 * rate, nowNs: nowNs)
        let frameRate = rate * AppSocketLimits.framesPerMessage
        self.frames = TokenBucket(rate: frameRate, burst: 4 * frameRate, nowNs: nowNs)
        self.bad = TokenBucket(rate: AppSocketLimits.badMessages / 10, burst: AppSocketLimits.badMessages, nowNs: nowNs)
    }

    // MARK: - Life

    private var nowMs: Int64 { LoopSweeper.nowMs }

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let sweeper = self.sweepers.of(context.eventLoop)
        self.sweeper = sweeper
        self.life = WebSocketLife(nowMs: self.nowMs)
        sweeper.add(self)
        self.counters.update { $0.connections += 1 }
        let id = ConnectionID(Self.next.wrappingAdd(1, ordering: .relaxed).oldValue)
        self.session?.opened(AppPeer(id, NIOLoopBound(self, eventLoop: context.eventLoop)))
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.end()
        self.sweeper?.remove(self)
        self.life.end()
        self.context = nil
        self.counters.update { $0.connections -= 1 }
    }

    package func channelInactive(context: ChannelHandlerContext) {
        self.end()
        self.life.end()
        context.fireChannelInactive()
    }

    private func end() {
        guard !self.isOver else { return }
        self.isOver = true
        let session = self.session
        self.session = nil
        session?.closed()
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
        self.charge(self.waiting(context))
        switch self.life.due(nowMs: nowMs) {
        case .nothing: break
        case .ping: self.write(WebSocketWriter.ping(), context)
        case .dead: self.cut(.silent, 1013, "no answer to pings", listens: true)
        case .cut: context.close(promise: nil)
        }
    }

    // MARK: - Sending

    func send(_ frame: ByteBuffer, written: (@Sendable (Bool) -> Void)? = nil) {
        guard self.life.isOpen, let context = self.context else {
            written?(false)
            return
        }
        let waiting = self.waiting(context)
        if waiting == 0 { self.granted = 0 }
        guard waiting <= self.limits.backlogBytes + self.granted else {
            self.cut(.tooSlow, 1013, "reads too slowly: \(waiting) bytes wait", listens: true)
            written?(false)
            return
        }
        self.granted = max(self.granted, frame.readableBytes)
        guard self.charge(waiting) || waiting == 0 else {
            self.cut(.memory, 1013, Self.pastShare)
            written?(false)
            return
        }
        var promise: EventLoopPromise<Void>?
        if let written {
            let made = context.eventLoop.makePromise(of: Void.self)
            made.futureResult.whenComplete { result in
                switch result {
                case .success: written(true)
                case .failure: written(false)
                }
            }
            promise = made
        }
        self.write(frame, context, promise)
    }

    /// Bytes that the client has not taken yet.
    private func waiting(_ context: ChannelHandlerContext) -> Int {
        (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    /// Charges what the connection makes the server hold; returns whether its address is within its share.
    @discardableResult
    private func charge(_ waiting: Int) -> Bool {
        let held = self.reader.heldBytes + waiting
        if abs(held - self.holding.bytes) >= Self.chargeStep { self.holding.set(held) }
        return self.holding.account.mayAnswer()
    }

    private static let pastShare = "this address makes the server hold too much (limits.memory)"

    /// Flushes once for all frames of this turn of the loop.
    private func write(_ frame: ByteBuffer, _ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>? = nil) {
        context.write(self.wrapOutboundOut(frame), promise: promise)
        guard !self.isFlushDue else { return }
        self.isFlushDue = true
        context.eventLoop.assumeIsolated().execute {
            self.isFlushDue = false
            self.context?.flush()
        }
    }

    /// Sends code and reason, then waits briefly for the peer's close frame.
    func close(_ code: UInt16, _ reason: String, listens: Bool = true) {
        guard let context = self.context, self.life.beginClose(nowMs: self.nowMs, listens: listens) else { return }
        self.write(WebSocketWriter.close(code, reason), context)
        self.end()
    }

    // MARK: - Receiving

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = self.unwrapInboundIn(data)
        guard self.life.isListening else { return }
        self.reader.append(&bytes)
        let before = self.reader.frames
        do throws(WebSocketError) {
            while self.life.isListening, !self.isCut, let input = try self.reader.next() { self.receive(input, context) }
            let count = self.reader.frames - before
            if count > 0 { self.life.received(nowMs: self.nowMs) }
            guard self.life.isOpen else { return }
            guard self.charge(self.waiting(context)) || self.reader.heldBytes < Self.chargeStep else {
                return self.cut(.memory, 1013, Self.pastShare)
            }
            let nowNs = NIODeadline.now().uptimeNanoseconds
            for _ in 0..<count where !self.frames.acquire(nowNs: nowNs).isAllowed {
                return self.cut(.tooMany, 1008, "more than \(Int(AppSocketLimits.framesPerMessage)) frames for a message")
            }
        } catch {
            if self.life.isOpen { self.cut(.protocolError, error.code, error.reason) } else { context.close(promise: nil) }
        }
    }

    private func receive(_ input: WebSocketReader.Input, _ context: ChannelHandlerContext) {
        if case .close(let code) = input {
            if self.life.peerCloses(nowMs: self.nowMs) {
                self.write(WebSocketWriter.close(code ?? 1000, ""), context)
                self.end()
            }
            return context.closeWhenWritten()
        }
        guard self.life.isOpen else { return }
        guard self.messages.acquire(nowNs: NIODeadline.now().uptimeNanoseconds).isAllowed else {
            return self.cut(.tooMany, 1008, "more than \(self.limits.messageRate) messages a second")
        }
        switch input {
        case .ping(let payload): self.write(WebSocketWriter.pong(payload), context)
        case .text(let text):
            self.counters.update { $0.messages += 1 }
            if self.session?.received(text) == false { self.noteBad() }
        case .binary:
            self.cut(.protocolError, 1003, "expected text, not binary")
        case .pong, .close: break
        }
    }

    /// Ends the connection after twenty bad messages within ten seconds.
    private func noteBad() {
        self.counters.update { $0.badMessages += 1 }
        guard !self.bad.acquire(nowNs: NIODeadline.now().uptimeNanoseconds).isAllowed else { return }
        self.cut(.badMessages, 1008, "too many messages that cannot be taken")
    }

    /// Cuts the connection because of the peer's behaviour; counts and reports it.
    private func cut(_ why: AppCounters.Cut, _ code: UInt16, _ reason: String, listens: Bool = false) {
        guard self.life.isOpen, !self.isCut, let context = self.context else { return }
        self.isCut = true
        self.counters.update { $0.cut[why, default: 0] += 1 }
        self.note(why, reason)
        context.eventLoop.assumeIsolated().execute {
            self.isCut = false
            self.close(code, reason, listens: listens)
        }
    }
}
