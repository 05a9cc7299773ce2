import Access
import HTTPServer
import NIOCore
import RTMP
import Relay
import Streaming
import Support

/// The WebSocket of a player whose publisher has not come yet. It is open and silent until there is something to play, then replaced by its
/// ``LiveViewer``.
///
/// The handshake is answered before the wait, because a browser opens no second WebSocket to a host while one is connecting (RFC 6455 §4.1): a page
/// with two cameras, one of them off, would show neither. If nobody comes, the close frame has code 1013 (try again later) and the reason
/// `not_found`.
final class AwaitingSocket: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let play: HTTPPlay
    private let services: PlaybackServices
    private let isSecure: Bool
    /// Waits for the publisher and for the stream's media type.
    private let ready: @Sendable () async throws(APIError) -> LiveViewer.Play
    private var waiting: Task<Void, Never>?
    private var reader = LiveViewer.inputReader
    private var frameRate = WebSocketFrameRate()
    private var isOver = false

    init(
        _ play: HTTPPlay, services: PlaybackServices, isSecure: Bool,
        ready: @escaping @Sendable () async throws(APIError) -> LiveViewer.Play
    ) {
        self.play = play
        self.services = services
        self.isSecure = isSecure
        self.ready = ready
    }

    func handlerAdded(context: ChannelHandlerContext) {
        guard context.channel.isActive else { return }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let loop = context.eventLoop
        let ready = self.ready
        self.waiting = Task {
            let outcome: Result<LiveViewer.Play, APIError>
            do throws(APIError) { outcome = .success(try await ready()) } catch { outcome = .failure(error) }
            loop.execute {
                let (socket, context) = bound.value
                socket.waited(outcome, context)
            }
        }
    }

    private func waited(_ outcome: Result<LiveViewer.Play, APIError>, _ context: ChannelHandlerContext) {
        guard !self.isOver else { return }
        switch outcome {
        case .failure(let error): self.close(1013, error.rule ?? error.kind.rawValue, context)
        case .success(let play):
            self.isOver = true
            let viewer = LiveViewer(play, services: self.services, isSecure: self.isSecure, isMultiplexed: false, reader: self.reader)
            let pipeline = context.pipeline.syncOperations
            do {
                try pipeline.addHandler(viewer, position: .after(self))
                pipeline.removeHandler(self, promise: nil)
            } catch { context.close(promise: nil) }
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !self.isOver else { return context.fireChannelRead(data) }
        var bytes = self.unwrapInboundIn(data)
        let framesBefore = self.reader.frames
        self.reader.append(&bytes)
        do throws(WebSocketError) {
            while !self.isOver, let input = try self.reader.next() {
                switch input {
                case .ping(let payload): context.writeAndFlush(self.wrapOutboundOut(WebSocketWriter.pong(payload)), promise: nil)
                case .close: self.close(1000, CloseReason.clientClosed.rawValue, context)
                case .pong, .text, .binary: break
                }
            }
        } catch {
            return self.close(error.code, error.reason, context)
        }
        if !self.isOver, !self.frameRate.admits(self.reader.frames - framesBefore, nowMs: LoopSweeper.nowMs) {
            self.close(1008, CloseReason.protocolError.rawValue, context)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent: self.close(1001, CloseReason.serverShutdown.rawValue, context)
        case ChannelEvent.inputClosed as ChannelEvent: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelInactive(context: ChannelHandlerContext) {
        self.end()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        // From now on the connection's place in the limits belongs to its viewer.
        self.waiting = nil
    }

    private func close(_ code: UInt16, _ reason: String, _ context: ChannelHandlerContext) {
        guard !self.isOver else { return }
        self.end()
        let closed = context.channel.eventLoop.makePromise(of: Void.self)
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        closed.futureResult.whenComplete { _ in bound.value.close(promise: nil) }
        context.writeAndFlush(self.wrapOutboundOut(WebSocketWriter.close(code, reason)), promise: closed)
    }

    private func end() {
        guard !self.isOver else { return }
        self.isOver = true
        self.waiting?.cancel()
        self.waiting = nil
        self.play.grant.end(.clientClosed)
    }
}
