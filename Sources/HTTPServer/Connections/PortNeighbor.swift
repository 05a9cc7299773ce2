package import Listening
package import NIOCore
package import Support

/// What is spoken on the server's HTTP ports besides HTTP: known by a first byte with which neither HTTP nor TLS begins.
package protocol PortNeighbor: Sendable {
    /// A handler for a connection that begins with this byte; nil for a byte that is none of this neighbor's. It passes on no input, and asks for each read
    /// itself. `keep`: gives the connection its place for good; until then it may be closed as an idle one. On the connection's loop.
    func handler(_ channel: any Channel, firstByte: UInt8, keep: @escaping () -> Void) -> (any ChannelInboundHandler)?
}

/// A neighbor has the connection: the handlers behind have nothing to do any more.
struct ConnectionTaken {}

/// Looks at a connection's first byte and goes, in favor of a neighbor's handler if it is one of its bytes. Loop-bound.
final class FirstByteHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let neighbor: any PortNeighbor
    private let place: HTTPPlace
    /// The server is shutting down: nothing new begins.
    private var isQuiescing = false

    init(_ neighbor: any PortNeighbor, _ place: HTTPPlace) {
        self.neighbor = neighbor
        self.place = place
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = self.unwrapInboundIn(data)
        // A connection without a place gets its refusal in HTTP.
        if self.place.refusal == nil, !self.isQuiescing, let first = bytes.getInteger(at: bytes.readerIndex, as: UInt8.self),
            let handler = self.neighbor.handler(context.channel, firstByte: first, keep: { [place] in place.work() })
        {
            do {
                try context.pipeline.syncOperations.addHandler(handler, position: .after(self))
            } catch {
                return context.close(promise: nil)
            }
            context.fireUserInboundEventTriggered(ConnectionTaken())
        }
        context.fireChannelRead(data)
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent { self.isQuiescing = true }
        context.fireUserInboundEventTriggered(event)
    }
}

extension HTTPServerChannel.Shared {
    /// Prepares a connection of a port on which the neighbor alone is spoken. On its loop.
    fileprivate func prepareNeighbor(_ channel: any Channel) throws {
        guard let neighbor = self.neighbor else { throw ChannelError.operationUnsupported }
        do {
            let place = try self.admit(channel)
            guard place.refusal == nil else { return channel.close(promise: nil) }
            // A proxy's connection waits for its header: then the first byte is what follows.
            let end = NeighborEnd(channel, within: self.limits.headMs)
            try channel.pipeline.syncOperations.addHandlers([FirstByteHandler(neighbor, place), end])
        } catch {
            channel.close(promise: nil)
            throw error
        }
    }

    /// Listens on a port of the neighbor's own. Throws ``ListenError``.
    package func listen(
        _ scheme: String, on address: HostPort, _ placement: Placement, _ gate: AcceptGate, _ sockets: ListeningSockets
    ) async throws -> any Channel {
        let bootstrap = placement.bootstrap(gate) { channel in
            channel.eventLoop.makeCompletedFuture { try self.prepareNeighbor(channel) }
        }
        return try await sockets.listen(scheme, on: address, bootstrap)
    }

    /// Closes connections that begin otherwise, or not in time.
    private final class NeighborEnd: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private var isTaken = false

        init(_ channel: any Channel, within ms: Int64) {
            channel.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(ms)) { [weak self] in
                if self?.isTaken == false { channel.close(promise: nil) }
            }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.close(promise: nil) }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            switch event {
            case is ConnectionTaken: self.isTaken = true
            case is ChannelShouldQuiesceEvent: context.close(promise: nil)
            default: context.fireUserInboundEventTriggered(event)
            }
        }
    }
}
