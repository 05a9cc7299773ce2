import HTTPTypes
import Listening
import Logging
import NIOCore
import NIOHTTPTypes
import ServerConfiguration
import Support

@testable import HTTPServer

/// Stands where the router is: takes down each request, and answers at its head or at its end. Loop-bound.
final class HTTPResponder: ChannelInboundHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundOut = HTTPResponsePart

    struct Request: Equatable {
        var method: String
        var target: String
        var authority: String
        /// Bytes of the body; nil until the request's end.
        var bodyBytes: Int?
    }

    static let body = "fine"

    private(set) var requests: [Request] = []
    private let answersEarly: Bool
    private var bytes = 0
    private var isReading = false

    /// Answers at the request's head, as to one without a valid token; else at its end.
    init(answersEarly: Bool) { self.answersEarly = answersEarly }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch self.unwrapInboundIn(data) {
        case .head(let head):
            expect(!self.isReading, "a head in another request's body")
            self.isReading = true
            self.bytes = 0
            self.requests.append(Request(method: head.method.rawValue, target: head.path ?? "", authority: head.authority ?? ""))
            if self.answersEarly { self.answer(context) } else { context.triggerUserOutboundEvent(HTTPBodyWanted(), promise: nil) }
        case .body(let part):
            expect(self.isReading, "a body without a head")
            self.bytes += part.readableBytes
        case .end:
            expect(self.isReading, "an end without a head")
            self.isReading = false
            self.requests[self.requests.count - 1].bodyBytes = self.bytes
            if !self.answersEarly { self.answer(context) }
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func answer(_ context: ChannelHandlerContext) {
        let head = HTTPResponse(status: .ok, headerFields: [.contentLength: "\(Self.body.utf8.count)"])
        context.write(self.wrapOutboundOut(.head(head)), promise: nil)
        context.write(self.wrapOutboundOut(.body(ByteBuffer(string: Self.body))), promise: nil)
        context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
    }
}

/// An HTTP server's shared state, for connections that a trusted proxy makes, which names its clients.
enum FuzzHTTP {
    static let headBytes = 1_024
    static let proxy = try? SocketAddress(ipAddress: "192.0.2.1", port: 4_000)

    static func shared(on loop: any EventLoop) -> HTTPServerChannel.Shared {
        let log = Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }
        let proxies = (try? CIDR.parseList("192.0.2.0/24")) ?? []
        let clients = ClientAddresses(trusted: proxies, log: log)
        let counters = Counters()
        let sweepers = LoopSweepers(loop)
        var access = ServerConfig.Access()
        access.trustedProxies = proxies
        // Small enough for the limits to be met.
        var limits = HTTPLimits()
        limits.headBytes = Self.headBytes
        limits.headerFields = 20
        return HTTPServerChannel.Shared(
            limits: limits, takeovers: [], sweepers: sweepers, access: access, clients: clients,
            proxies: ProxyEntrance(
                from: [], deadlineMs: 1_000, clients: clients, counters: counters, flood: LogRateLimiter(), sweepers: sweepers, log: log),
            counters: counters)
    }
}
