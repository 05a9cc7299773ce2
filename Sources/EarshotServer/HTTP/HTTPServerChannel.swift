import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOSSL
import Synchronization

/// One port for the router and for what takes connections out of HTTP: Hummingbird's part of a connection behind ``HTTPConnectionHandler``.
struct HTTPServerChannel: ServerChildChannel, HTTPChannelHandler {
    typealias Value = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    let responder: HTTPChannelHandler.Responder
    let shared: Shared
    /// For HTTPS.
    let certificate: CertificateStore?

    /// What the server's connections have in common. Any thread.
    final class Shared: Sendable {
        let limits: HTTPLimits
        let api: APIService
        let takeovers: [any HTTPTakeover]
        let sweepers: LoopSweepers
        private let counters: Counters
        private let connections = Atomic<Int>(0)

        init(limits: HTTPLimits, api: APIService, takeovers: [any HTTPTakeover], sweepers: LoopSweepers, counters: Counters) {
            self.limits = limits
            self.api = api
            self.takeovers = takeovers
            self.sweepers = sweepers
            self.counters = counters
        }

        /// False: too many. Pair with `leave` either way.
        func enter() -> Bool {
            if self.connections.add(1, ordering: .relaxed).newValue <= self.limits.connections { return true }
            self.counters.update { $0.httpConnectionsRefused += 1 }
            return false
        }

        func leave() { self.connections.subtract(1, ordering: .relaxed) }
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let shared = self.shared
        let certificate = self.certificate
        return channel.eventLoop.makeCompletedFuture {
            let isAdmitted = shared.enter()
            channel.closeFuture.whenComplete { _ in shared.leave() }
            try channel.syncOptions?.setOption(.tcpOption(.tcp_nodelay), value: 1)
            try channel.syncOptions?.setOption(.socketOption(.so_keepalive), value: 1)
            if let certificate { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: certificate.current)) }
            var decoding = NIOHTTPDecoderLimitConfiguration()
            decoding.maxHeaderFieldSize = shared.limits.headBytes
            decoding.maxHeaderListSize = shared.limits.headBytes
            decoding.maxHeaderFieldCount = shared.limits.headerFields
            let encoder = HTTPResponseEncoder()
            let decoder = ByteToMessageHandler(
                HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: decoding),
                // After a request for an upgrade the decoder keeps what it gets, unread.
                maximumBufferSize: shared.limits.headBytes + (64 << 10))
            let types = HTTP1ToHTTPServerCodec(secure: certificate != nil)
            let connection = HTTPConnectionHandler(
                sweeper: shared.sweepers.of(channel.eventLoop), limits: shared.limits, takeovers: shared.takeovers,
                codec: [types, encoder, decoder], isRefused: !isAdmitted, isSecure: certificate != nil)
            try channel.pipeline.syncOperations.addHandlers([encoder, decoder, connection, types])
            return try NIOAsyncChannel(wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
        }
    }

    func handle(value: Value, logger: Logger) async {
        await self.handleHTTP(asyncChannel: value, logger: logger)
    }
}
