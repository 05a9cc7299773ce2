import HTTPTypes
import NIOCore
import NIOHTTP1
import Support

/// Handles an HTTP/1.1 connection below the router: time limits, errors outside requests, and handoffs.
///
/// Sits between NIO's HTTP codec and Hummingbird's handlers. NIO's own upgrade handler looks only at a connection's first request, which
/// fails behind proxies that reuse connections, and it cannot answer a refused request.
///
/// ```
/// http --a loop part's request--> onLoop --answered--> http
/// http --a handoff's request--> claimed --earlier answers written--> deciding --accept--> switching --HTTP's handlers gone--> handedOff
///                                                                     deciding --refuse--> closing
/// ```
/// Loop-bound.
final class HTTPConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler, Sweepable {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    enum Mode {
        case http
        /// Waits for the end of a request that may be answered on the loop.
        case asked(HTTPRequestHead)
        /// The loop's answer is due, or on its way. What the client has sent meanwhile comes after it.
        case onLoop
        /// Waits for the request's end, and for the answers to earlier requests.
        case claimed(any HTTPHandoff, HTTPRequestHead, isComplete: Bool)
        case deciding
        case switching
        /// A handoff owns the connection; the handlers behind this one are cut off from it.
        case handedOff
        /// The last answer was written. Waits for the peer to close, because a reset could destroy the answer.
        case closing(untilMs: Int64)
    }

    private let sweeper: LoopSweeper
    let handoffs: [any HTTPHandoff]
    let place: HTTPPlace
    let loopPart: (any HTTPLoopPart)?
    private let isSecure: Bool
    /// NIO's codec, which leaves the pipeline when the connection is taken.
    let codec: [any RemovableChannelHandler]
    var state: HTTPConnectionState
    /// A neighbor of HTTP has the connection.
    private var isNeighbors = false
    var mode = Mode.http
    var context: ChannelHandlerContext?
    /// The newest request is the connection's last, whose answer says so; later ones are ignored (RFC 9112 §9.6). NIO's decoder stops for
    /// good at a request for an upgrade, granted or not.
    var closesAfterAnswer = false
    private var goodHost: String?
    /// Ignores all further input.
    private var dropsInput = false
    /// The head of the answer to the oldest request is written.
    private var hasBegunAnswer = false
    /// The newest request's client waits for 100 (Continue).
    private var expectsContinue = false
    /// The newest request is HTTP/1.0, whose clients know neither chunks nor pipelining.
    private var isOld = false
    /// Answer to a request refused by its head, sent after all earlier answers.
    private var refusal: APIError?
    private var forwarded: HTTPForwarded?
    /// What the requests in progress make the server hold. Nil between requests, and once a handoff has the connection.
    var holding: HTTPHolding?
    private var isOverdue = false
    /// What the client sent while the loop's answer was due, and whether more is asked for.
    var early: [HTTPServerRequestPart] = []
    var wantsRead = false
    /// Bytes of the answer not yet taken by the socket, when last looked at.
    var unsentBytes = Int.max
    /// NIO's encoder: what is written from its place goes out as it is.
    var encoder: ChannelHandlerContext?
    /// Tells the newest request, if that waits for something, that the peer has gone.
    var watch = InputWatch()

    /// Most parts of requests behind one whose answer on the loop is due; browsers send none.
    private static let earlyLimit = 128
    private static let lingerMs: Int64 = 1_000
    /// Time limit for the request of a refused connection; a health check is still answered.
    static let refusedMs: Int64 = 1_000
    /// Time limit for an answer that may still be in our buffers.
    private static let drainMs: Int64 = 10_000

    /// `openedMs`: when the connection began. A connection without a place gets the refusal as its answer, except for a health check.
    init(
        sweeper: LoopSweeper, limits: HTTPLimits, loopPart: (any HTTPLoopPart)?, handoffs: [any HTTPHandoff],
        codec: [any RemovableChannelHandler],
        openedMs: Int64, place: HTTPPlace, isSecure: Bool
    ) {
        self.sweeper = sweeper
        self.loopPart = loopPart
        self.handoffs = handoffs
        self.codec = codec
        self.place = place
        self.isSecure = isSecure
        var limits = limits
        if place.refusal != nil { limits.headMs = min(limits.headMs, Self.refusedMs) }
        self.state = HTTPConnectionState(limits: limits, nowMs: openedMs)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        self.sweeper.add(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.sweeper.remove(self)
        self.context = nil
        self.encoder = nil
        self.forwarded = nil
        self.holding = nil
        self.early = []
    }

    func sweep(nowMs: Int64) {
        if case .onLoop = self.mode { self.noteProgress(nowMs: nowMs) }
        switch self.mode {
        case .http, .asked, .onLoop, .claimed, .deciding, .switching:
            if self.state.isBodyOverdue(nowMs: nowMs) {
                self.hit(.httpBody)
                guard self.state.inProgress == 1, !self.hasBegunAnswer, let context = self.context else { break }
                return self.answer(BodyPace.error, context)
            }
            guard self.state.isOverdue(nowMs: nowMs) else { return }
            if let refusal = self.place.refusal, case .http = self.mode, self.state.inProgress == 0, let context = self.context {
                return self.answer(refusal.error, context)
            }
            if !self.state.hasBegun { self.hit(.httpHead) }
        case .closing(let untilMs):
            guard nowMs >= untilMs else { return }
        case .handedOff: return
        }
        self.context?.close(promise: nil)
    }

    /// Counts a time limit, once: a connection over TLS takes seconds to close.
    func hit(_ limit: CountedLimit) {
        if !self.isOverdue { self.place.hit(limit) }
        self.isOverdue = true
    }

    // MARK: - In

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch self.mode {
        case .http where self.dropsInput:
            break
        case .http:
            switch self.unwrapInboundIn(data) {
            case .head(let head):
                self.headArrived(head, context)
            case .body(let bytes):
                self.state.bodyArrived(bytes.readableBytes)
                self.holding?.add(bytes.readableBytes)
                context.fireChannelRead(data)
            case .end:
                self.state.requestEnded()
                context.fireChannelRead(data)
            }
        case .asked(let head):
            guard case .end = self.unwrapInboundIn(data) else { return }
            self.state.requestEnded()
            self.answerOnLoop(head, context)
        case .onLoop:
            // One read holds thousands of short requests, which take far more memory as parts.
            guard self.early.count < Self.earlyLimit else {
                self.hit(.httpMemory)
                return context.close(promise: nil)
            }
            self.early.append(self.unwrapInboundIn(data))
        case .claimed(let handoff, let head, isComplete: false):
            // Handoffs ignore the body.
            guard case .end = self.unwrapInboundIn(data) else { return }
            self.state.requestEnded()
            self.mode = .claimed(handoff, head, isComplete: true)
            self.decideIfDue(context)
        case .claimed, .deciding, .switching, .handedOff, .closing:
            // Drop without unwrapping: a codec that is being removed may pass on raw bytes. RFC 6455 §4.1: a client sends nothing before it
            // has our answer.
            break
        }
    }

    private func headArrived(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        if self.closesAfterAnswer {
            self.dropsInput = true
            return
        }
        if self.state.inProgress == 0 { self.place.work() }
        do throws(APIError) {
            if let refusal = Self.refusal(of: head, self.place.refusal, goodHost: &self.goodHost) { throw refusal }
            self.forwarded = try self.place.forwarded(head.headers["x-forwarded-for"], on: context.channel)
            try self.hold(head)
        } catch {
            guard self.state.inProgress > 0 else { return self.answer(error, context, toHead: head.method == .HEAD) }
            self.refusal = error
            self.dropsInput = true
            return
        }
        self.closesAfterAnswer = self.place.refusal != nil
        self.state.headArrived(nowMs: LoopSweeper.nowMs)
        // A client that asks on without reading waits behind the router's back-pressure.
        if let part = self.loopPart, part.mayAnswer(head.uri), self.state.inProgress == 1, !self.closesAfterAnswer, head.isPlainGet,
            context.channel.isWritable
        {
            self.mode = .asked(head)
            return
        }
        self.pass(head, context)
    }

    /// Gives the request to a handoff, or else to the router.
    func pass(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        if let handoff = self.handoffs.first(where: { $0.door(head) != nil }) {
            self.mode = .claimed(handoff, head, isComplete: false)
            return
        }
        var head = head
        self.isOld = head.isOld
        // RFC 9112 §9.6: the client's last request. Hummingbird recognizes only the exact value "close".
        let isLast = head.list("connection", contains: "close")
        if isLast || self.isOld || head.headers.contains(name: "upgrade") || head.method == .CONNECT {
            // Otherwise an ordinary request whose upgrade offer is ignored (RFC 9110 §7.8), as from curl --http2; or HTTP/1.0 (ab, curl -0).
            self.closesAfterAnswer = true
            head.headers.remove(name: "upgrade")
            head.headers.replaceOrAdd(name: "connection", value: "close")
        }
        // RFC 9110 §10.1.1: ignored in HTTP/1.0.
        self.expectsContinue = !self.isOld && head.list("expect", contains: "100-continue")
        context.fireChannelRead(self.wrapInboundOut(.head(head)))
    }

    func channelInactive(context: ChannelHandlerContext) {
        // Without an error, whoever reads the body would take the part that came for the whole.
        if self.state.isReading { context.fireErrorCaught(ChannelError.eof) }
        context.fireChannelInactive()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        switch self.mode {
        case .handedOff, .closing:
            // Automatic reads start at the pipeline's end, which has finished or applies back-pressure, so none would reach the socket.
            context.read()
        default:
            context.fireChannelReadComplete()
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch (event, self.mode) {
        case (is ConnectionTaken, _):
            self.mode = .handedOff
            self.isNeighbors = true
        case (is ChannelShouldQuiesceEvent, .handedOff):
            break
        case (is ChannelShouldQuiesceEvent, .closing), (is ChannelShouldQuiesceEvent, .switching):
            context.close(promise: nil)
        case (is ChannelShouldQuiesceEvent, _):
            if self.state.quiesce() { context.close(promise: nil) }
        case (ChannelEvent.inputClosed as ChannelEvent, .http):
            self.watch.end()?()
            context.fireUserInboundEventTriggered(event)
        case (ChannelEvent.inputClosed as ChannelEvent, .handedOff):
            break
        case (ChannelEvent.inputClosed as ChannelEvent, .onLoop):
            // It may still read the answer, its last.
            self.closesAfterAnswer = true
        case (ChannelEvent.inputClosed as ChannelEvent, _):
            context.close(promise: nil)
        default:
            context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch self.mode {
        case .http:
            // During a request, Hummingbird answers.
            guard self.state.inProgress == 0, error is HTTPParserError || error is ByteToMessageDecoderError.PayloadTooLargeError else {
                context.fireErrorCaught(error)
                return
            }
            let isTooLarge = !(error is HTTPParserError) || (error as? HTTPParserError) == .headerOverflow
            self.answer(
                isTooLarge
                    ? APIError(.requestHeaderFieldsTooLarge, .tooLarge, "The request's head is too large.")
                    : APIError(.badRequest, .invalid, "This is not an HTTP/1.1 request."), context)
        case .asked, .onLoop, .claimed, .deciding, .switching, .handedOff, .closing:
            context.close(promise: nil)
        }
    }

    // MARK: - Out

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch self.mode {
        case .http, .claimed:
            switch self.unwrapOutboundIn(data) {
            case .head(var head) where self.state.inProgress == 1:
                self.hasBegunAnswer = true
                // HTTP/1.0 knows no chunks.
                if self.isOld { head.version = .http1_0 }
                // Do not wait for the rest of the request. At a shutdown this is the last answer, unless the refusal of another request follows.
                if self.closesAfterAnswer || self.state.isReading || (self.state.isQuiescing && self.refusal == nil) {
                    head.headers.replaceOrAdd(name: "connection", value: "close")
                }
                if head.list("connection", contains: "close") { self.closesAfterAnswer = true }
                context.write(self.wrapOutboundOut(.head(head)), promise: promise)
            case .head:
                self.hasBegunAnswer = true
                context.write(data, promise: promise)
            case .body(let data):
                self.state.answerProgressed(nowMs: LoopSweeper.nowMs)
                self.write(data, context, promise)
            case .end:
                context.write(data, promise: promise)
                self.answerEnded(context)
            }
        case .asked, .onLoop, .deciding, .switching, .handedOff, .closing:
            promise?.fail(ChannelError.ioOnClosedChannel)
        }
    }

    /// Charges the head to the request's client. Throws 503 past its share.
    private func hold(_ head: HTTPRequestHead) throws(APIError) {
        let holding = self.holding ?? self.place.holding(for: self.forwarded)
        guard holding.account.hasSpace || Self.isHealthCheck(head.uri) else {
            self.hit(.httpMemory)
            throw HTTPPlace.pastShare
        }
        holding.add(head.uri.utf8.count + head.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + HTTPHolding.fieldBytes })
        self.holding = holding
    }

    /// Writes a part of the answer, which counts as held until it is sent.
    private func write(_ data: IOData, _ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
        guard let holding = self.holding else { return context.write(self.wrapOutboundOut(.body(data)), promise: promise) }
        let bytes = data.readableBytes
        holding.add(bytes)
        let sent = promise ?? context.eventLoop.makePromise()
        sent.futureResult.assumeIsolated().whenComplete { _ in holding.add(-bytes) }
        context.write(self.wrapOutboundOut(.body(data)), promise: sent)
        guard holding.account.mayAnswer(bytes) else {
            self.hit(.httpMemory)
            return context.close(promise: nil)
        }
    }

    func answerEnded(_ context: ChannelHandlerContext) {
        let quiesced = self.state.answerEnded(nowMs: LoopSweeper.nowMs)
        self.hasBegunAnswer = false
        if self.state.inProgress == 0 {
            self.forwarded = nil
            self.holding = nil
            self.place.rest()
            if let refusal = self.refusal { return self.answer(refusal, context) }
        }
        if quiesced || (self.closesAfterAnswer && self.state.inProgress == 0) {
            self.finish(context)
        } else {
            self.decideIfDue(context)
        }
    }

    /// RFC 9110 §10.1.1: sends 100 (Continue) when the responder, having checked the head, wants the body. Some clients otherwise wait a
    /// second before they send it.
    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is HTTPBodyWanted else { return context.triggerUserOutboundEvent(event, promise: promise) }
        promise?.succeed()
        guard case .http = self.mode, self.expectsContinue, self.state.inProgress == 1, self.state.isReading, !self.hasBegunAnswer else {
            return
        }
        self.expectsContinue = false
        context.writeAndFlush(self.wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .continue))), promise: nil)
    }

    func flush(context: ChannelHandlerContext) {
        if case .handedOff = self.mode { return }
        context.flush()
    }

    func read(context: ChannelHandlerContext) {
        switch self.mode {
        case .claimed(_, _, isComplete: true), .deciding, .switching, .handedOff, .closing: break
        case .onLoop: self.wantsRead = true
        case .http, .asked, .claimed: context.read()
        }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        // Hummingbird knows nothing of it: the server ends.
        if self.isNeighbors { return context.close(promise: promise) }
        switch (self.mode, mode) {
        case (.switching, .input), (.handedOff, .input):
            // Hummingbird closes the input when the server is cancelled.
            context.close(mode: .all, promise: promise)
        case (.switching, _), (.handedOff, _):
            // Hummingbird is done, but no longer owns the connection.
            if let promise { context.channel.closeFuture.cascade(to: promise) }
        case (.closing, .output):
            promise?.succeed()
        case (.http, .output):
            self.mode = .closing(untilMs: LoopSweeper.nowMs + Self.drainMs)
            context.close(mode: mode, promise: promise)
        default:
            context.close(mode: mode, promise: promise)
        }
    }

    /// Writes a whole answer and ends the connection.
    private func answer(_ error: APIError, _ context: ChannelHandlerContext, toHead isHead: Bool = false) {
        let answer = HTTPPlainAnswer(error, toHead: isHead)
        context.write(self.wrapOutboundOut(.head(answer.head)), promise: nil)
        if let body = answer.body { context.write(self.wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: body)))), promise: nil) }
        context.write(self.wrapOutboundOut(.end(nil)), promise: nil)
        self.finish(context)
    }

    /// Ends the connection after the last write.
    private func finish(_ context: ChannelHandlerContext) {
        // Mark the place idle: the connection lingers only until another needs it.
        self.place.rest()
        self.mode = .closing(untilMs: LoopSweeper.nowMs + Self.drainMs)
        context.flush()
        // Completes once the buffers are drained.
        let done = context.eventLoop.makePromise(of: Void.self)
        context.close(mode: .output, promise: done)
        done.futureResult.assumeIsolated().whenComplete { _ in
            guard case .closing = self.mode else { return }
            self.mode = .closing(untilMs: LoopSweeper.nowMs + Self.lingerMs)
        }
        context.read()
    }

    // MARK: - Taking over

    private func decideIfDue(_ context: ChannelHandlerContext) {
        guard case .claimed(let handoff, let head, isComplete: true) = self.mode, self.state.inProgress == 1 else { return }
        self.mode = .deciding
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let account = (self.holding ?? self.place.holding(for: self.forwarded)).account
        let request = HTTPHandoffRequest(head: head, channel: context.channel, isSecure: self.isSecure, account: account)
        Task {
            let decision = await handoff.decide(request)
            bound.eventLoop.execute { bound.value.decided(decision, toHead: head.method == .HEAD) }
        }
    }

    private func decided(_ decision: HTTPHandoffDecision, toHead isHead: Bool) {
        // The peer or the deadline may have closed the connection meanwhile.
        guard case .deciding = self.mode, let context = self.context, context.channel.isActive else { return }
        switch decision {
        case .refuse(let error):
            self.answer(error, context, toHead: isHead)
        case .accept where self.state.isQuiescing:
            self.answer(.unavailable("The server is shutting down."), context, toHead: isHead)
        case .accept(let head, let handlers):
            self.mode = .switching
            // Ends Hummingbird's loop over requests; its task stays until the connection closes.
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            let pipeline = context.pipeline.syncOperations
            let left = self.codec.map { pipeline.removeHandler($0) }
            EventLoopFuture.andAllComplete(left, on: context.eventLoop).assumeIsolated().whenComplete { _ in self.switched(head, handlers) }
        }
    }

    private func switched(_ head: HTTPResponseHead, _ handlers: @Sendable () -> [any ChannelHandler]) {
        guard case .switching = self.mode, let context = self.context, context.channel.isActive else { return }
        self.mode = .handedOff
        self.holding = nil
        context.writeAndFlush(NIOAny(head.serialized), promise: nil)
        do {
            try context.pipeline.syncOperations.addHandlers(handlers(), position: .before(self))
        } catch {
            context.close(promise: nil)
            return
        }
        context.read()
    }
}
