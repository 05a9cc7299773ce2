import CommandSupport
import NIOCore
import NIOHTTP1
import NIOPosix
import Support
import Synchronization

/// Receives webhook calls on a port of this machine, for as long as the doctor needs them.
final class WebhookListener: Sendable {
    struct Call: Sendable {
        let body: JSONValue
        let isSigned: Bool
    }

    let port: Int
    private let channel: any Channel
    private let calls: Calls

    private final class Calls: Sendable {
        let list = Mutex<[Call]>([])
    }

    private init(_ channel: any Channel, _ port: Int, _ calls: Calls) {
        self.channel = channel
        self.port = port
        self.calls = calls
    }

    static func open() async throws -> WebhookListener {
        let calls = Calls()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline(withErrorHandling: true)
                    try channel.pipeline.syncOperations.addHandler(Handler(calls))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return WebhookListener(channel, channel.localAddress?.port ?? 0, calls)
    }

    func close() { self.channel.close(promise: nil) }

    /// The first matching call, within this time.
    func first(within seconds: Double, _ fits: (Call) -> Bool) async -> Call? {
        let end = ContinuousClock.now + .seconds(seconds)
        while true {
            if let call = self.calls.list.withLock({ $0 }).first(where: fits) { return call }
            guard ContinuousClock.now < end, !Task.isCancelled else { return nil }
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let calls: Calls
        private var head: HTTPRequestHead?
        private var body = ByteBuffer()

        /// Deliveries have a few kilobytes; bytes beyond the limit are dropped.
        private static let longest = 1 << 20
        private static let most = 1_000

        init(_ calls: Calls) { self.calls = calls }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch self.unwrapInboundIn(data) {
            case .head(let head):
                self.head = head
                self.body.clear()
            case .body(var piece):
                if self.body.readableBytes + piece.readableBytes <= Self.longest { self.body.writeBuffer(&piece) }
            case .end:
                let isSigned = self.head?.headers.contains { $0.name.lowercased().hasSuffix("signature") } ?? false
                if let value = try? JSONValue.answer(self.body.readableBytesView) {
                    self.calls.list.withLock { if $0.count < Self.most { $0.append(Call(body: value, isSigned: isSigned)) } }
                }
                let headers: HTTPHeaders = ["Content-Type": "application/json", "Content-Length": "10"]
                context.write(self.wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .ok, headers: headers))), promise: nil)
                context.write(self.wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: "{\"code\":0}")))), promise: nil)
                context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
            }
        }
    }
}
