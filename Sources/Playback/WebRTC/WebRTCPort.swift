import Listening
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Sockets
package import Support
import Synchronization
import WebRTC

/// The UDP port of all WebRTC viewers. Gives each datagram to the viewer that it is for, on that viewer's loop. A service of the server's group.
///
/// A check of ICE names its viewer by the user name in it; anything else counts only from an address from which a viewer's right check has come. All
/// the rest is dropped without a word and counted: an answer would serve those who forge their addresses.
package final class WebRTCPort: Service, Sendable {
    private let address: Mutex<HostPort>
    private let log: Logger
    private let bound = Mutex<(channel: any Channel, sender: DatagramSender)?>(nil)
    private let rows = Mutex(Rows())
    private let strangers = Atomic<UInt64>(0)
    private let unsent = Atomic<UInt64>(0)

    private struct Rows {
        var byUser: [String: WebRTCViewer.Inbox] = [:]
        var byAddress: [DatagramAddress: WebRTCViewer.Inbox] = [:]
    }

    /// Bytes of the kernel's buffers: bursts of joiners go out, and checks of thousands of viewers come in.
    private static let bufferBytes = 4 << 20
    /// Longest datagram that a viewer's client sends.
    private static let longest = 2_048

    init(_ address: HostPort, log: Logger) {
        self.address = Mutex(address)
        self.log = log
    }

    /// Datagrams of nobody here.
    package var dropped: UInt64 { self.strangers.load(ordering: .relaxed) }
    /// Datagrams that the kernel did not take.
    package var lost: UInt64 { self.unsent.load(ordering: .relaxed) }
    func count(lost: Int) { if lost > 0 { self.unsent.add(UInt64(lost), ordering: .relaxed) } }

    /// Sends to viewers; nil until the port is bound.
    var sender: DatagramSender? { self.bound.withLock { $0?.sender } }
    /// The port's number; nil until it is bound.
    var port: Int? { self.bound.withLock { $0?.channel.localAddress?.port } }
    var host: String { self.address.withLock { $0.host } }

    /// Binds the port, that of `http` if the settings name none. Returns the address in use. Throws ``ListenError``.
    package func bind(default http: HostPort) async throws -> HostPort {
        let address = self.address.withLock { address in
            if address.port < 0 { address = http }
            return address
        }
        let bootstrap = DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.socketOption(.so_sndbuf), value: .init(Self.bufferBytes))
            .channelOption(.socketOption(.so_rcvbuf), value: .init(Self.bufferBytes))
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: Self.longest))
            .channelOption(.maxMessagesPerRead, value: 64)
            // A socket on all addresses answers from the one at which it was asked; otherwise from that to which the way back leads.
            .channelOption(.receivePacketInfo, value: Self.isOnAll(address.host))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Demultiplexer(self)) }
            }
        let channel: any Channel
        do {
            channel = try await bootstrap.bind(host: address.host, port: address.port).get()
        } catch {
            throw ListenError(scheme: "webrtc", address: address, cause: error)
        }
        let isIPv6 = channel.localAddress?.protocol == .inet6
        let sender = try await channel.eventLoop.submit {
            try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
                try DatagramSender(copying: $0, isIPv6: isIPv6)
            }
        }.get()
        guard let sender else { throw ChannelError.operationUnsupported }
        self.bound.withLock { $0 = (channel, sender) }
        return HostPort(host: address.host, port: channel.localAddress?.port ?? address.port)
    }

    private static func isOnAll(_ host: String) -> Bool { (IPText.v4(host) ?? IPText.v6(host))?.allSatisfy { $0 == 0 } == true }

    /// Runs until the group shuts down gracefully.
    package func run() async throws {
        try? await gracefulShutdown()
        let bound = self.bound.withLock { $0 }
        try? await bound?.channel.close()
    }

    // MARK: Viewers

    func add(_ inbox: WebRTCViewer.Inbox, user: String) { self.rows.withLock { $0.byUser[user] = inbox } }

    /// What comes from this address is the viewer's from now on.
    func add(_ inbox: WebRTCViewer.Inbox, address: DatagramAddress) { self.rows.withLock { $0.byAddress[address] = inbox } }

    func remove(_ inbox: WebRTCViewer.Inbox, address: DatagramAddress) {
        self.rows.withLock { rows in if rows.byAddress[address] === inbox { rows.byAddress[address] = nil } }
    }

    func remove(_ inbox: WebRTCViewer.Inbox, user: String) {
        self.rows.withLock { rows in if rows.byUser[user] === inbox { rows.byUser[user] = nil } }
    }

    private func inbox(of bytes: ByteBuffer, from address: DatagramAddress) -> WebRTCViewer.Inbox? {
        guard let first = bytes.getInteger(at: bytes.readerIndex, as: UInt8.self) else { return nil }
        // An answer to a check of ours names nobody. Whether a message is right is checked on the viewer's loop.
        guard STUNMessage.isMessage(first), let user = bytes.withUnsafeReadableBytes({ STUNMessage.addressee(of: $0) }) else {
            return self.rows.withLock { $0.byAddress[address] }
        }
        return self.rows.withLock { $0.byUser[user] }
    }

    private final class Demultiplexer: ChannelInboundHandler, Sendable {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>

        private let port: WebRTCPort

        init(_ port: WebRTCPort) { self.port = port }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let envelope = self.unwrapInboundIn(data)
            guard let address = DatagramAddress(envelope.remoteAddress), let inbox = self.port.inbox(of: envelope.data, from: address),
                inbox.give(
                    envelope.data, from: address, at: envelope.metadata?.packetInfo.flatMap { DatagramAddress($0.destinationAddress) })
            else {
                self.port.strangers.add(1, ordering: .relaxed)
                return
            }
        }

        // A port unreachable somewhere is no matter of the port's.
        func errorCaught(context: ChannelHandlerContext, error: any Error) {}
    }
}
