import NIOCore
import NIOPosix
import Sockets
import Support
import Synchronization
package import WebRTC

/// Gives a ``WatchingClient`` a socket, of UDP or TCP, and the time.
package final class WatchingSocket: Sendable {
    private let channel: any Channel
    private let target: SocketAddress
    private let isStream: Bool
    private let inbox: Inbox

    private static let turnMs = 5
    private static let connectTime = TimeAmount.seconds(3)

    private init(_ channel: any Channel, _ target: SocketAddress, isStream: Bool, _ inbox: Inbox) {
        self.channel = channel
        self.target = target
        self.isStream = isStream
        self.inbox = inbox
    }

    /// A socket whose client will talk to the candidate's address. Close it.
    package static func open(to candidate: SessionOffer.Candidate) async throws -> WatchingSocket {
        let target = try SocketAddress(ipAddress: candidate.address, port: candidate.port)
        let inbox = Inbox(target)
        if candidate.isStream {
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(Self.connectTime)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(StreamReceiver(inbox)) }
                }
                .connect(to: target).get()
            return WatchingSocket(channel, target, isStream: true, inbox)
        }
        let channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Receiver(inbox)) }
            }
            .bind(host: target.protocol == .inet6 ? "::" : "0.0.0.0", port: 0).get()
        return WatchingSocket(channel, target, isStream: false, inbox)
    }

    /// Lets the client talk to the target until `isDone`, which gets what came each time, or its problem, or the time is over.
    package func run(_ client: WatchingClient, forSeconds seconds: Int64, _ isDone: ([WatchingClient.Media]) -> Bool) async {
        if let target = DatagramAddress(self.target) { client.begin(with: target) }
        let end = ContinuousClock.now + .seconds(seconds)
        while client.problem == nil, ContinuousClock.now < end, !Task.isCancelled {
            for datagram in self.inbox.popAll() { datagram.withUnsafeReadableBytes { client.receive($0) } }
            client.tick(nowMs: LoopSweeper.nowMs)
            for bytes in client.popDatagrams() { self.send(bytes) }
            if isDone(client.popMedia()) { return }
            try? await Task.sleep(for: .milliseconds(Self.turnMs))
        }
    }

    private func send(_ bytes: [UInt8]) {
        guard self.isStream else {
            return self.channel.writeAndFlush(AddressedEnvelope(remoteAddress: self.target, data: ByteBuffer(bytes: bytes)), promise: nil)
        }
        var framed = ByteBuffer(integer: UInt16(truncatingIfNeeded: bytes.count))
        framed.writeBytes(bytes)
        self.channel.writeAndFlush(framed, promise: nil)
    }

    /// Stops reading, or goes on.
    package func hold(_ holds: Bool) { self.channel.setOption(.autoRead, value: !holds).whenComplete { _ in } }

    package func close() async { try? await self.channel.close() }

    /// What came, until somebody looks.
    private final class Inbox: Sendable {
        private let target: SocketAddress
        private let datagrams = Mutex<[ByteBuffer]>([])
        private static let most = 4_096

        init(_ target: SocketAddress) { self.target = target }

        /// What comes from elsewhere than the target is nobody's, for any client.
        func add(_ envelope: AddressedEnvelope<ByteBuffer>) {
            guard envelope.remoteAddress == self.target else { return }
            self.add(envelope.data)
        }

        func add(_ datagram: ByteBuffer) { self.datagrams.withLock { if $0.count < Self.most { $0.append(datagram) } } }

        func popAll() -> [ByteBuffer] {
            self.datagrams.withLock { datagrams in
                defer { datagrams = [] }
                return datagrams
            }
        }
    }

    private final class Receiver: ChannelInboundHandler, Sendable {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        private let inbox: Inbox

        init(_ inbox: Inbox) { self.inbox = inbox }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { self.inbox.add(self.unwrapInboundIn(data)) }
        // A closed port shows by silence.
        func errorCaught(context: ChannelHandlerContext, error: any Error) {}
    }

    private final class StreamReceiver: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let inbox: Inbox
        private var frames = DatagramFrames()

        init(_ inbox: Inbox) { self.inbox = inbox }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let isWhole = self.unwrapInboundIn(data).withUnsafeReadableBytes { bytes in
                do throws(DatagramFrames.Problem) {
                    try self.frames.read(bytes) { self.inbox.add(ByteBuffer(bytes: $0)) }
                    return true
                } catch {
                    return false
                }
            }
            if !isWhole { context.close(promise: nil) }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
