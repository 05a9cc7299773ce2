import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import Synchronization

/// One port for the router and for what takes connections out of HTTP: Hummingbird's part of a connection behind ``HTTPConnectionHandler``.
struct HTTPServerChannel: ServerChildChannel, HTTPChannelHandler {
    typealias Value = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    let responder: HTTPChannelHandler.Responder
    let shared: Shared

    /// What the server's connections have in common. Any thread.
    final class Shared: Sendable {
        let limits: HTTPLimits
        let api: APIService
        let takeovers: [any HTTPTakeover]
        let sweepers: LoopSweepers
        private let proxies: ProxyEntrance
        private let counters: Counters
        private let connections = Atomic<Int>(0)

        init(limits: HTTPLimits, api: APIService, takeovers: [any HTTPTakeover], sweepers: LoopSweepers, core: ServerCore) {
            self.limits = limits
            self.api = api
            self.takeovers = takeovers
            self.sweepers = sweepers
            self.proxies = core.proxies
            self.counters = core.counters
        }

        /// False: too many. Pair with `leave` either way.
        private func enter() -> Bool {
            if self.connections.add(1, ordering: .relaxed).newValue <= self.limits.connections { return true }
            self.counters.update { $0.httpConnectionsRefused += 1 }
            return false
        }

        private func leave() { self.connections.subtract(1, ordering: .relaxed) }

        /// Counts the connection until it closes, and sets its socket up. Before any handler is added. False: there are too many. On its loop.
        func admit(_ channel: any Channel) throws -> Bool {
            try self.proxies.guardConnection(channel)
            let isAdmitted = self.enter()
            channel.closeFuture.whenComplete { _ in self.leave() }
            try channel.syncOptions?.setOption(.tcpOption(.tcp_nodelay), value: 1)
            try channel.syncOptions?.setOption(.socketOption(.so_keepalive), value: 1)
            return isAdmitted
        }

        /// HTTP/1.1 on a connection whose bytes are the client's. On its loop.
        func speakHTTP1(on channel: any Channel, since openedMs: Int64, isRefused: Bool, isSecure: Bool) throws -> Value {
            var decoding = NIOHTTPDecoderLimitConfiguration()
            decoding.maxHeaderFieldSize = self.limits.headBytes
            decoding.maxHeaderListSize = self.limits.headBytes
            decoding.maxHeaderFieldCount = self.limits.headerFields
            let encoder = HTTPResponseEncoder()
            let decoder = ByteToMessageHandler(
                HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: decoding),
                // After a request for an upgrade the decoder keeps what it gets, unread.
                maximumBufferSize: self.limits.headBytes + (64 << 10))
            let types = HTTP1ToHTTPServerCodec(secure: isSecure)
            let connection = HTTPConnectionHandler(
                sweeper: self.sweepers.of(channel.eventLoop), limits: self.limits, takeovers: self.takeovers,
                codec: [types, encoder, decoder], openedMs: openedMs, isRefused: isRefused, isSecure: isSecure)
            try channel.pipeline.syncOperations.addHandlers([encoder, decoder, connection, types])
            return try NIOAsyncChannel(wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
        }
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let shared = self.shared
        return channel.eventLoop.makeCompletedFuture {
            do {
                let isAdmitted = try shared.admit(channel)
                return try shared.speakHTTP1(on: channel, since: LoopSweeper.nowMs, isRefused: !isAdmitted, isSecure: false)
            } catch {
                // Nobody else does, and its place would be lost.
                channel.close(promise: nil)
                throw error
            }
        }
    }

    func handle(value: Value, logger: Logger) async {
        await self.handleHTTP(asyncChannel: value, logger: logger)
    }
}
