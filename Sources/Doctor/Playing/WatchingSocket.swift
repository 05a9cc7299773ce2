package import NIOCore
import NIOPosix
import Sockets
import Support
import Synchronization
package import WebRTC

/// Gives a ``WatchingClient`` a UDP socket and the time.
package final class WatchingSocket: Sendable {
    private let channel: any Channel
    private let target: SocketAddress
    private let inbox: Inbox

    private static let turnMs = 5

    private init(_ channel: any Channel, _ target: SocketAddress, _ inbox: Inbox) {
        self.channel = channel
        self.target = target
        self.inbox = inbox
    }

    /// A socket whose client will talk to `target`. Close it.
    package static func open(to target: SocketAddress) async throws -> WatchingSocket {
        let inbox = Inbox(target)
        let channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Receiver(inbox)) }
            }
            .bind(host: target.protocol == .inet6 ? "::" : "0.0.0.0", port: 0).get()
        return WatchingSocket(channel, target, inbox)
    }

    /// Lets the client talk to the target until `isDone`, which gets what came each time, or its problem, or the time is over.
    package func run(_ client: WatchingClient, forSeconds seconds: Int64, _ isDone: ([WatchingClient.Media]) -> Bool) async {
        if let target = DatagramAddress(self.target) { client.begin(with: target) }
        let end = ContinuousClock.now + .seconds(seconds)
        while client.problem == nil, ContinuousClock.now < end, !Task.isCancelled {
            for datagram in self.inbox.popAll() { datagram.withUnsafeReadableBytes { client.receive($0) } }
            client.tick(nowMs: LoopSweeper.nowMs)
            for bytes in client.popDatagrams() {
                self.channel.writeAndFlush(AddressedEnvelope(remoteAddress: self.target, data: ByteBuffer(bytes: bytes)), promise: nil)
            }
            if isDone(client.popMedia()) { return }
            try? await Task.sleep(for: .milliseconds(Self.turnMs))
        }
    }

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
            self.datagrams.withLock { if $0.count < Self.most { $0.append(envelope.data) } }
        }

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
}
