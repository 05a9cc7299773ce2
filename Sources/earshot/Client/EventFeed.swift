import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket

/// The server's `/events` WebSocket as a sequence of events that survives connections: each event once, in order, whatever happens to the
/// server meanwhile. Runs in one task.
struct EventFeed {
    let api: APIClient
    let room: String?
    /// The last event that was told; nil before the first answer of the server.
    private(set) var position: Int64?
    /// The server's newest event when it was connected to.
    private var newest: Int64 = 0

    init(_ api: APIClient, room: String?, after: Int64?) {
        self.api = api
        self.room = room
        self.position = after
    }

    /// Hands each event to the body, for ever. A server that cannot be reached at first is a failure; one that is lost later is
    /// connected to again, half a second later at first and ten seconds at last.
    ///
    /// - Throws: ``CommandFailure``, and what the body throws.
    mutating func follow(_ body: (JSONValue) throws -> Void) async throws {
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
                    try feed.take(message, body)
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

    /// Why a connection ended that had been made.
    private struct Lost: Error {
        let why: String
    }

    private mutating func take(_ message: JSONValue, _ body: (JSONValue) throws -> Void) throws {
        switch message["type"].string {
        case "hello":
            guard let last = message["lastEventId"].integer else { return }
            self.newest = last
            if let position = self.position, position > last {
                Console.complain("the server's events begin anew (it has \(last), we had \(position)): is its data new?")
                self.position = last
            } else if self.position == nil {
                self.position = last
            }
        case "gap":
            // What lies ahead of the server's newest has been said; whoever asked for all that is kept knows that there is a first.
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

    /// Hands each message of one connection to the body; returns never, but throws ``Lost`` or ``CommandFailure``.
    private mutating func connection(_ body: (inout EventFeed, JSONValue) throws -> Void) async throws {
        switch try await self.connect() {
        case .feed(let channel):
            do {
                try await channel.executeThenClose { frames, out in
                    for try await frame in frames {
                        switch frame.opcode {
                        case .text, .binary:
                            guard let message = try? JSONValue(parsing: frame.unmaskedData.readableBytesView) else {
                                throw CommandFailure(.failed, "\(self.api.server) sent what is not JSON on its event feed")
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

    /// RFC 6455 §5.3: a client masks all it sends.
    private static func frame(_ opcode: WebSocketOpcode, _ data: ByteBuffer) -> WebSocketFrame {
        WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
    }

    private static func closed(_ data: ByteBuffer, _ api: APIClient) throws -> any Error {
        var data = data
        let code = data.readInteger(as: UInt16.self) ?? 1005
        let reason = DisplayText.escaped(String(buffer: data))
        // RFC 6455 §7.4.1: policy violation; the token is no longer good, so asking again does not help.
        if code == 1008 { return CommandFailure(.unauthorised, "the server ended the feed: \(reason)\n\(AccessToken.advice)") }
        return Lost(why: reason.isEmpty ? "closed with code \(code)" : reason)
    }

    private func connect() async throws -> Upgrade {
        let server = self.api.server
        var headers = self.api.headers
        headers.add(name: "Host", value: server.authority)
        // Of nothing, but some proxies insist.
        headers.add(name: "Content-Length", value: "0")
        let head = HTTPRequestHead(
            version: .http1_1, method: .GET,
            uri: server.target(["events"], [("after", self.position.map { "\($0)" }), ("roomId", self.room)]), headers: headers)
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

    /// Addresses have no server name (RFC 6066 §3).
    private static func tlsHandler(_ context: NIOSSLContext, _ host: String) throws -> NIOSSLClientHandler {
        let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
        return try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : host)
    }

    private static func upgrade(_ channel: any Channel, _ head: HTTPRequestHead, _ limit: TimeAmount) throws -> EventLoopFuture<Upgrade> {
        let upgrader = NIOTypedWebSocketClientUpgrader<Upgrade>(maxFrameSize: APIClient.longestAnswer) { channel, _ in
            channel.eventLoop.makeCompletedFuture {
                let pipeline = channel.pipeline.syncOperations
                // First in line: bytes count, whatever they make up.
                try pipeline.addHandler(IdleStateHandler(readTimeout: .seconds(Self.silenceSeconds)), position: .first)
                try pipeline.addHandler(SilenceHandler())
                try pipeline.addHandler(
                    NIOWebSocketFrameAggregator(
                        minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: 10_000, maxAccumulatedFrameSize: APIClient.longestAnswer))
                return .feed(try NIOAsyncChannel(wrappingChannelSynchronously: channel))
            }
        }
        let configuration = NIOTypedHTTPClientUpgradeConfiguration(upgradeRequestHead: head, upgraders: [upgrader]) { channel in
            channel.eventLoop.makeCompletedFuture { .refused(try NIOAsyncChannel(wrappingChannelSynchronously: channel)) }
        }
        var pipeline = NIOUpgradableHTTPClientPipelineConfiguration(upgradeConfiguration: configuration)
        // The first frames often come in one piece with the server's answer; NIO would drop them.
        pipeline.leftOverBytesStrategy = .forwardBytes
        let result = try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(configuration: pipeline)
        let timer = channel.eventLoop.assumeIsolated().scheduleTask(in: limit) { channel.close(promise: nil) }
        result.assumeIsolated().whenComplete { _ in timer.cancel() }
        return result
    }

    /// What the ordinary answer to the upgrade says.
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
        let body = (try? JSONValue(parsing: bytes.readableBytesView)) ?? .null
        return CommandFailure.refused(status, body: body, server: self.api.server, token: self.api.token)
    }
}

/// Ends a connection on which nothing has come for too long.
private final class SilenceHandler: ChannelInboundHandler {
    typealias InboundIn = NIOAny

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is IdleStateHandler.IdleStateEvent { context.close(promise: nil) } else { context.fireUserInboundEventTriggered(event) }
    }
}
