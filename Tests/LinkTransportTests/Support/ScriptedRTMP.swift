import Foundation
import NIOCore
import NIOPosix
import RTMP
import Synchronization
import TestSupport

/// An RTMP server that follows a test's script. By default it agrees to everything and records what it is sent.
final class ScriptedRTMP: Sendable {
    /// The server's reaction to messages, besides recording them.
    struct Script: Sendable {
        /// Accepts connections and never reads from them.
        var isDeaf = false
        /// Reads and never sends anything, not even its handshake.
        var isMute = false
        /// Messages that answer a command; nil for a friendly server's usual answer.
        var answer: @Sendable (Command, Message) -> [Message]? = { _, _ in nil }
        /// Raw bytes that follow the answers to a command.
        var raw: @Sendable (Command) -> [UInt8] = { _ in [] }
        /// Closes after the answers to these commands.
        var closesAfter: Set<String> = []
        /// Reads nothing more after this command.
        var stopsReadingAfter: String?
        /// Payload bytes per chunk that it sends.
        var chunkSize = 128
        /// Milliseconds between reads, of `readBytes` each; 0 reads as data arrives.
        var readEveryMs: Int64 = 0
        var readBytes = 64 << 10
    }

    let port: Int
    let messages = SharedList<Message>()
    let commands = SharedList<String>()
    private let connectionCount = Mutex(0)
    private let channels = Mutex<[any Channel]>([])
    private let script: Mutex<Script>
    private let listener = Mutex<(any Channel)?>(nil)

    var connections: Int { self.connectionCount.withLock { $0 } }
    var url: String { "rtmp://127.0.0.1:\(self.port)/live/cam1" }
    var media: [Message] { self.messages.all.filter { [.audio, .video, .dataAMF0].contains($0.type) } }

    private init(port: Int, _ script: Script) {
        self.port = port
        self.script = Mutex(script)
    }

    static func run<Result>(
        _ script: Script = Script(), host: String = "127.0.0.1", _ body: (ScriptedRTMP) async throws -> Result
    ) async throws -> Result {
        let server = ScriptedRTMP(port: try await FreePort.reserve(host: host), script)
        let listener = try await ServerBootstrap(group: Loops.group)
            .serverChannelOption(ChannelOptions.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(ChannelOptions.autoRead, value: !script.isDeaf && script.readEveryMs == 0)
            .childChannelOption(
                ChannelOptions.socketOption(.so_rcvbuf),
                value: script.readEveryMs > 0 || script.isDeaf || script.stopsReadingAfter != nil ? 8 << 10 : 256 << 10
            )
            .childChannelOption(ChannelOptions.maxMessagesPerRead, value: 1)
            .childChannelOption(ChannelOptions.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: script.readBytes))
            .childChannelInitializer { channel in
                server.connectionCount.withLock { $0 += 1 }
                server.channels.withLock { $0.append(channel) }
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Handler(server))
                }
            }
            .bind(host: host, port: server.port).get()
        defer {
            listener.close(promise: nil)
            server.closeAll()
        }
        return try await body(server)
    }

    /// Closes all connections.
    func closeAll() {
        let all = self.channels.withLock { channels in
            defer { channels = [] }
            return channels
        }
        for channel in all { channel.close(promise: nil) }
    }

    func change(_ change: @Sendable (inout Script) -> Void) { self.script.withLock { change(&$0) } }
    fileprivate var now: Script { self.script.withLock { $0 } }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let server: ScriptedRTMP
        private var handshake = ServerHandshake()
        private var decoder = ChunkDecoder()

        init(_ server: ScriptedRTMP) { self.server = server }

        func channelActive(context: ChannelHandlerContext) {
            let script = self.server.now
            guard script.readEveryMs > 0 else { return }
            let channel = context.channel
            context.eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(script.readEveryMs)) { task in
                if channel.isActive { channel.read() } else { task.cancel() }
            }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var bytes = self.unwrapInboundIn(data)
            let script = self.server.now
            guard !script.isMute else { return }
            do {
                if !self.handshake.isDone {
                    let answer = try self.handshake.receive(&bytes) { count in (0..<count).map { _ in UInt8.random(in: 0...255) } }
                    if let answer { context.writeAndFlush(self.wrapOutboundOut(answer), promise: nil) }
                }
                guard self.handshake.isDone else { return }
                self.decoder.append(bytes)
                while let message = try self.decoder.nextMessage() { try self.receive(message, script, context) }
            } catch {
                context.close(promise: nil)
            }
        }

        private func receive(_ message: Message, _ script: Script, _ context: ChannelHandlerContext) throws {
            self.server.messages.append(message)
            guard message.type == .commandAMF0 else { return }
            let command = try Command(message, limits: AMFLimits())
            self.server.commands.append(command.name)
            var out = ByteBuffer()
            let encoder = ChunkEncoder(chunkSize: script.chunkSize)
            if command.name == "connect", script.chunkSize != 128 {
                ChunkEncoder().encode(ControlMessage.setChunkSize(UInt32(script.chunkSize)).message, chunkStream: 2, into: &out)
            }
            for answer in script.answer(command, message) ?? Self.friendly(command, message) {
                encoder.encode(answer, chunkStream: 3, into: &out)
            }
            out.writeBytes(script.raw(command))
            let closes = script.closesAfter.contains(command.name)
            let channel = context.channel
            if script.stopsReadingAfter == command.name { channel.setOption(ChannelOptions.autoRead, value: false).whenComplete { _ in } }
            context.writeAndFlush(self.wrapOutboundOut(out)).whenComplete { _ in
                if closes { channel.close(promise: nil) }
            }
        }

        private static func friendly(_ command: Command, _ message: Message) -> [Message] {
            func result(_ arguments: AMF0Value...) -> [Message] {
                [Command("_result", transaction: command.transaction, arguments: arguments).message(streamID: 0)]
            }
            switch command.name {
            case "connect": return result(Status(StatusCode.connectSuccess, "").object())
            case "createStream": return result(1)
            case "publish": return [ScriptedRTMP.status(StatusCode.publishStart)]
            case "play": return [ScriptedRTMP.status(StatusCode.playStart)]
            default: return []
            }
        }
    }

    static func status(_ code: String, level: Status.Level = .status, _ description: String = "") -> Message {
        Command("onStatus", arguments: [Status(code, level: level, description).object()]).message(streamID: 1)
    }

    static func error(_ command: Command, _ information: AMF0Value) -> [Message] {
        [Command("_error", transaction: command.transaction, arguments: [information]).message(streamID: 0)]
    }
}
