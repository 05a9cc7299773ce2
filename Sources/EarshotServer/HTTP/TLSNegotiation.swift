import NIOCore
import NIOTLS

/// Waits for TLS, then sets the connection up for the protocol that its client chose (RFC 7301), and leaves. Loop-bound.
///
/// What it makes sees a connection that becomes active when TLS is done.
final class TLSNegotiation<Conversation: Sendable>: ChannelInboundHandler, RemovableChannelHandler, Sweepable {
    typealias InboundIn = ByteBuffer

    private let sweeper: LoopSweeper
    private let deadlineMs: Int64
    /// `nil`: the client has chosen none. Adds to the pipeline's end.
    private let begin: (any Channel, String?) throws -> Conversation
    private let begun: EventLoopPromise<Conversation>
    private var context: ChannelHandlerContext?

    /// `begun` is completed, whatever happens.
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
        // Of no effect when there is a conversation.
        self.begun.fail(ChannelError.eof)
    }

    func channelActive(context: ChannelHandlerContext) {}

    func sweep(nowMs: Int64) {
        if nowMs >= self.deadlineMs { self.context?.close(promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // TLS lets nothing through before it tells of its end.
        context.close(promise: nil)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSUserEvent.handshakeCompleted(let chosen): self.shaken(chosen, context)
        case is ChannelShouldQuiesceEvent: context.close(promise: nil)
        case ChannelEvent.inputClosed as ChannelEvent: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    private func shaken(_ chosen: String?, _ context: ChannelHandlerContext) {
        do {
            let conversation = try self.begin(context.channel, chosen)
            self.begun.succeed(conversation)
            context.fireChannelActive()
            context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        } catch {
            self.begun.fail(error)
            context.close(promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
