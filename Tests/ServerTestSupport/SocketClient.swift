import Foundation
import NIOCore
import NIOPosix
import Synchronization
import TestSupport

/// A TCP connection, or one of the ``MemoryNetwork``, that sends what a test gives it and keeps what it receives. Any thread.
package final class SocketClient: Sendable {
    private struct State {
        var received: [UInt8] = []
        var isClosed = false
        var hasRead: (@Sendable () -> Void)?
    }

    private final class Handler: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        let state = Mutex(State())

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = self.unwrapInboundIn(data)
            let hasRead = self.state.withLock { state in
                state.received += bytes.readableBytesView
                return state.hasRead
            }
            hasRead?()
        }

        func channelInactive(context: ChannelHandlerContext) { self.state.withLock { $0.isClosed = true } }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    private let channel: any Channel
    private let handler: Handler

    private init(_ channel: any Channel, _ handler: Handler) {
        self.channel = channel
        self.handler = handler
    }

    /// `receiveBuffer`: kernel receive buffer in bytes (SO_RCVBUF). `from`: the address to connect from; loopback has many.
    package static func open(_ port: Int, receiveBuffer: Int? = nil, from: String? = nil) async throws -> SocketClient {
        let handler = Handler()
        let initialize: @Sendable (any Channel) throws -> any Channel = { channel in
            try channel.pipeline.syncOperations.addHandler(handler)
            return channel
        }
        if let channel = try await MemoryNetwork.connect(port, from: from, receiveBuffer: receiveBuffer, initialize) {
            return SocketClient(channel, handler)
        }
        var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in channel.eventLoop.makeCompletedFuture { _ = try initialize(channel) } }
        if let receiveBuffer { bootstrap = bootstrap.channelOption(.socketOption(.so_rcvbuf), value: numericCast(receiveBuffer)) }
        if let from { bootstrap = bootstrap.bind(to: try SocketAddress(ipAddress: from, port: 0)) }
        return SocketClient(try await bootstrap.connect(host: "127.0.0.1", port: port).get(), handler)
    }

    package func send(_ bytes: some Sequence<UInt8>) async throws { try await self.channel.writeAndFlush(ByteBuffer(bytes: Array(bytes))) }
    package func send(_ text: String) async throws { try await self.send(text.utf8) }

    /// Stops or resumes reading.
    package func reads(_ yes: Bool) async throws { try await self.channel.setOption(.autoRead, value: yes).get() }

    /// Calls this after each read, on the event loop; once now, for what has come before.
    package func afterReads(_ body: @escaping @Sendable () -> Void) {
        self.handler.state.withLock { $0.hasRead = body }
        body()
    }

    /// Sends without waiting.
    package func sendSoon(_ bytes: [UInt8]) { self.channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

    /// Sends no more, and still reads.
    package func closeOutput() async throws { try await self.channel.close(mode: .output).get() }

    package func close() async { _ = try? await self.channel.close() }

    package var received: [UInt8] { self.handler.state.withLock { $0.received } }
    package var text: String { String(decoding: self.received, as: UTF8.self) }
    package var isClosed: Bool { self.handler.state.withLock { $0.isClosed } }

    /// Removes the first `count` received bytes.
    package func removeFirst(_ count: Int) { self.handler.state.withLock { $0.received.removeFirst(count) } }

    /// Removes and returns the next whole HTTP answer. One without a Content-Length has no body.
    package func answer(within seconds: Double = 60) async throws -> (head: String, body: String) {
        var found: (head: String, body: String)?
        try await eventually("an answer", within: seconds) {
            // Read in this order: once the end is seen, everything before it has arrived.
            let isClosed = self.isClosed
            let text = self.text
            guard let end = text.range(of: "\r\n\r\n") else {
                if isClosed { throw TimedOut(description: "closed before an answer: \(text)") }
                return false
            }
            let head = String(text[..<end.lowerBound])
            let length =
                head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
                .flatMap { Int($0.dropFirst("content-length:".count).drop { $0 == " " }) } ?? 0
            let body = Array(text[end.upperBound...].utf8)
            guard body.count >= length else { return false }
            found = (head, String(decoding: body.prefix(length), as: UTF8.self))
            self.removeFirst(head.utf8.count + 4 + length)
            return true
        }
        return try found.orThrow()
    }
}
