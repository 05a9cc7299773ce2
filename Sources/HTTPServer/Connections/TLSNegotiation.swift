import NIOCore
import NIOTLS
import Support

/// Waits for TLS, then sets up the protocol that the client chose (RFC 7301). Removes itself after that. Loop-bound.
///
/// Handlers that `begin` adds see the channel become active when the handshake is done.
final class TLSNegotiation<Conversation: Sendable>: ChannelInboundHandler, RemovableChannelHandler, Sweepable {
    typealias InboundIn = ByteBuffer

    private let sweeper: LoopSweeper
    private let deadlineMs: Int64
    /// Sets up the chosen protocol at the pipeline's end. The string is nil if the client chose none.
    private let begin: (any Channel, String?) throws -> Conversation
    private let begun: EventLoopPromise<Conversation>
    private var context: ChannelHandlerContext?
    /// The server is shutting down.
    private var isQuiescing = false

    /// `begun` is always completed.
    init(
        sweeper: LoopSweeper, deadlineMs: Int64, begun: EventLoopPromise<Conversation>,
        begin: @escaping (any Channel, String?) throws -> Conversation
    ) {
        self.sweeper = sweeper
        self.deadlineMs = deadlineMs
        self.begun = begun
        self.begin = begin
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        self.sweeper.add(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.sweeper.remove(self)
        self.context = nil
        // Has no effect once there is a conversation.
        self.begun.fail(ChannelError.eof)
    }

    func channelActive(context: ChannelHandlerContext) {}

    func sweep(nowMs: Int64) { if nowMs >= self.deadlineMs { self.context?.close(promise: nil) } }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // TLS delivers nothing before the handshake's end.
        context.close(promise: nil)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSUserEvent.handshakeCompleted(let chosen): self.shaken(chosen, context)
        // The handshake may be under way. The conversation behind it learns of the shutdown.
        case is ChannelShouldQuiesceEvent: self.isQuiescing = true
        case is ConnectionTaken:
            self.sweeper.remove(self)
            self.begun.fail(ChannelError.eof)
        case ChannelEvent.inputClosed as ChannelEvent: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    private func shaken(_ chosen: String?, _ context: ChannelHandlerContext) {
        do {
            let conversation = try self.begin(context.channel, chosen)
            self.begun.succeed(conversation)
            context.fireChannelActive()
            if self.isQuiescing { context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
            context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        } catch {
            self.begun.fail(error)
            context.close(promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
