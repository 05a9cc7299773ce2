import Foundation
import NIOCore
import NIOPosix
package import NIOSSL
import TestSupport

/// A real HTTP server on loopback that behaves as a test asks, well or badly.
package final class ScriptedServer: Sendable {
    package struct Request: Sendable {
        /// "POST /path HTTP/1.1"
        package let line: String
        /// Names in lower case.
        package let headers: [String: String]
        package let body: [UInt8]
        package var text: String { String(decoding: self.body, as: UTF8.self) }
        package var json: JSON { JSON(try? JSONSerialization.jsonObject(with: Data(self.body))) }
    }

    package enum Answer: Sendable {
        case status(Int, String, headers: [String: String] = [:])
        /// Any bytes, then the connection is closed.
        case raw(String)
        /// These bytes only; the connection stays open.
        case partial(String)
        /// No answer; the connection stays open.
        case silence
        case close
    }

    package let port: Int
    private let channel: any Channel
    private let seen: LockedList<Request>
    private let connections: LockedList<Int>

    package var requests: [Request] { self.seen.all }
    /// Connections accepted so far.
    package var connectionCount: Int { self.connections.all.count }

    private init(channel: any Channel, seen: LockedList<Request>, connections: LockedList<Int>) {
        self.channel = channel
        self.port = channel.localAddress?.port ?? 0
        self.seen = seen
        self.connections = connections
    }

    /// Serves while the body runs. Answers may be slow: each request has a task of its own.
    package static func run<Result: Sendable>(
        tls: NIOSSLContext? = nil, host: String = "127.0.0.1", port: Int = 0, _ answer: @escaping @Sendable (Request) async -> Answer,
        _ body: @Sendable (ScriptedServer) async throws -> Result
    ) async throws -> Result {
        let seen = LockedList<Request>()
        let connections = LockedList<Int>()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 1024)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    connections.append(1)
                    if let tls { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls)) }
                    try channel.pipeline.syncOperations.addHandler(ScriptedHandler(seen: seen, answer: answer))
                }
            }
            .bind(host: host, port: port).get()
        let server = ScriptedServer(channel: channel, seen: seen, connections: connections)
        let outcome: Swift.Result<Result, any Error>
        do {
            outcome = .success(try await body(server))
        } catch {
            outcome = .failure(error)
        }
        try await channel.close()
        return try outcome.get()
    }
}

/// One connection: HTTP/1.1 requests with Content-Length, one after another.
private final class ScriptedHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let seen: LockedList<ScriptedServer.Request>
    private let answer: @Sendable (ScriptedServer.Request) async -> ScriptedServer.Answer
    private var held: [UInt8] = []

    init(seen: LockedList<ScriptedServer.Request>, answer: @escaping @Sendable (ScriptedServer.Request) async -> ScriptedServer.Answer) {
        self.seen = seen
        self.answer = answer
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.held += self.unwrapInboundIn(data).readableBytesView
        guard let request = self.next() else { return }
        self.seen.append(request)
        let channel = context.channel
        let answer = self.answer
        Task {
            switch await answer(request) {
            case .silence: break
            case .partial(let text): try? await channel.writeAndFlush(ByteBuffer(string: text))
            case .close: try? await channel.close()
            case .raw(let text):
                try? await channel.writeAndFlush(ByteBuffer(string: text))
                try? await channel.close()
            case .status(let status, let body, let headers):
                var text = "HTTP/1.1 \(status) Word\r\nContent-Length: \(body.utf8.count)\r\n"
                for (name, value) in headers { text += "\(name): \(value)\r\n" }
                try? await channel.writeAndFlush(ByteBuffer(string: text + "\r\n" + body))
            }
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func next() -> ScriptedServer.Request? {
        guard let end = self.held.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: self.held[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        }
        let length = Int(headers["content-length"] ?? "") ?? 0
        guard self.held.count - end.upperBound >= length else { return nil }
        let body = Array(self.held[end.upperBound..<(end.upperBound + length)])
        self.held.removeFirst(end.upperBound + length)
        return ScriptedServer.Request(line: lines.first ?? "", headers: headers, body: body)
    }
}
