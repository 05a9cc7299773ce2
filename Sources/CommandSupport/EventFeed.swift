import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
package import Support

/// Reads the server's `/events` WebSocket across reconnects. Delivers each event once, in order, even over restarts of the server. Runs
/// in one task.
package struct EventFeed {
    package let api: APIClient
    package let room: String?
    /// Only events of these kinds, with commas between them; nil: all.
    package let kinds: String?
    /// The id of the last delivered event; nil before the server's first answer.
    package private(set) var position: Int64?
    /// The server's newest event at the time of the connection.
    private var newest: Int64 = 0

    package init(_ api: APIClient, room: String?, kinds: String?, after: Int64?) {
        self.api = api
        self.room = room
        self.kinds = kinds
        self.position = after
    }

    /// Delivers every event to `body`, for ever. Fails when the server cannot be reached at first; a connection lost later is made
    /// again, after half a second at first, then up to ten seconds.
    ///
    /// - Throws: ``CommandFailure``, and the errors of `body`.
    package mutating func follow(_ body: (JSONValue) throws -> Void) async throws {
        var delay = Self.shortest
        var wasConnected = false
        var isAway = false
        while true {
            do {
                try await self.connection { feed, message in
                    if isAway { Console.complain("connected again") }
                    isAway = false
                    wasConnected = true
                    delay = Self.shortest
                    try feed.receive(message, body)
                }
            } catch let failure as CommandFailure where !wasConnected || ![.unreachable, .failed].contains(failure.status) {
                throw failure
            } catch let lost as Lost {
                if !wasConnected { throw CommandFailure(.unreachable, "cannot follow \(self.api.server): \(lost.why)") }
                if !isAway { Console.complain("lost the connection (\(lost.why)); connecting again …") }
            } catch let failure as CommandFailure {
                if !isAway { Console.complain("lost the connection (\(failure.message.prefix { $0 != "\n" })); connecting again …") }
            }
            isAway = true
            try await Task.sleep(for: .milliseconds(delay))
            delay = min(delay * 2, Self.longest)
        }
    }

    /// Milliseconds.
    private static let shortest: Int64 = 500
    private static let longest: Int64 = 10_000
    /// The server pings every 15 s.
    private static let silenceSeconds: Int64 = 45

    /// The reason why an established connection ended.
    private struct Lost: Error {
        package let why: String
    }

    private mutating func receive(_ message: JSONValue, _ body: (JSONValue) throws -> Void) throws {
        switch message["type"].string {
        case "hello":
            guard let last = message["lastEventId"].integer else { return }
            self.newest = last
            if let position = self.position, position > last {
                Console.complain("the server's event numbers start over (its last: \(last), ours: \(position)): was its data replaced?")
                self.position = last
            } else if self.position == nil {
                self.position = last
            }
        case "gap":
            // A gap ahead of the server's newest event was reported with "hello". Position 0 asks for all events still kept, so a
            // missing start is expected there.
            if let from = message["from"].integer, let to = message["to"].integer, let position = self.position, position > 0,
                from <= self.newest
            {
                Console.complain("the server no longer has events \(from) to \(to)")
            }
        case "event":
            guard let id = message["id"].integer, id > self.position ?? .min else { return }
            try body(message)
            self.position = id
        default: break
        }
    }

    // MARK: - One connection

    private enum Upgrade: Sendable {
        case feed(NIOAsyncChannel<WebSocketFrame, WebSocketFrame>)
        case refused(NIOAsyncChannel<HTTPClientResponsePart, HTTPPart<HTTPRequestHead, ByteBuffer>>)
    }

    /// Delivers each message of one connection to `body`. Never returns, but throws ``Lost`` or ``CommandFailure``.
    private mutating func connection(_ body: (inout EventFeed, JSONValue) throws -> Void) async throws {
        switch try await self.connect() {
        case .feed(let channel):
            do {
                try await channel.executeThenClose { frames, out in
                    for try await frame in frames {
                        switch frame.opcode {
                        case .text, .binary:
                            guard let message = try? JSONValue.answer(frame.unmaskedData.readableBytesView) else {
                                throw CommandFailure(.failed, "\(self.api.server) sent something other than JSON on its event feed")
                            }
                            try body(&self, message)
                        case .ping:
                            try await out.write(Self.frame(.pong, frame.unmaskedData))
                        case .connectionClose:
                            try await out.write(Self.frame(.connectionClose, ByteBuffer(frame.unmaskedData.readableBytesView.prefix(2))))
                            throw try Self.closed(frame.unmaskedData, self.api)
                        default: break
                        }
                    }
                }
            } catch let error where !(error is CommandFailure || error is Lost || error is Console.ReaderGone || error is CancellationError)
            {
                throw Lost(why: self.api.explain(error))
            }
            throw Lost(why: "the server closed it")
        case .refused(let channel):
            throw try await self.refusal(channel)
        }
    }

    /// A client masks every frame, RFC 6455 §5.3.
    private static func frame(_ opcode: WebSocketOpcode, _ data: ByteBuffer) -> WebSocketFrame {
        WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
    }

    private static func closed(_ data: ByteBuffer, _ api: APIClient) throws -> any Error {
        var data = data
        let code = data.readInteger(as: UInt16.self) ?? 1005
        let reason = DisplayText.escaped(String(buffer: data))
        // RFC 6455 §7.4.1: policy violation. The token is no longer valid, so a retry is pointless.
        if code == 1008 { return CommandFailure(.unauthorised, "the server ended the feed: \(reason)\n\(AccessToken.advice)") }
        return Lost(why: reason.isEmpty ? "closed with code \(code)" : reason)
    }

    private func connect() async throws -> Upgrade {
        let server = self.api.server
        var headers = self.api.headers
        headers.add(name: "Host", value: server.authority)
        // The body is empty, but some proxies insist on the header.
        headers.add(name: "Content-Length", value: "0")
        let head = HTTPRequestHead(
            version: .http1_1, method: .GET,
            uri: server.target(["events"], [("after", self.position.map { "\($0)" }), ("roomId", self.room), ("kinds", self.kinds)]),
            headers: headers)
        let limit = TimeAmount.milliseconds(self.api.timeout.milliseconds)
        do {
            let tls = server.isTLS ? try NIOSSLContext(configuration: .makeClientConfiguration()) : nil
            let upgrade = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(limit).connect(
                host: server.host, port: server.port
            ) { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls { try channel.pipeline.syncOperations.addHandler(Self.tlsHandler(tls, server.host)) }
                    return try Self.upgrade(channel, head, limit)
                }
            }
            return try await upgrade.get()
        } catch let error as CancellationError {
            throw error
        } catch {
            throw self.api.unreachable(error)
        }
    }

    /// Adds no server name for IP addresses (RFC 6066 §3).
    private static func tlsHandler(_ context: NIOSSLContext, _ host: String) throws -> NIOSSLClientHandler {
        let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
        return try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : host)
    }

    private static func upgrade(_ channel: any Channel, _ head: HTTPRequestHead, _ limit: TimeAmount) throws -> EventLoopFuture<Upgrade> {
        try WebSocketUpgrade.begin(channel, head, longestFrame: APIClient.longestAnswer, limit: limit) { channel in
            channel.eventLoop.makeCompletedFuture {
                let pipeline = channel.pipeline.syncOperations
                // First in the pipeline, so that any received byte counts.
                try pipeline.addHandler(IdleStateHandler(readTimeout: .seconds(Self.silenceSeconds)), position: .first)
                try pipeline.addHandler(SilenceHandler())
                try pipeline.addHandler(
                    NIOWebSocketFrameAggregator(
                        minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: 10_000, maxAccumulatedFrameSize: APIClient.longestAnswer))
                return .feed(try NIOAsyncChannel(wrappingChannelSynchronously: channel))
            }
        } refused: { channel in
            channel.eventLoop.makeCompletedFuture { .refused(try NIOAsyncChannel(wrappingChannelSynchronously: channel)) }
        }
    }

    /// The failure for an ordinary HTTP answer to the upgrade.
    private func refusal(_ channel: NIOAsyncChannel<HTTPClientResponsePart, HTTPPart<HTTPRequestHead, ByteBuffer>>) async throws
        -> any Error
    {
        var status = HTTPResponseStatus.internalServerError
        var bytes = ByteBuffer()
        do {
            (status, bytes) = try await channel.executeThenClose { parts, _ in
                var status = HTTPResponseStatus.internalServerError
                var bytes = ByteBuffer()
                reading: for try await part in parts {
                    switch part {
                    case .head(let head): status = head.status
                    case .body(var more) where bytes.readableBytes + more.readableBytes <= 64 << 10: bytes.writeBuffer(&more)
                    case .body, .end: break reading
                    }
                }
                return (status, bytes)
            }
        } catch {
            throw self.api.unreachable(error)
        }
        let body = (try? JSONValue.answer(bytes.readableBytesView)) ?? .null
        return CommandFailure.refused(status, body: body, server: self.api.server, token: self.api.token)
    }
}

/// Closes a connection that has been silent for too long.
private final class SilenceHandler: ChannelInboundHandler {
    package typealias InboundIn = NIOAny

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is IdleStateHandler.IdleStateEvent { context.close(promise: nil) } else { context.fireUserInboundEventTriggered(event) }
    }
}
