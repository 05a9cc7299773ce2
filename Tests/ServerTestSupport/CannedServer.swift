import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// An HTTP server with scripted answers that a real one does not give: errors of every kind, silence, nonsense.
package final class CannedServer: Sendable {
    package enum Answer: Sendable {
        case json(Int, String)
        case text(Int, String, [String: String])
        /// Bytes sent as they are, without HTTP framing.
        case raw(String)
        case close
        case silence
    }

    package struct Request: Sendable {
        package let method: String
        package let uri: String
        package let headers: [String: String]
        package let body: String
    }

    private let seen = Mutex<[Request]>([])
    package var requests: [Request] { self.seen.withLock { $0 } }

    /// `body` gets the server and its URL.
    package static func run<Result: Sendable>(
        _ answer: @escaping @Sendable (Request) -> Answer, _ body: (CannedServer, String) async throws -> Result
    ) async throws -> Result {
        let server = CannedServer()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    // Raw answers bypass the encoder, which precedes this handler in the pipeline.
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline(withErrorHandling: true)
                    try channel.pipeline.syncOperations.addHandler(Handler(server, answer))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let outcome: Swift.Result<Result, any Error>
        do {
            outcome = .success(try await body(server, "http://127.0.0.1:\(channel.localAddress?.port ?? 0)"))
        } catch {
            outcome = .failure(error)
        }
        try await channel.close()
        return try outcome.get()
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let server: CannedServer
        private let answer: @Sendable (Request) -> Answer
        private var head: HTTPRequestHead?
        private var body = ByteBuffer()

        init(_ server: CannedServer, _ answer: @escaping @Sendable (Request) -> Answer) {
            self.server = server
            self.answer = answer
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch self.unwrapInboundIn(data) {
            case .head(let head): self.head = head
            case .body(var bytes): self.body.writeBuffer(&bytes)
            case .end: self.respond(context)
            }
        }

        private func respond(_ context: ChannelHandlerContext) {
            guard let head = self.head else { return }
            let headers = Dictionary(head.headers.map { ($0.name.lowercased(), $0.value) }) { $1 }
            let request = Request(method: head.method.rawValue, uri: head.uri, headers: headers, body: String(buffer: self.body))
            self.server.seen.withLock { $0.append(request) }
            switch self.answer(request) {
            case .json(let status, let text): self.send(context, status, text, ["Content-Type": "application/json"])
            case .text(let status, let text, let headers): self.send(context, status, text, headers)
            case .raw(let text):
                let encoder = try? context.pipeline.syncOperations.context(handlerType: HTTPResponseEncoder.self)
                encoder?.writeAndFlush(NIOAny(ByteBuffer(string: text)), promise: nil)
                encoder?.close(promise: nil)
            case .close: context.close(promise: nil)
            case .silence: break
            }
        }

        private func send(_ context: ChannelHandlerContext, _ status: Int, _ text: String, _ headers: [String: String]) {
            let fields = HTTPHeaders(
                headers.map { ($0.key, $0.value) } + [("Content-Length", "\(text.utf8.count)"), ("Connection", "close")])
            context.write(
                self.wrapOutboundOut(.head(.init(version: .http1_1, status: .init(statusCode: status), headers: fields))), promise: nil)
            context.write(self.wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: text)))), promise: nil)
            context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
