import Hummingbird
import HummingbirdCore
import Listening
import Logging
import NIOCore
import NIOHTTP2
import NIOHTTPTypes
import NIOHTTPTypesHTTP2
import NIOSSL
import Support

/// ``HTTPServerChannel`` over TLS, with HTTP/1.1 or HTTP/2. The client chooses; each HTTP/2 request has its own channel.
struct HTTPSServerChannel: ServerChildChannel, HTTPChannelHandler {
    /// A connection whose protocol is known once TLS is done.
    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let conversation: EventLoopFuture<Conversation>
    }

    enum Conversation: Sendable {
        case http1(HTTPServerChannel.Value)
        /// The requests in order of arrival.
        case http2(AsyncStream<HTTPServerChannel.Value>)
    }

    let responder: HTTPChannelHandler.Responder
    let shared: HTTPServerChannel.Shared
    let certificate: CertificateStore

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let (shared, certificate) = (self.shared, self.certificate)
        let begun = channel.eventLoop.makePromise(of: Conversation.self)
        return channel.eventLoop.makeCompletedFuture {
            do {
                let openedMs = LoopSweeper.nowMs
                let place = try shared.admit(channel)
                place.secured()
                try shared.meetNeighbor(channel, place)
                let isAdmitted = place.refusal == nil
                // A refused connection is not offered HTTP/2, so that its answer is in HTTP/1.1.
                let tls = NIOSSLServerHandler(context: isAdmitted ? certificate.currentForHTTP : certificate.current)
                let negotiation = TLSNegotiation(
                    sweeper: shared.sweepers.of(channel.eventLoop),
                    deadlineMs: openedMs + (isAdmitted ? shared.limits.headMs : HTTPConnectionHandler.refusedMs), begun: begun
                ) { channel, chosen in
                    guard chosen == CertificateStore.http2 else {
                        return Conversation.http1(
                            try shared.speakHTTP1(on: channel, since: openedMs, place, isSecure: true))
                    }
                    return .http2(try Self.speakHTTP2(on: channel, since: openedMs, place, shared))
                }
                try channel.pipeline.syncOperations.addHandlers([tls, negotiation])
                return Value(channel: channel, conversation: begun.futureResult)
            } catch {
                begun.fail(error)
                channel.close(promise: nil)
                throw error
            }
        }
    }

    private static func speakHTTP2(
        on channel: any Channel, since openedMs: Int64, _ place: HTTPPlace, _ shared: HTTPServerChannel.Shared
    ) throws -> AsyncStream<HTTPServerChannel.Value> {
        // NIO's stream sequence ends at the connection's first error and loses the streams it still holds. This sequence ends with the
        // connection, so every channel made is read to its end.
        let (requests, continuation) = AsyncStream.makeStream(of: HTTPServerChannel.Value.self)
        try self.addHTTP2(to: channel, since: openedMs, place, shared) { stream in
            continuation.yield(try NIOAsyncChannel(wrappingChannelSynchronously: stream))
        }
        channel.closeFuture.whenComplete { _ in continuation.finish() }
        return requests
    }

    /// Adds the handlers of HTTP/2. `opened` gets each request's channel; the answering handler is added behind these. On the channel's loop.
    static func addHTTP2(
        to channel: any Channel, since openedMs: Int64, _ place: HTTPPlace, _ shared: HTTPServerChannel.Shared,
        opened: @escaping (any Channel) throws -> Void
    ) throws {
        let sweeper = shared.sweepers.of(channel.eventLoop)
        let connection = HTTP2ConnectionHandler(sweeper: sweeper, limits: shared.limits, openedMs: openedMs, place: place)
        let bound = NIOLoopBound((connection, sweeper, place, opened), eventLoop: channel.eventLoop)
        _ = try channel.pipeline.syncOperations.configureAsyncHTTP2Pipeline(
            mode: .server, streamDelegate: nil, frameDelegate: connection, configuration: HTTP2Limits.configuration(shared.limits)
        ) { stream in
            stream.eventLoop.makeCompletedFuture {
                let (connection, sweeper, place, opened) = bound.value
                let handler = HTTP2StreamHandler(
                    sweeper: sweeper, limits: shared.limits, loopPart: shared.loopPart, handoffs: shared.handoffs, place: place)
                try stream.pipeline.syncOperations.addHandlers([HTTP2FramePayloadToHTTPServerCodec(), handler])
                try connection.opened(stream)
                try opened(stream)
            }
        }
        try channel.pipeline.syncOperations.addHandler(connection)
    }

    func handle(value: Value, logger: Logger) async {
        let conversation: Conversation
        do {
            conversation = try await value.conversation.get()
        } catch {
            logger.trace("TLS failed", metadata: ["error": "\(error)"])
            return
        }
        switch conversation {
        case .http1(let channel): await self.handleHTTP(asyncChannel: channel, logger: logger)
        case .http2(let requests):
            await withDiscardingTaskGroup { group in
                // `handleHTTP` reads until the stream ends. Closing the stream earlier would cut off unsent bytes.
                for await request in requests { group.addTask { await self.handleHTTP(asyncChannel: request, logger: logger) } }
            }
        }
    }
}
