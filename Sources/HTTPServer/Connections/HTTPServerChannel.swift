import Hummingbird
package import HummingbirdCore
package import Listening
package import Logging
package import NIOCore
import NIOHTTP1
package import NIOHTTPTypes
import NIOHTTPTypesHTTP1
package import ServerConfiguration
package import Support

/// Serves the router and the handoffs on one port. Hummingbird's handlers sit behind ``HTTPConnectionHandler``.
package struct HTTPServerChannel: ServerChildChannel, HTTPChannelHandler {
    package typealias Value = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    package let responder: HTTPChannelHandler.Responder
    package let shared: Shared

    /// State shared by all of the server's connections. Any thread.
    package final class Shared: Sendable {
        private let bounds: Live<HTTPLimits>
        package let handoffs: [any HTTPHandoff]
        let loopPart: (any HTTPLoopPart)?
        /// What is spoken on the ports besides HTTP.
        let neighbor: (any PortNeighbor)?
        package let sweepers: LoopSweepers
        private let places: HTTPPlaces
        /// What all clients make the server hold.
        package let holdings: HTTPHoldings

        package init(
            limits: HTTPLimits, loopPart: (any HTTPLoopPart)? = nil, neighbor: (any PortNeighbor)? = nil, handoffs: [any HTTPHandoff],
            sweepers: LoopSweepers,
            access: ServerConfig.Access,
            clients: ClientAddresses, proxies: ProxyEntrance, counters: ServerCounters, ledger: MemoryLedger
        ) {
            self.bounds = Live(limits)
            self.handoffs = handoffs
            self.loopPart = loopPart
            self.neighbor = neighbor
            self.sweepers = sweepers
            self.holdings = HTTPHoldings(ledger)
            self.places = HTTPPlaces(
                limits: limits, access: access, clients: clients, proxies: proxies, counters: counters, holdings: self.holdings)
        }

        package var limits: HTTPLimits { self.bounds.current }

        /// Applies changed limits and addresses. Connections that are open keep their deadlines and places.
        package func set(_ limits: HTTPLimits, _ access: ServerConfig.Access) {
            self.bounds.set(limits)
            self.places.set(limits, access)
        }

        /// Ends the connections of all ports. As ``HTTPPlaces/end(within:on:)``.
        func end(within limit: TimeAmount, on loop: any EventLoop) async { await self.places.end(within: limit, on: loop) }

        /// Gives the connection its place until it closes, and configures its socket. Call before adding any handler. On its loop.
        func admit(_ channel: any Channel) throws -> HTTPPlace {
            let place = try self.places.enter(channel)
            try channel.syncOptions?.setOption(.tcpOption(.tcp_nodelay), value: 1)
            try channel.syncOptions?.setOption(.socketOption(.so_keepalive), value: 1)
            return place
        }

        /// Lets the neighbor look at the connection's first byte. Before the handlers of TLS and HTTP.
        func meetNeighbor(_ channel: any Channel, _ place: HTTPPlace) throws {
            guard let neighbor = self.neighbor else { return }
            try channel.pipeline.syncOperations.addHandler(FirstByteHandler(neighbor, place))
        }

        /// Sets up HTTP/1.1 on a connection that delivers the client's plain bytes. On its loop.
        func speakHTTP1(on channel: any Channel, since openedMs: Int64, _ place: HTTPPlace, isSecure: Bool) throws -> Value {
            try self.addHTTP1(to: channel, since: openedMs, place, isSecure: isSecure)
            return try NIOAsyncChannel(wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
        }

        /// Adds the handlers of HTTP/1.1; the answering handler comes behind them. On the channel's loop.
        func addHTTP1(to channel: any Channel, since openedMs: Int64, _ place: HTTPPlace, isSecure: Bool) throws {
            let limits = self.limits
            var decoding = NIOHTTPDecoderLimitConfiguration()
            decoding.maxHeaderFieldSize = limits.headBytes
            decoding.maxHeaderListSize = limits.headBytes
            decoding.maxHeaderFieldCount = limits.headerFields
            let encoder = HTTPResponseEncoder()
            let decoder = ByteToMessageHandler(
                HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: decoding),
                // After a request for an upgrade, the decoder buffers what it gets without parsing it.
                maximumBufferSize: limits.headBytes + (64 << 10))
            let types = HTTP1ToHTTPServerCodec(secure: isSecure)
            let connection = HTTPConnectionHandler(
                sweeper: self.sweepers.of(channel.eventLoop), limits: limits, loopPart: self.loopPart, handoffs: self.handoffs,
                codec: [types, encoder, decoder], openedMs: openedMs, place: place, isSecure: isSecure)
            try channel.pipeline.syncOperations.addHandlers([encoder, decoder, connection, types])
        }
    }

    package func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let shared = self.shared
        return channel.eventLoop.makeCompletedFuture {
            do {
                let place = try shared.admit(channel)
                try shared.meetNeighbor(channel, place)
                return try shared.speakHTTP1(on: channel, since: LoopSweeper.nowMs, place, isSecure: false)
            } catch {
                // Nothing else closes the channel, and its place would leak.
                channel.close(promise: nil)
                throw error
            }
        }
    }

    package func handle(value: Value, logger: Logger) async {
        await self.handleHTTP(asyncChannel: value, logger: logger)
    }
}
