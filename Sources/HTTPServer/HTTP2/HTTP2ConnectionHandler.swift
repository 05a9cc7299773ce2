import NIOCore
import NIOHTTP2
import NIOSSL
import Support

/// Enforces the time limits, errors and shutdown of one HTTP/2 connection. ``HTTP2StreamHandler`` handles its requests.
///
/// Sits behind NIO's handler, which enforces the protocol and reports violations to the client: RST_STREAM for an error of one stream, GOAWAY for an
/// error of the connection. NIO reports both errors here alike; only the frame that it wrote distinguishes them. Loop-bound.
final class HTTP2ConnectionHandler: ChannelInboundHandler, Sweepable, NIOHTTP2FrameDelegate {
    typealias InboundIn = HTTP2Frame
    typealias InboundOut = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    private let sweeper: LoopSweeper
    private let place: HTTPPlace
    private var state: HTTP2ConnectionState
    private var context: ChannelHandlerContext?
    /// NIO has sent GOAWAY with an error.
    private var isBroken = false

    private static let goodbye = HTTP2PingData(withInteger: 0x6561_7273_686F_7421)

    /// `openedMs`: when the connection began, before TLS.
    init(sweeper: LoopSweeper, limits: HTTPLimits, openedMs: Int64, place: HTTPPlace) {
        self.sweeper = sweeper
        self.place = place
        self.state = HTTP2ConnectionState(limits: limits, openedMs: openedMs)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        self.sweeper.add(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.sweeper.remove(self)
        self.context = nil
    }

    /// Counts a new stream until its channel closes.
    func opened(_ stream: any Channel) throws {
        let id = try stream.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID)
        if self.state.streams == 0 { self.place.work() }
        self.state.streamOpened(id.map { Int($0) } ?? 0)
        stream.closeFuture.assumeIsolated().whenComplete { _ in
            let action = self.state.streamClosed(nowMs: LoopSweeper.nowMs)
            if self.state.streams == 0 { self.place.rest() }
            self.run(action)
        }
    }

    func sweep(nowMs: Int64) {
        let action = self.state.sweep(nowMs: nowMs)
        // It ends without ever having had a stream.
        if action == .goAwayAndClose(last: 0) { self.place.hit(.httpHead) }
        self.run(action)
    }

    func wroteFrame(_ frame: HTTP2Frame) {
        if case .goAway(_, let code, _) = frame.payload, code != .noError { self.isBroken = true }
    }

    // MARK: In

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // NIO handles all other frames.
        guard case .ping(Self.goodbye, ack: true) = self.unwrapInboundIn(data).payload else { return }
        self.run(self.state.announcementConfirmed(nowMs: LoopSweeper.nowMs))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent: self.run(self.state.quiesce(nowMs: LoopSweeper.nowMs))
        // RFC 9113 §5.1: a client that wants answers keeps both directions open.
        case ChannelEvent.inputClosed as ChannelEvent: self.run(self.state.broken(nowMs: LoopSweeper.nowMs))
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // NIO refuses to send a GOAWAY that contradicts an earlier one. That is not a stream's error.
        let isOfStream = !self.isBroken && error is any NIOHTTP2Error && !(error is NIOHTTP2Errors.RaisedGoawayLastStreamID)
        guard !isOfStream else { return }
        self.run(self.state.broken(nowMs: LoopSweeper.nowMs))
    }

    // MARK: Out

    private func run(_ action: HTTP2ConnectionState.Action) {
        guard action != .nothing, let context = self.context else { return }
        switch action {
        case .nothing: break
        case .announce:
            self.goAway(.maxID, context)
            context.writeAndFlush(
                self.wrapOutboundOut(HTTP2Frame(streamID: .rootStream, payload: .ping(Self.goodbye, ack: false))), promise: nil)
        case .goAway(let last): self.goAway(HTTP2StreamID(last), context)
        case .goAwayAndClose(let last):
            self.goAway(HTTP2StreamID(last), context)
            context.close(promise: nil)
        case .close: context.close(promise: nil)
        case .cut:
            // Bypass TLS, which would wait for the client's close_notify.
            let tls = try? context.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)
            (tls ?? context).close(promise: nil)
        }
    }

    private func goAway(_ last: HTTP2StreamID, _ context: ChannelHandlerContext) {
        let payload = HTTP2Frame.FramePayload.goAway(lastStreamID: last, errorCode: .noError, opaqueData: nil)
        context.writeAndFlush(self.wrapOutboundOut(HTTP2Frame(streamID: .rootStream, payload: payload)), promise: nil)
    }
}
