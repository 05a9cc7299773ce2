import HTTPTypes
import NIOCore
import NIOHTTP1
import Support

/// Answers on the loop, below the router.
extension HTTPConnectionHandler {
    /// The request is whole.
    func answerOnLoop(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        switch self.loopPart?.answer(HTTPLoopRequest(head: head, channel: context.channel)) {
        case nil:
            self.mode = .http
            self.pass(head, context)
            self.channelRead(context: context, data: self.wrapInboundOut(.end(nil)))
        case .now(let answer):
            self.mode = .onLoop
            self.send(answer, context)
        case .later(let answer):
            self.mode = .onLoop
            answer.assumeIsolated().whenSuccess { answer in
                // The peer or the deadline may have closed the connection meanwhile.
                guard case .onLoop = self.mode, let context = self.context, context.channel.isActive else { return }
                self.send(answer, context)
            }
        }
    }

    /// Writes head and body at once. The body counts as held until it is sent.
    private func send(_ answer: HTTPLoopAnswer, _ context: ChannelHandlerContext) {
        guard let encoder = self.encoder ?? self.findEncoder(context) else { return context.close(promise: nil) }
        self.encoder = encoder
        if self.state.isQuiescing { self.closesAfterAnswer = true }
        let bytes = answer.byteCount
        self.state.answerProgressed(nowMs: LoopSweeper.nowMs)
        self.unsentBytes = .max
        let sent = context.eventLoop.makePromise(of: Void.self)
        let holding = self.holding
        holding?.add(bytes)
        sent.futureResult.assumeIsolated().whenComplete { result in
            holding?.add(-bytes)
            if case .success = result { self.sentOnLoop() }
        }
        let head = answer.head(closes: self.closesAfterAnswer, context.channel.allocator)
        encoder.write(NIOAny(head), promise: answer.body.isEmpty ? sent : nil)
        for (index, piece) in answer.body.enumerated() {
            encoder.write(NIOAny(piece), promise: index == answer.body.count - 1 ? sent : nil)
        }
        encoder.flush()
        guard self.holding?.account.mayAnswer(bytes) ?? true else {
            self.hit(.httpMemory)
            return context.close(promise: nil)
        }
    }

    private func findEncoder(_ context: ChannelHandlerContext) -> ChannelHandlerContext? {
        self.codec.lazy.compactMap { $0 as? HTTPResponseEncoder }.first.flatMap {
            try? context.pipeline.syncOperations.context(handler: $0)
        }
    }

    /// The socket has the answer. Goes on with what the client has sent meanwhile.
    private func sentOnLoop() {
        guard case .onLoop = self.mode, let context = self.context else { return }
        self.mode = .http
        self.answerEnded(context)
        var early = self.early
        self.early = []
        while !early.isEmpty {
            // Another answer on the loop may be due by now.
            if case .onLoop = self.mode {
                self.early = early + self.early
                return
            }
            self.channelRead(context: context, data: self.wrapInboundOut(early.removeFirst()))
            // The router's side reads what has come once a read is complete.
            if early.isEmpty { context.fireChannelReadComplete() }
        }
        guard self.wantsRead else { return }
        self.wantsRead = false
        context.read()
    }

    /// A long answer may last while it moves.
    func noteProgress(nowMs: Int64) {
        let unsent = try? self.context?.channel.syncOptions?.getOption(.bufferedWritableBytes)
        guard let unsent, unsent > 0 else { return }
        if unsent < self.unsentBytes { self.state.answerProgressed(nowMs: nowMs) }
        self.unsentBytes = unsent
    }
}
