import NIOCore
package import RTMP
import Synchronization

/// Everything a ``RawClient`` has received. Any thread.
package final class Inbox: Sendable {
    package struct Content: Sendable {
        package var outputs: [ClientSessionOutput] = []
        package var received: [RawClient.Received] = []
        package var bytes = 0
        package var isShaken = false
        package var isClosed = false
        package var address = ""
        package var error: RTMPError?
    }

    private let content = Mutex(Content())

    package func read<Value: Sendable>(_ body: (Content) -> Value) -> Value { self.content.withLock { body($0) } }
    package func update(_ body: (inout Content) -> Void) { self.content.withLock { body(&$0) } }
}

/// `@unchecked Sendable`: every stored `var` is touched on the channel's event loop only.
final class RawClientHandler: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let inbox = Inbox()
    private var handshake: ClientHandshake?
    private var decoder = ChunkDecoder()
    private var session = ClientSession()
    private var encoder = ChunkEncoder()
    private var context: ChannelHandlerContext?

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func startHandshake(_ kind: ClientHandshake.Kind) {
        var handshake = ClientHandshake(kind: kind)
        let hello = handshake.start(random: Self.random)
        self.handshake = handshake
        self.write(hello)
    }

    func run(_ body: (inout ClientSession) -> Void) {
        body(&self.session)
        self.flush()
    }

    func send(_ messages: [Message]) {
        var out = ByteBuffer()
        for message in messages { self.encode(message, into: &out) }
        self.write(out)
    }

    func channelActive(context: ChannelHandlerContext) {
        // Stored now: a closed channel has no address.
        let address = "\(context.localAddress?.ipAddress ?? ""):\(context.localAddress?.port ?? 0)"
        self.inbox.update { $0.address = address }
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let now = ContinuousClock.now
        var bytes = self.unwrapInboundIn(data)
        self.inbox.update { $0.bytes += bytes.readableBytes }
        do throws(RTMPError) {
            if let shaken = self.handshake?.isDone {
                if !shaken { try self.shakeHands(&bytes) }
                guard self.handshake?.isDone == true, bytes.readableBytes > 0 else { return }
                self.decoder.append(bytes)
                while let message = try self.decoder.nextMessage() {
                    self.inbox.update { $0.received.append(RawClient.Received(message: message, at: now)) }
                    try self.session.receive(message)
                }
                self.session.bytesReceived(self.decoder.receivedBytes)
                self.flush()
            }
        } catch {
            self.inbox.update { $0.error = error }
            context.close(promise: nil)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.inbox.update { $0.isClosed = true }
        context.fireChannelInactive()
    }

    // A reset by the server counts as a normal end here.
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func shakeHands(_ bytes: inout ByteBuffer) throws(RTMPError) {
        if let answer = try self.handshake?.receive(&bytes, random: Self.random) { self.write(answer) }
        if self.handshake?.isDone == true { self.inbox.update { $0.isShaken = true } }
    }

    private func flush() {
        var out = ByteBuffer()
        while let output = self.session.nextOutput() {
            switch output {
            case .send(let message): self.encode(message, into: &out)
            case .setChunkSize(let size): self.encoder.chunkSize = size
            default: self.inbox.update { $0.outputs.append(output) }
            }
        }
        if out.readableBytes > 0 { self.write(out) }
    }

    private func encode(_ message: Message, into out: inout ByteBuffer) {
        let chunkStream: UInt32 =
            switch message.type {
            case .audio: 4
            case .video: 6
            case .dataAMF0, .dataAMF3, .aggregate: 5
            case let type: type.rawValue <= 6 ? 2 : (message.streamID == 0 ? 3 : 8)
            }
        self.encoder.encode(message, chunkStream: chunkStream, into: &out)
    }

    private func write(_ bytes: ByteBuffer) {
        self.context?.writeAndFlush(self.wrapOutboundOut(bytes), promise: nil)
    }

    private static func random(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
}
