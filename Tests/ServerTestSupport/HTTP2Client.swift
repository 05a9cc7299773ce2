import Foundation
import NIOCore
import NIOHPACK
import NIOPosix
import NIOSSL
import Synchronization
import TestSupport

/// A frame of HTTP/2 (RFC 9113 §4.1), as it is on the wire.
package struct HTTP2WireFrame: Sendable, Equatable {
    package enum Kind: UInt8 {
        case data = 0
        case headers, priority, reset, settings, pushPromise, ping, goAway, windowUpdate, continuation
    }

    package var type: UInt8
    package var flags: UInt8 = 0
    package var stream: Int = 0
    package var payload: [UInt8] = []

    package init(_ kind: Kind, flags: UInt8 = 0, stream: Int = 0, _ payload: [UInt8] = []) {
        (self.type, self.flags, self.stream, self.payload) = (kind.rawValue, flags, stream, payload)
    }

    package var kind: Kind? { Kind(rawValue: self.type) }
    package var hasEnd: Bool { self.flags & 1 != 0 && (self.kind == .data || self.kind == .headers) }

    package var bytes: [UInt8] {
        let count = self.payload.count
        return [UInt8(count >> 16 & 255), UInt8(count >> 8 & 255), UInt8(count & 255), self.type, self.flags] + Self.word(self.stream)
            + self.payload
    }

    package static func word(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(value >> (24 - 8 * $0) & 255) } }

    /// The big-endian number in four bytes of the payload.
    package func word(at offset: Int) -> Int { self.payload.dropFirst(offset).prefix(4).reduce(0) { $0 << 8 | Int($1) } }
}

/// An HTTP/2 connection over TLS that sends whatever a test asks, and keeps what it receives. Any thread.
///
/// Answers SETTINGS and PING by itself, and opens windows: always the connection's, a stream's unless it is held.
package final class HTTP2Client: Sendable {
    package struct Answer: Sendable {
        package var status: Int?
        package var headers: [String: String] = [:]
        package var body: [UInt8] = []
        package var isEnded = false
        /// The error code of RST_STREAM.
        package var reset: Int?
        package var text: String { String(decoding: self.body, as: UTF8.self) }
        package func json() throws -> JSON { JSON(try JSONSerialization.jsonObject(with: Data(self.body))) }
    }

    private struct State {
        var unread: [UInt8] = []
        var frames: [HTTP2WireFrame] = []
        var answers: [Int: Answer] = [:]
        var held: Set<Int> = []
        var answersPings = true
        var isClosed = false
        var chosen: String?
    }

    private final class Handler: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        let state = Mutex(State())
        private let decoder = HeadDecoder()
        /// Sent before all else; TLS buffers it until the handshake is done.
        private let greeting: [UInt8]

        init(greeting: [UInt8]) { self.greeting = greeting }

        func channelActive(context: ChannelHandlerContext) {
            context.writeAndFlush(NIOAny(ByteBuffer(bytes: self.greeting)), promise: nil)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = self.unwrapInboundIn(data)
            let replies = self.state.withLock { state -> [HTTP2WireFrame] in
                state.unread += bytes.readableBytesView
                var replies: [HTTP2WireFrame] = []
                while let frame = Self.next(&state.unread) { replies += self.receive(frame, &state) }
                return replies
            }
            guard !replies.isEmpty else { return }
            context.writeAndFlush(NIOAny(ByteBuffer(bytes: replies.flatMap(\.bytes))), promise: nil)
        }

        private static func next(_ bytes: inout [UInt8]) -> HTTP2WireFrame? {
            guard bytes.count >= 9 else { return nil }
            let count = Int(bytes[0]) << 16 | Int(bytes[1]) << 8 | Int(bytes[2])
            guard bytes.count >= 9 + count else { return nil }
            var frame = HTTP2WireFrame(.data)
            (frame.type, frame.flags) = (bytes[3], bytes[4])
            frame.stream = bytes[5..<9].reduce(0) { $0 << 8 | Int($1) } & 0x7FFF_FFFF
            frame.payload = Array(bytes[9..<9 + count])
            bytes.removeFirst(9 + count)
            return frame
        }

        private func receive(_ frame: HTTP2WireFrame, _ state: inout State) -> [HTTP2WireFrame] {
            var kept = frame
            if frame.kind == .data { kept.payload = [] }
            state.frames.append(kept)
            switch frame.kind {
            case .settings: return frame.flags & 1 == 0 ? [HTTP2WireFrame(.settings, flags: 1)] : []
            case .ping: return frame.flags & 1 == 0 && state.answersPings ? [HTTP2WireFrame(.ping, flags: 1, frame.payload)] : []
            case .headers:
                let headers = self.decoder.decode(frame.payload)
                for (name, value) in headers where name != ":status" {
                    state.answers[frame.stream, default: Answer()].headers[name] = value
                }
                let status = headers.first { $0.0 == ":status" }.flatMap { Int($0.1) }
                if let status { state.answers[frame.stream, default: Answer()].status = status }
                if frame.hasEnd { state.answers[frame.stream, default: Answer()].isEnded = true }
                return []
            case .data:
                state.answers[frame.stream, default: Answer()].body += frame.payload
                if frame.hasEnd { state.answers[frame.stream, default: Answer()].isEnded = true }
                guard !frame.payload.isEmpty else { return [] }
                let more = HTTP2WireFrame.word(frame.payload.count)
                let streams = state.held.contains(frame.stream) || frame.hasEnd ? [0] : [0, frame.stream]
                return streams.map { HTTP2WireFrame(.windowUpdate, stream: $0, more) }
            case .reset:
                state.answers[frame.stream, default: Answer()].reset = frame.word(at: 0)
                return []
            default: return []
            }
        }

        func channelInactive(context: ChannelHandlerContext) { self.state.withLock { $0.isClosed = true } }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// Decodes header blocks in order: each depends on those before it (RFC 7541 §2.2).
    private final class HeadDecoder: Sendable {
        private let decoder = Mutex(HPACKDecoder(allocator: ByteBufferAllocator()))

        func decode(_ bytes: [UInt8]) -> [(String, String)] {
            self.decoder.withLock { decoder in
                var buffer = ByteBuffer(bytes: bytes)
                do {
                    return try decoder.decodeHeaders(from: &buffer).map { ($0.name, $0.value) }
                } catch {
                    return [("broken", "\(error)")]
                }
            }
        }
    }

    private let channel: any Channel
    private let handler: Handler

    private init(_ channel: any Channel, _ handler: Handler) {
        self.channel = channel
        self.handler = handler
    }

    package static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    /// Connects with TLS and ALPN h2. `window`: streams' initial window, bytes. `greets`: sends preface, SETTINGS, WINDOW_UPDATE.
    package static func open(_ port: Int, window: Int = 1 << 20, greets: Bool = true) async throws -> HTTP2Client {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        configuration.applicationProtocols = ["h2"]
        let context = try NIOSSLContext(configuration: configuration)
        // SETTINGS_INITIAL_WINDOW_SIZE, and a wide window for the connection.
        let settings: [UInt8] = [0, 4] + HTTP2WireFrame.word(window)
        let greeting =
            Self.preface + HTTP2WireFrame(.settings, settings).bytes + HTTP2WireFrame(.windowUpdate, HTTP2WireFrame.word(1 << 28)).bytes
        let handler = Handler(greeting: greets ? greeting : [])
        let client = try await Self.connect(port) { channel in
            try channel.pipeline.syncOperations.addHandlers([
                try NIOSSLClientHandler(context: context, serverHostname: nil), handler,
            ])
            return HTTP2Client(channel, handler)
        }
        guard greets else { return client }
        try await eventually("the server's settings") {
            // Before its frames: a test on a busy machine may look when the connection has come and gone.
            let isClosed = client.isClosed
            if client.frames.contains(where: { $0.kind == .settings && $0.flags == 1 }) { return true }
            if isClosed { throw TimedOut(description: "closed before the server's settings: \(client.frames)") }
            return false
        }
        return client
    }

    private static func connect(
        _ port: Int, _ initialize: @escaping @Sendable (any Channel) throws -> HTTP2Client
    ) async throws -> HTTP2Client {
        if let client = try await MemoryNetwork.connect(port, initialize) { return client }
        return try await ClientBootstrap(group: Self.group).connect(host: "127.0.0.1", port: port) { channel in
            channel.eventLoop.makeCompletedFuture { try initialize(channel) }
        }
    }

    /// Separate from the server's loops: a client's cost must not look like the server's delay.
    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    package func send(_ bytes: [UInt8]) async throws { try await self.channel.writeAndFlush(ByteBuffer(bytes: bytes)) }
    package func send(_ frames: [HTTP2WireFrame]) async throws { try await self.send(frames.flatMap(\.bytes)) }

    /// A request's HEADERS frame, with CONTINUATION frames for what exceeds 16 KiB.
    package static func request(
        _ path: String, on stream: Int, method: String = "GET", _ headers: [(String, String)] = [], ends: Bool = true
    ) -> [HTTP2WireFrame] {
        let pseudo = [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
        return Self.head(pseudo + headers, on: stream, ends: ends)
    }

    package static func head(_ fields: [(String, String)], on stream: Int, ends: Bool = true) -> [HTTP2WireFrame] {
        let block = fields.flatMap { Self.literal($0.0, $0.1) }
        let pieces = stride(from: 0, to: max(1, block.count), by: 16_384).map { Array(block[$0..<min(block.count, $0 + 16_384)]) }
        return pieces.enumerated().map { index, piece in
            let isLast: UInt8 = index == pieces.count - 1 ? 4 : 0
            return index == 0
                ? HTTP2WireFrame(.headers, flags: isLast | (ends ? 1 : 0), stream: stream, piece)
                : HTTP2WireFrame(.continuation, flags: isLast, stream: stream, piece)
        }
    }

    /// A literal field without indexing, with a new name (RFC 7541 §6.2.2).
    private static func literal(_ name: String, _ value: String) -> [UInt8] {
        [0] + self.text(name) + self.text(value)
    }

    private static func text(_ text: String) -> [UInt8] {
        var length = text.utf8.count
        guard length >= 127 else { return [UInt8(length)] + Array(text.utf8) }
        var bytes: [UInt8] = [127]
        length -= 127
        while length >= 128 {
            bytes.append(UInt8(length & 127 | 128))
            length >>= 7
        }
        return bytes + [UInt8(length)] + Array(text.utf8)
    }

    package func get(_ path: String, on stream: Int, _ headers: [(String, String)] = []) async throws {
        try await self.send(Self.request(path, on: stream, headers))
    }

    /// Stops opening this stream's window.
    package func hold(_ stream: Int) { self.handler.state.withLock { _ = $0.held.insert(stream) } }
    package func answersPings(_ yes: Bool) { self.handler.state.withLock { $0.answersPings = yes } }
    /// Stops or resumes reading.
    package func reads(_ yes: Bool) async throws { try await self.channel.setOption(.autoRead, value: yes).get() }

    /// All frames received; DATA frames without their payload.
    package var frames: [HTTP2WireFrame] { self.handler.state.withLock { $0.frames } }
    package var isClosed: Bool { self.handler.state.withLock { $0.isClosed } }
    package func soFar(_ stream: Int) -> Answer { self.handler.state.withLock { $0.answers[stream] ?? Answer() } }

    /// The last stream and the error code of each GOAWAY.
    package var goAways: [(last: Int, code: Int)] { self.frames.filter { $0.kind == .goAway }.map { ($0.word(at: 0), $0.word(at: 4)) } }

    /// Waits for the stream's end or reset.
    package func answer(_ stream: Int, within seconds: Double = 60) async throws -> Answer {
        try await eventually("stream \(stream)'s end", within: seconds) {
            let isClosed = self.isClosed
            let answer = self.soFar(stream)
            if answer.isEnded || answer.reset != nil { return true }
            if isClosed { throw TimedOut(description: "closed before stream \(stream) ended: \(answer) \(self.goAways)") }
            return false
        }
        return self.soFar(stream)
    }

    package func close() async { _ = try? await self.channel.close() }
}
