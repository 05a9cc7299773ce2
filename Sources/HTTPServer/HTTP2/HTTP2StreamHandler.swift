import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOHTTPTypesHTTP2
import Support

/// Handles one request on its HTTP/2 stream, below the router. The counterpart of ``HTTPConnectionHandler`` for HTTP/1.1.
///
/// ```
/// http --a loop part's request--> asked --its end--> onLoop --> answered
/// http --a handoff's request--> claimed --its end--> deciding --accept--> handedOff
///                                                     deciding --refuse--> answered
/// ```
/// Loop-bound.
final class HTTP2StreamHandler: ChannelDuplexHandler, Sweepable {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private enum Mode {
        case http
        /// Waits for the end of a request that may be answered on the loop.
        case asked(HTTPRequest, HTTPRequestHead)
        /// The loop's answer is due.
        case onLoop
        /// Waits for the request's end.
        case claimed(any HTTPHandoff, HTTPRequestHead)
        case deciding
        /// The handoff's handlers write the body.
        case handedOff
        /// This handler wrote the whole answer; further input is dropped.
        case answered
    }

    private let sweeper: LoopSweeper
    private let limits: HTTPLimits
    private let loopPart: (any HTTPLoopPart)?
    private let handoffs: [any HTTPHandoff]
    private let place: HTTPPlace
    private var mode = Mode.http
    private var context: ChannelHandlerContext?
    private var hasHead = false
    private var hasEnd = false
    private var isQuiescing = false
    private var hasBegunAnswer = false
    private var hasAnswered = false
    private var deadlineMs: Int64
    /// Pace of the request's body until its end.
    private var body: BodyPace?
    private var expectsContinue = false
    private var forwarded: HTTPForwarded?
    /// What the request makes the server hold until its stream has closed and its answer is sent.
    private var holding: HTTPHolding

    /// `place`: the connection's place.
    init(
        sweeper: LoopSweeper, limits: HTTPLimits, loopPart: (any HTTPLoopPart)?, handoffs: [any HTTPHandoff], place: HTTPPlace
    ) {
        self.sweeper = sweeper
        self.loopPart = loopPart
        self.place = place
        self.limits = limits
        self.handoffs = handoffs
        self.holding = place.holding(for: nil)
        self.holding.add(HTTPHolding.streamBytes)
        self.deadlineMs = LoopSweeper.nowMs + limits.requestMs
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        self.sweeper.add(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.sweeper.remove(self)
        self.context = nil
        self.forwarded = nil
        // Parts of the answer that are not sent yet are with the former one.
        self.holding = self.place.holding(for: nil)
    }

    func sweep(nowMs: Int64) {
        if let context = self.context, !self.hasBegunAnswer, self.body?.isOverdue(nowMs: nowMs) == true {
            self.place.hit(.httpBody)
            return self.answer(BodyPace.error, context)
        }
        guard nowMs >= self.deadlineMs, let context = self.context else { return }
        if case .handedOff = self.mode { return }
        guard self.hasAnswered, !self.hasEnd else { return context.close(promise: nil) }
        // RFC 9113 §8.1: the answer is complete, so reset the stream without an error to stop the rest of the request.
        self.deadlineMs = .max
        context.triggerUserOutboundEvent(NIOHTTP2FramePayloadToHTTPEvent.reset(code: .noError), promise: nil)
    }

    // MARK: In

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = self.unwrapInboundIn(data)
        switch part {
        case .head: if !self.hasHead { self.body = BodyPace(limits: self.limits, nowMs: LoopSweeper.nowMs) }
        case .body(let bytes):
            self.body?.arrived(bytes.readableBytes)
            if case .http = self.mode { self.holding.add(bytes.readableBytes) }
        case .end:
            self.hasEnd = true
            self.body = nil
        }
        switch self.mode {
        case .http:
            guard case .head(let head) = part else {
                // Drop a body that has no valid head.
                if self.hasHead { context.fireChannelRead(data) }
                return
            }
            self.hasHead = true
            self.headArrived(head, context)
        case .asked(let head, let old):
            if self.hasEnd { self.answerOnLoop(head, old, context) }
        case .claimed(let handoff, let head):
            // Handoffs ignore the body.
            if self.hasEnd { self.decide(handoff, head, context) }
        case .onLoop, .deciding, .handedOff, .answered:
            break
        }
    }

    private func headArrived(_ head: HTTPRequest, _ context: ChannelHandlerContext) {
        var head = head
        if self.isTooLarge(head) {
            return self.answer(APIError(.requestHeaderFieldsTooLarge, .tooLarge, "The request's head is too large."), context)
        }
        guard head.method != .connect else {
            // RFC 9113 §8.5, and RFC 8441, which our settings do not offer.
            return self.answer(APIError(.notImplemented, .invalid, "CONNECT is not served; open WebSockets over HTTP/1.1."), context)
        }
        guard HTTPConnectionHandler.isHost(head.authority ?? "") else {
            return self.answer(HTTPConnectionHandler.badHost("The :authority is not a host, with or without a port."), context)
        }
        guard Self.isTarget(head) else { return self.answer(Self.badPath, context) }
        if let refusal = self.place.refusal, !HTTPConnectionHandler.isHealthCheck(head.path ?? "") {
            return self.answer(refusal.error, context)
        }
        do throws(APIError) {
            self.forwarded = try self.place.forwarded(Self.forwardedFor.map { head.headerFields[values: $0] } ?? [], on: context.channel)
        } catch {
            return self.answer(error, context)
        }
        if let forwarded = self.forwarded {
            self.holding = self.place.holding(for: forwarded)
            self.holding.add(HTTPHolding.streamBytes)
        }
        guard self.holding.account.hasSpace || HTTPConnectionHandler.isHealthCheck(head.path ?? "") else {
            // RFC 9113 §8.7: not processed, and safe to repeat. An answer would have to be held, too.
            return self.reset(.refusedStream, context)
        }
        self.holding.add(Self.size(of: head) + head.headerFields.count * HTTPHolding.fieldBytes)
        // Ignore the scheme that the client sent.
        head.scheme = "https"
        let old: HTTPRequestHead
        do {
            var request = try HTTPRequestHead(head)
            request.version = .http2
            old = request
        } catch {
            return self.answer(Self.noRequest, context)
        }
        if let part = self.loopPart, part.mayAnswer(old.uri), old.isPlainGet {
            self.mode = .asked(head, old)
            return
        }
        self.pass(head, old, context)
    }

    /// Gives the request to a handoff, or else to the router.
    private func pass(_ head: HTTPRequest, _ old: HTTPRequestHead, _ context: ChannelHandlerContext) {
        if let handoff = self.handoffs.first(where: { $0.door(old) != nil }) {
            self.mode = .claimed(handoff, old)
            return
        }
        self.expectsContinue = old.list("expect", contains: "100-continue")
        context.fireChannelRead(self.wrapInboundOut(.head(head)))
    }

    /// RFC 9113 §8.3.1: a path, or "*" for OPTIONS. An absolute URL would name a host beside `:authority`.
    private static func isTarget(_ head: HTTPRequest) -> Bool {
        let path = head.path ?? ""
        return path.utf8.first == UInt8(ascii: "/") || path == "*" && head.method == .options
    }

    private static let badPath: APIError = {
        var error = APIError(.badRequest, .invalid, "The :path is not a path.")
        error.field = ":path"
        error.rule = "expected a path that begins with /, or * for OPTIONS"
        return error
    }()

    /// Whether the head exceeds the limits of HTTP/1.1 heads.
    private func isTooLarge(_ head: HTTPRequest) -> Bool {
        Self.size(of: head) > self.limits.headBytes || head.headerFields.count > self.limits.headerFields
    }

    /// Bytes of the head's text, as HTTP/1.1 would write it.
    private static func size(of head: HTTPRequest) -> Int {
        let lines = head.headerFields.reduce(0) { $0 + $1.name.rawName.utf8.count + $1.value.utf8.count + 4 }
        return lines + (head.path?.utf8.count ?? 0) + (head.authority?.utf8.count ?? 0)
    }

    func channelInactive(context: ChannelHandlerContext) {
        // Without an error, whoever reads the body would take the part that came for the whole. After an own answer, its end was dropped.
        let isAnswered = if case .answered = self.mode { true } else { false }
        if isAnswered || self.body != nil { context.fireErrorCaught(ChannelError.eof) }
        context.fireChannelInactive()
    }

    private static let forwardedFor = HTTPField.Name("X-Forwarded-For")
    private static let noRequest = APIError(.badRequest, .invalid, "This is not an HTTP request.")

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent { self.isQuiescing = true }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch (self.mode, error) {
        case (.http, is any NIOHTTP2Error),
            (.http, _) where self.hasHead:
            context.fireErrorCaught(error)
        case (.handedOff, is NIOHTTP2Errors.StreamClosed):
            // The client reset the stream; the channel closes next.
            break
        case (.handedOff, _):
            context.fireErrorCaught(error)
        case (.http, _) where !self.hasAnswered:
            // The header fields are invalid.
            self.answer(Self.noRequest, context)
        case (.http, _), (.asked, _), (.onLoop, _), (.claimed, _), (.deciding, _), (.answered, _):
            context.close(promise: nil)
        }
    }

    // MARK: Out

    /// RFC 9110 §10.1.1: sends 100 (Continue) when the responder, having checked the head, wants the body.
    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is HTTPBodyWanted else { return context.triggerUserOutboundEvent(event, promise: promise) }
        promise?.succeed()
        guard case .http = self.mode, self.expectsContinue, !self.hasBegunAnswer, !self.hasEnd else { return }
        self.expectsContinue = false
        context.writeAndFlush(self.wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch self.mode {
        case .http, .handedOff:
            switch self.unwrapOutboundIn(data) {
            case .head(let head):
                self.hasBegunAnswer = true
                context.write(self.wrapOutboundOut(.head(head.forHTTP2)), promise: promise)
            case .body(let bytes):
                self.deadlineMs = LoopSweeper.nowMs + self.limits.requestMs
                self.write(data, of: bytes.readableBytes, context, promise)
            case .end:
                context.write(data, promise: promise)
                self.answerEnded()
            }
        case .asked, .onLoop, .claimed, .deciding, .answered:
            promise?.fail(ChannelError.ioOnClosedChannel)
        }
    }

    /// Writes a part of the answer, which counts as held until it is sent.
    private func write(_ data: NIOAny, of bytes: Int, _ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
        let holding = self.holding
        holding.add(bytes)
        // What viewers get is bounded by how far they may be behind.
        if case .http = self.mode, !holding.account.mayAnswer(bytes) {
            holding.add(-bytes)
            promise?.fail(ChannelError.ioOnClosedChannel)
            return self.reset(.enhanceYourCalm, context)
        }
        let sent = promise ?? context.eventLoop.makePromise()
        sent.futureResult.assumeIsolated().whenComplete { _ in holding.add(-bytes) }
        context.write(data, promise: sent)
    }

    /// Ends the stream without an answer, because of what its client holds.
    private func reset(_ code: NIOHTTP2.HTTP2ErrorCode, _ context: ChannelHandlerContext) {
        self.mode = .answered
        self.hasBegunAnswer = true
        self.place.hit(.httpMemory)
        context.triggerUserOutboundEvent(NIOHTTP2FramePayloadToHTTPEvent.reset(code: code), promise: nil)
    }

    /// Starts the deadline for draining the buffers, or for the rest of the request.
    private func answerEnded() {
        self.hasAnswered = true
        self.deadlineMs = LoopSweeper.nowMs + (self.hasEnd ? self.limits.idleMs : HTTP2Limits.bodyMs)
    }

    private func answer(_ error: APIError, _ context: ChannelHandlerContext, toHead isHead: Bool = false) {
        let answer = HTTPPlainAnswer(error, toHead: isHead)
        self.mode = .answered
        self.hasBegunAnswer = true
        guard let head = try? HTTPResponse(answer.head) else { return context.close(promise: nil) }
        context.write(self.wrapOutboundOut(.head(head.forHTTP2)), promise: nil)
        if let body = answer.body { context.write(self.wrapOutboundOut(.body(ByteBuffer(string: body))), promise: nil) }
        context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
        self.answerEnded()
    }

    // MARK: On the loop

    private func answerOnLoop(_ head: HTTPRequest, _ old: HTTPRequestHead, _ context: ChannelHandlerContext) {
        switch self.loopPart?.answer(HTTPLoopRequest(head: old, channel: context.channel)) {
        case nil:
            self.mode = .http
            self.pass(head, old, context)
            self.channelRead(context: context, data: self.wrapInboundOut(.end(nil)))
        case .now(let answer): self.send(answer, context)
        case .later(let answer):
            self.mode = .onLoop
            answer.assumeIsolated().whenSuccess { answer in
                // The client or the deadline may have closed the stream meanwhile.
                guard case .onLoop = self.mode, let context = self.context, context.channel.isActive else { return }
                self.send(answer, context)
            }
        }
    }

    /// Writes the whole answer. Its pieces leave as the client's windows allow; it may last while they move.
    private func send(_ answer: HTTPLoopAnswer, _ context: ChannelHandlerContext) {
        guard self.holding.account.mayAnswer(answer.byteCount) else { return self.reset(.enhanceYourCalm, context) }
        self.mode = .answered
        self.hasBegunAnswer = true
        context.write(self.wrapOutboundOut(.head(answer.response.forHTTP2)), promise: nil)
        let holding = self.holding
        for piece in answer.body {
            let bytes = piece.readableBytes
            holding.add(bytes)
            let sent = context.eventLoop.makePromise(of: Void.self)
            sent.futureResult.assumeIsolated().whenComplete { _ in
                holding.add(-bytes)
                self.deadlineMs = max(self.deadlineMs, LoopSweeper.nowMs + self.limits.requestMs)
            }
            context.write(self.wrapOutboundOut(.body(piece)), promise: sent)
        }
        context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
        self.answerEnded()
    }

    // MARK: Taking over

    private func decide(_ handoff: any HTTPHandoff, _ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        self.mode = .deciding
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let request = HTTPHandoffRequest(head: head, channel: context.channel, isSecure: true, account: self.holding.account)
        Task {
            let decision = await handoff.decide(request)
            bound.eventLoop.execute { bound.value.decided(decision, toHead: head.method == .HEAD) }
        }
    }

    private func decided(_ decision: HTTPHandoffDecision, toHead isHead: Bool) {
        // The client or the deadline may have closed the stream meanwhile.
        guard case .deciding = self.mode, let context = self.context, context.channel.isActive else { return }
        switch decision {
        case .refuse(let error):
            self.answer(error, context, toHead: isHead)
        case .accept where self.isQuiescing:
            self.answer(.unavailable("The server is shutting down."), context, toHead: isHead)
        case .accept(let head, let handlers):
            self.accept(head, handlers(), context)
        }
    }

    private func accept(_ head: HTTPResponseHead, _ handlers: [any ChannelHandler], _ context: ChannelHandlerContext) {
        do {
            let isChunked = head.list("transfer-encoding", contains: "chunked")
            let answer = try HTTPResponse(head)
            self.mode = .handedOff
            context.writeAndFlush(self.wrapOutboundOut(.head(answer.forHTTP2)), promise: nil)
            // Add them one after the other: handlers write as soon as they are added.
            let writer = HTTP2BodyWriter(isChunked: isChunked)
            try context.pipeline.syncOperations.addHandler(writer, position: .after(self))
            try context.pipeline.syncOperations.addHandlers(handlers, position: .after(writer))
        } catch {
            context.close(promise: nil)
        }
    }
}

extension HTTPResponse {
    /// The head without connection-specific fields, which HTTP/2 forbids (RFC 9113 §8.2.2).
    ///
    /// The client chooses the size of NIO's table of sent fields (RFC 7541 §4.2), and NIO searches the whole table for each field. Only fields
    /// with few distinct values join it, so it stays small.
    fileprivate var forHTTP2: HTTPResponse {
        var head = self
        for name in Self.connectionFields where head.headerFields.contains(name) { head.headerFields[name] = nil }
        for index in head.headerFields.indices where !Self.repeatedFields.contains(head.headerFields[index].name) {
            head.headerFields[index].indexingStrategy = .avoid
        }
        return head
    }

    private static let repeatedFields: Set<HTTPField.Name> = [
        .acceptRanges, .cacheControl, .contentEncoding, .contentType, .server, .vary,
    ]
    private static let connectionFields: [HTTPField.Name] =
        [.connection, .transferEncoding, .upgrade] + ["Keep-Alive", "Proxy-Connection"].compactMap { HTTPField.Name($0) }
}
