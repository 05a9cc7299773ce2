import NIOCore

/// A connection that closes when what it has been told is out. Loop-bound.
protocol ClosingConnection: AnyObject {
    /// Nil once the channel is done with it.
    var context: ChannelHandlerContext? { get }
    /// All that is written by the connection goes through it.
    var writer: SocketWriter? { get }
}

extension ClosingConnection {
    /// Closes the connection when its last words are out, or after `limit`.
    func closeWhenSent(within limit: TimeAmount = .seconds(2)) {
        guard let context = self.context else { return }
        // On the next turn: the caller may be in the middle of the stream's viewers.
        context.eventLoop.assumeIsolated().execute {
            guard let context = self.context else { return }
            self.writer?.whenSent { self.context?.close(promise: nil) }
            // A client that reads nothing must not keep its connection by that.
            context.eventLoop.assumeIsolated().scheduleTask(in: limit) { self.context?.close(promise: nil) }
        }
    }
}
