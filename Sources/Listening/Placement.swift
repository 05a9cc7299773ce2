import LibC
package import NIOCore
package import NIOPosix
package import Sockets
package import Support
import Synchronization

/// Gives each accepted connection to one of the server's loops. Any thread.
///
/// NIO listens and accepts, on one of its own loops. Each socket is then copied to a channel of the least busy ``SocketLoop``: among the least late
/// loops one with the fewest connections, at random if there are several. Publishers and viewers that arrive alternately are not separated by kind,
/// and imbalance that closed connections leave does not stay.
package final class Placement: Sendable {
    private let loops: [SocketLoop]
    /// The lateness of each loop.
    private let pressures: [LoopPressure]
    /// The open connections of each loop.
    private let counts: Mutex<[Int]>
    private let local = Mutex<SocketAddress?>(nil)

    /// `pressures` are those of the group's loops, in their order.
    package init(_ group: SocketLoopGroup, _ pressures: [LoopPressure] = []) {
        self.loops = group.loops
        self.pressures = pressures.count == self.loops.count ? pressures : self.loops.map { _ in LoopPressure() }
        self.counts = Mutex(Array(repeating: 0, count: self.loops.count))
    }

    /// A listener's bootstrap: its connections pass the gate, and `prepare` adds their handlers, on their loops before they are active.
    package func bootstrap(_ gate: AcceptGate, prepare: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>) -> ServerBootstrap {
        // One loop for the listener and what it accepts, so that the sockets are at hand.
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        return ServerBootstrap(group: loop)
            .serverChannelOption(.maxMessagesPerRead, value: UInt(gate.perTurn))
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handlers: [any ChannelHandler & Sendable] = [Adoption(self), gate.handler(), Start(prepare)]
                    try channel.pipeline.syncOperations.addHandlers(handlers)
                }
            }
    }

    /// The next connection's loop.
    private func choose() -> Int {
        self.counts.withLock { counts in
            let levels = self.pressures.map(\.level)
            let calmest = levels.min() ?? .calm
            let able = counts.indices.filter { levels[$0] == calmest }
            let fewest = able.map { counts[$0] }.min() ?? 0
            let chosen = able.filter { counts[$0] == fewest }.randomElement() ?? 0
            counts[chosen] += 1
            return chosen
        }
    }

    /// The address by an object that most connections share.
    private func shared(_ local: SocketAddress?) -> SocketAddress? {
        self.local.withLock { last in
            if last != local { last = local }
            return last
        }
    }

    private func leave(_ loop: Int) { self.counts.withLock { $0[loop] -= 1 } }

    /// Puts a copy of an accepted connection's socket on one of the loops.
    private func adopt(_ accepted: any Channel) throws -> SocketChannel {
        let copy = try accepted.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { descriptor in
            let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
            guard copy >= 0 else { throw IOError(errnoCode: errno, reason: "dup") }
            return copy
        }
        guard let copy else { throw ChannelError.operationUnsupported }
        let loop = self.choose()
        let connection = SocketChannel(
            copy, on: self.loops[loop], local: self.shared(accepted.localAddress), remote: accepted.remoteAddress)
        connection.closeFuture.whenComplete { _ in self.leave(loop) }
        return connection
    }

    /// At the front of a listening channel's pipeline: connections go on as channels of their loops.
    private final class Adoption: ChannelInboundHandler, Sendable {
        typealias InboundIn = any Channel
        typealias InboundOut = any Channel

        private let placement: Placement

        init(_ placement: Placement) { self.placement = placement }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let accepted = self.unwrapInboundIn(data)
            // Closes NIO's descriptor alone: the connection lives by its copy.
            defer { accepted.close(promise: nil) }
            do {
                context.fireChannelRead(self.wrapInboundOut(try self.placement.adopt(accepted)))
            } catch {
                context.fireErrorCaught(error)
            }
        }
    }

    /// Behind the gate, where NIO would set the connection up.
    private final class Start: ChannelInboundHandler, Sendable {
        typealias InboundIn = any Channel

        private let prepare: @Sendable (any Channel) -> EventLoopFuture<Void>

        init(_ prepare: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>) { self.prepare = prepare }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard let connection = self.unwrapInboundIn(data) as? SocketChannel else { return context.fireChannelRead(data) }
            connection.start(self.prepare)
        }
    }
}
