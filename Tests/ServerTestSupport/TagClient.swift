import Media
import NIOCore
import NIOPosix
package import RTMP
import Synchronization
package import TestSupport

/// Our own client over a socket: publishes or plays one stream, tag by tag, byte by byte. Any thread.
package final class TagClient: Sendable {
    package enum Role: Sendable { case publish, play }

    package struct State: Sendable {
        /// Tags played, in order.
        package var tags: [FLVTag] = []
        /// Every `onStatus` after the start.
        package var statuses: [Status] = []
        package var refusal: Status?
        package var hasStarted = false
        package var sawEOF = false
        package var isClosed = false
        /// The answer to `connect`.
        package var connected: AMF0Value?
    }

    private let channel: any Channel
    private let handler: NIOLoopBound<TagClientHandler>
    private let state: TagClientState

    package var current: State { self.state.value.withLock { $0 } }
    package var tags: [FLVTag] { self.current.tags }

    private init(_ channel: any Channel, _ handler: NIOLoopBound<TagClientHandler>, _ state: TagClientState) {
        self.channel = channel
        self.handler = handler
        self.state = state
    }

    /// Opens the connection and sends the request; does not wait for the answer. `path` is "app/name?query".
    package static func connect(to server: some TestedServer, _ role: Role, _ path: String, extra: [AMF0Property] = []) async throws
        -> TagClient
    {
        let state = TagClientState()
        let parts = path.split(separator: "/", maxSplits: 1).map(String.init)
        let url = "\(server.rtmp)/\(parts[0])"
        var options = RawClient.Options()
        options.group = .singleton
        let made = Mutex<NIOLoopBound<TagClientHandler>?>(nil)
        let channel = try await server.port.open(options) { channel in
            let handler = TagClientHandler(role: role, app: parts[0], name: parts[1], url: url, extra: extra, state: state)
            try channel.pipeline.syncOperations.addHandler(handler)
            made.withLock { $0 = NIOLoopBound(handler, eventLoop: channel.eventLoop) }
        }
        return TagClient(channel, try made.withLock { $0 }.orThrow(), state)
    }

    package static func publish(to server: some TestedServer, _ path: String, extra: [AMF0Property] = []) async throws -> TagClient {
        let client = try await Self.connect(to: server, .publish, path, extra: extra)
        try await eventually("publish to start") { client.current.hasStarted }
        return client
    }

    package static func play(from server: some TestedServer, _ path: String, extra: [AMF0Property] = []) async throws -> TagClient {
        let client = try await Self.connect(to: server, .play, path, extra: extra)
        try await eventually("play to start") { client.current.hasStarted }
        return client
    }

    /// Sends media and data unchanged. The server keeps script data that starts with `@setDataFrame` for late joiners.
    package func send(_ tags: [FLVTag]) async throws {
        let handler = self.handler
        try await self.channel.eventLoop.submit { handler.value.send(tags) }.get()
    }

    /// Like ``send(_:)`` without waiting, in the order of the calls.
    package func enqueue(_ tags: [FLVTag]) {
        let handler = self.handler
        self.channel.eventLoop.execute { handler.value.send(tags) }
    }

    package func setMetadata(_ value: AMF0Value, timestamp: UInt32 = 0) async throws {
        try await self.session { $0.setDataFrame(value, on: $1, timestamp: timestamp) }
    }

    /// Runs any other session call; the number is the message stream's.
    package func session(_ body: @escaping @Sendable (inout ClientSession, UInt32) -> Void) async throws {
        let handler = self.handler
        try await self.channel.eventLoop.submit { handler.value.call(body) }.get()
    }

    package func waitForTags(_ count: Int) async throws {
        do {
            try await eventually("\(count) tags") { self.tags.count >= count }
        } catch {
            throw TimedOut(description: "\(self.tags.count) tags came, expected \(count)")
        }
    }

    package func close() async {
        // It may be closed already.
        try? await self.channel.close().get()
    }
}

/// Shared by the client and its handler.
private final class TagClientState: Sendable {
    let value = Mutex(TagClient.State())
}

/// The wire side; loop-bound.
private final class TagClientHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let role: TagClient.Role
    private let app: String
    private let name: String
    private let url: String
    private let extra: [AMF0Property]
    private let state: TagClientState
    private var handshake = ClientHandshake()
    private var decoder = ChunkDecoder()
    private var encoder = ChunkEncoder()
    private var session = ClientSession()
    private var streamID: UInt32 = 0
    private var context: ChannelHandlerContext?

    init(role: TagClient.Role, app: String, name: String, url: String, extra: [AMF0Property], state: TagClientState) {
        self.role = role
        self.app = app
        self.name = name
        self.url = url
        self.extra = extra
        self.state = state
    }

    private static func random(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255) } }

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        context.writeAndFlush(self.wrapOutboundOut(self.handshake.start(random: Self.random)), promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        self.state.value.withLock { $0.isClosed = true }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = self.unwrapInboundIn(data)
        do throws(RTMPError) {
            if !self.handshake.isDone {
                if let answer = try self.handshake.receive(&bytes, random: Self.random) {
                    context.writeAndFlush(self.wrapOutboundOut(answer), promise: nil)
                }
                guard self.handshake.isDone else { return }
                self.session.connect(app: self.app, tcUrl: self.url, extra: self.extra)
            }
            self.decoder.append(bytes)
            while let message = try self.decoder.nextMessage() { try self.session.receive(message) }
            self.session.bytesReceived(self.decoder.receivedBytes)
        } catch {
            context.close(promise: nil)
        }
        self.runRequests()
    }

    private func runRequests() {
        var out = ByteBuffer()
        while let output = self.session.nextOutput() {
            switch output {
            case .send(let message): self.encode(message, into: &out)
            case .setChunkSize(let size): self.encoder.chunkSize = size
            case .connected(let answer):
                self.state.value.withLock { $0.connected = answer }
                self.session.createStream()
            case .streamCreated(let streamID):
                self.streamID = streamID
                switch self.role {
                case .publish: self.session.publish(self.name, on: streamID)
                case .play: self.session.play(self.name, on: streamID)
                }
            case .publishStarted, .playStarted: self.state.value.withLock { $0.hasStarted = true }
            case .status(_, let status): self.state.value.withLock { $0.statuses.append(status) }
            case .media(let message):
                guard let kind = Frame.Kind(rawValue: message.type.rawValue) else { continue }
                let tag = FLVTag(kind: kind, timestamp: message.timestamp, payload: Array(message.payload.readableBytesView))
                if !tag.isFiller { self.state.value.withLock { $0.tags.append(tag) } }
            case .streamEOF: self.state.value.withLock { $0.sawEOF = true }
            case .refused(let command, let status) where ["connect", "createStream", "publish", "play"].contains(command):
                self.state.value.withLock { $0.refusal = status }
            case .refused, .pong: break
            }
        }
        if out.readableBytes > 0 { self.context?.writeAndFlush(self.wrapOutboundOut(out), promise: nil) }
    }

    private func encode(_ message: Message, into out: inout ByteBuffer) {
        let chunkStream: UInt32 =
            switch message.type {
            case .audio: 4
            case .video: 6
            case .commandAMF0, .dataAMF0: 3
            default: 2
            }
        self.encoder.encode(message, chunkStream: chunkStream, into: &out)
    }

    func send(_ tags: [FLVTag]) {
        var out = ByteBuffer()
        for tag in tags {
            let message = Message(
                type: MessageType(rawValue: tag.kind.rawValue), streamID: self.streamID, timestamp: tag.timestamp,
                payload: ByteBuffer(bytes: tag.payload))
            self.encode(message, into: &out)
        }
        self.context?.writeAndFlush(self.wrapOutboundOut(out), promise: nil)
    }

    func call(_ body: (inout ClientSession, UInt32) -> Void) {
        body(&self.session, self.streamID)
        self.runRequests()
    }
}
