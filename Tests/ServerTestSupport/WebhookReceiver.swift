import Foundation
import LibC
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TestSupport

/// A back end for webhooks: a real HTTP server whose answers a test decides, and which can be down. Any thread.
package final class WebhookReceiver: Sendable {
    package struct Delivery: Sendable {
        package let method: String
        package let path: String
        package let headers: [String: String]
        package let body: [UInt8]
        package let at: ContinuousClock.Instant
        /// The status of its answer; nil for none.
        package let status: Int?

        package var json: JSON { JSON(try? JSONSerialization.jsonObject(with: Data(self.body))) }
        package var key: String { self.headers["x-earshot-delivery"] ?? "" }
    }

    /// The answer to a delivery.
    package struct Answer: Sendable {
        /// Nil closes the connection without an answer.
        package var status: Int?
        package var delayMs: Int64 = 0
        package static let ok = Answer(status: 200)
        /// Never within a test: after an hour.
        package static let never = Answer(status: 200, delayMs: 3_600_000)

        package init(status: Int?, delayMs: Int64 = 0) {
            self.status = status
            self.delayMs = delayMs
        }
    }

    package typealias Rule = @Sendable (_ body: JSON, _ count: Int) -> Answer

    private struct State {
        var deliveries: [Delivery] = []
        var rule: Rule = { _, _ in .ok }
        var channel: (any Channel)?
        var children: [any Channel] = []
        var inFlight = 0
        var mostInFlight = 0
    }

    /// Separate from the server's loops: a receiver's cost must not look like the server's delay.
    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let state = Mutex(State())
    /// Bound, but listening only after `start`: reserves the port, and connections to it are refused.
    private let socket: CInt
    package let port: Int

    private init(socket: CInt, port: Int) {
        self.socket = socket
        self.port = port
    }

    /// Reserves a port without listening.
    package static func make() throws -> WebhookReceiver {
        let socket = LibC.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        // ip(7), byte by byte: family, port 0, 127.0.0.1. The module that owns the C struct's members depends on what else is compiled.
        var address = [UInt8](repeating: 0, count: 16)
        withUnsafeBytes(of: sa_family_t(AF_INET)) { address.replaceSubrange(0..<2, with: $0) }
        address.replaceSubrange(4..<8, with: [127, 0, 0, 1])
        var size = socklen_t(address.count)
        let isBound = address.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return false }
            return bind(socket, start, size) == 0 && getsockname(socket, start, &size) == 0
        }
        guard socket >= 0, isBound else { throw TimedOut(description: "no port: \(errno)") }
        return WebhookReceiver(socket: socket, port: Int(address[2]) << 8 | Int(address[3]))
    }

    package static func start(_ rule: @escaping Rule = { _, _ in .ok }) async throws -> WebhookReceiver {
        let receiver = try self.make()
        receiver.answer(rule)
        try await receiver.start()
        return receiver
    }

    package var url: String { "http://127.0.0.1:\(self.port)/hook" }
    /// All deliveries, including those without a good answer.
    package var deliveries: [Delivery] { self.state.withLock { $0.deliveries } }
    /// Deliveries answered with 2xx.
    package var accepted: [Delivery] { self.deliveries.filter { (200...299).contains($0.status ?? 0) } }
    package var mostInFlight: Int { self.state.withLock { $0.mostInFlight } }

    package func answer(_ rule: @escaping Rule) { self.state.withLock { $0.rule = rule } }

    package func start() async throws {
        let channel = try await ServerBootstrap(group: Self.group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Handler(self))
                    self.state.withLock { $0.children.append(channel) }
                }
            }
            .withBoundSocket(self.socket).get()
        self.state.withLock { $0.channel = channel }
    }

    /// Stops for good. Only for a started receiver.
    package func stop() async {
        let (channel, children) = self.state.withLock { state in
            defer {
                state.channel = nil
                state.children = []
            }
            return (state.channel, state.children)
        }
        for channel in children { _ = try? await channel.close() }
        _ = try? await channel?.close()
    }

    private func received(_ delivery: Delivery) { self.state.withLock { $0.deliveries.append(delivery) } }

    private func rule(for body: JSON) -> Answer {
        let (rule, count) = self.state.withLock { state in
            state.inFlight += 1
            state.mostInFlight = max(state.mostInFlight, state.inFlight)
            return (state.rule, state.deliveries.count)
        }
        return rule(body, count)
    }

    private func ended() { self.state.withLock { $0.inFlight -= 1 } }

    /// Loop-bound.
    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart
        private let receiver: WebhookReceiver
        private var head: HTTPRequestHead?
        private var body: [UInt8] = []

        init(_ receiver: WebhookReceiver) { self.receiver = receiver }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch self.unwrapInboundIn(data) {
            case .head(let head):
                self.head = head
                self.body = []
            case .body(let part): self.body += part.readableBytesView
            case .end:
                guard let head = self.head else { return }
                let body = self.body
                let answer = self.receiver.rule(for: JSON(try? JSONSerialization.jsonObject(with: Data(body))))
                // Built on arrival, added when answered: a test that sees a delivery may rely on its answer.
                let headers = Dictionary(head.headers.map { ($0.name.lowercased(), $0.value) }) { first, _ in first }
                let delivery = Delivery(
                    method: head.method.rawValue, path: head.uri, headers: headers, body: body, at: .now, status: answer.status)
                let reply = {
                    self.receiver.ended()
                    self.receiver.received(delivery)
                    guard let status = answer.status else {
                        context.close(promise: nil)
                        return
                    }
                    var head = HTTPResponseHead(
                        version: .http1_1, status: .init(statusCode: status), headers: ["connection": "keep-alive"])
                    // RFC 9110 §15.3.5: 204 has no content.
                    let body = status == 204 ? "" : #"{"code":0}"#
                    if status != 204 { head.headers.add(name: "content-length", value: "\(body.utf8.count)") }
                    context.write(self.wrapOutboundOut(.head(head)), promise: nil)
                    if !body.isEmpty { context.write(self.wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: body)))), promise: nil) }
                    context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
                }
                if answer.delayMs > 0 {
                    context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(answer.delayMs), reply)
                } else {
                    reply()
                }
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
