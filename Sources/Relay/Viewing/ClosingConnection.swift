package import NIOCore

/// A connection that closes once its output has been sent. Loop-bound.
package protocol ClosingConnection: AnyObject {
    /// Nil once the handler has left the channel.
    var context: ChannelHandlerContext? { get }
    /// Writes all of the connection's output.
    var writer: SocketWriter? { get }
}

extension ClosingConnection {
    /// Closes the connection once its last output has been sent, or after `limit`.
    package func closeWhenSent(within limit: TimeAmount = .seconds(2)) {
        guard let context = self.context else { return }
        // On the next turn, since the caller may be iterating over the stream's viewers.
        context.eventLoop.assumeIsolated().execute {
            guard let context = self.context else { return }
            self.writer?.whenSent { self.context?.close(promise: nil) }
            // A client that reads nothing must not keep its connection open.
            context.eventLoop.assumeIsolated().scheduleTask(in: limit) { self.context?.close(promise: nil) }
        }
    }
}
