import HTTPServer
package import Listening
import Logging
package import NIOCore
import NIOPosix
import ServiceLifecycle
import Sockets
package import Support
import Synchronization
import WebRTC

/// The UDP port of all WebRTC viewers, and their TCP connections. Gives each datagram to the viewer that it is for, on that viewer's loop. A service of the
/// server's group.
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
    /// Whether clients may come by TCP, at the same port number.
    private let streams = Atomic<Bool>(false)
    private let listener = Mutex<(any Channel)?>(nil)
    let ledger: MemoryLedger

    private struct Rows {
        var byUser: [String: WebRTCInbox] = [:]
        var byAddress: [DatagramAddress: WebRTCInbox] = [:]
        /// TCP connections by their numbers.
        var streams: [UInt32: WebRTCStream] = [:]
        var lastStream: UInt32 = 0
    }

    /// Bytes of the kernel's buffers: bursts of joiners go out, and checks of thousands of viewers come in.
    private static let bufferBytes = 4 << 20
    /// Longest datagram that a viewer's client sends.
    private static let longest = DatagramFrames.longest

    init(_ address: HostPort, _ ledger: MemoryLedger, log: Logger) {
        self.ledger = ledger
        self.address = Mutex(address)
        self.log = log
    }

    /// Datagrams of nobody here.
    package var dropped: UInt64 { self.strangers.load(ordering: .relaxed) }
    /// Datagrams that the kernel did not take.
    package var lost: UInt64 { self.unsent.load(ordering: .relaxed) }
    func count(lost: Int) { if lost > 0 { self.unsent.add(UInt64(lost), ordering: .relaxed) } }

    /// Viewers' TCP connections, those that have not shown whose they are too.
    package var connections: Int { self.rows.withLock { $0.streams.count } }
    package var acceptsStreams: Bool { self.streams.load(ordering: .relaxed) }
    /// Clients may come by TCP from now on: HTTP listens at the port's number, or this listener of the port's own.
    package func acceptStreams(of listener: (any Channel)? = nil) {
        self.listener.withLock { $0 = listener }
        self.streams.store(true, ordering: .relaxed)
    }

    /// Sends to viewers; nil until the port is bound.
    var sender: DatagramSender? { self.bound.withLock { $0?.sender } }
    /// The port's number; nil until it is bound.
    var port: Int? { self.bound.withLock { $0?.channel.localAddress?.port } }
    var host: String { self.address.withLock { $0.host } }

    /// Binds the port. Returns the address in use. Throws ``ListenError``.
    package func bind(to address: HostPort, _ sockets: ListeningSockets) async throws -> HostPort {
        self.address.withLock { $0 = address }
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
        let channel = try await sockets.open("webrtc", at: address, bootstrap)
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
        self.streams.store(false, ordering: .relaxed)
        let bound = self.bound.withLock { $0 }
        try? await self.listener.withLock { $0 }?.close()
        try? await bound?.channel.close()
    }

    // MARK: Viewers

    func add(_ inbox: WebRTCInbox, user: String) { self.rows.withLock { $0.byUser[user] = inbox } }

    /// What comes from this address is the viewer's from now on.
    func add(_ inbox: WebRTCInbox, address: DatagramAddress) {
        let stream = self.rows.withLock { rows in
            rows.byAddress[address] = inbox
            return rows.streams[address.connection]
        }
        if let stream { stream.prove(inbox) } else if address.connection != 0 { inbox.lost(address) }
    }

    func remove(_ inbox: WebRTCInbox, address: DatagramAddress) {
        let stream = self.rows.withLock { rows -> WebRTCStream? in
            guard rows.byAddress[address] === inbox else { return nil }
            rows.byAddress[address] = nil
            return rows.streams[address.connection]
        }
        stream?.end()
    }

    func remove(_ inbox: WebRTCInbox, user: String) {
        self.rows.withLock { rows in if rows.byUser[user] === inbox { rows.byUser[user] = nil } }
    }

    private func inbox(of bytes: ByteBuffer, from address: DatagramAddress) -> WebRTCInbox? {
        guard let first = bytes.getInteger(at: bytes.readerIndex, as: UInt8.self) else { return nil }
        // An answer to a check of ours names nobody. Whether a message is right is checked on the viewer's loop.
        guard STUNMessage.isMessage(first), let user = bytes.withUnsafeReadableBytes({ STUNMessage.addressee(of: $0) }) else {
            return self.rows.withLock { $0.byAddress[address] }
        }
        return self.rows.withLock { $0.byUser[user] }
    }

    /// Gives the datagram to its viewer. `local`: where it came to, if this machine has several addresses. Returns false for one that is dropped.
    @discardableResult
    func receive(_ datagram: ByteBuffer, from address: DatagramAddress, at local: DatagramAddress?) -> Bool {
        if let inbox = self.inbox(of: datagram, from: address), inbox.give(datagram, from: address, at: local) { return true }
        self.strangers.add(1, ordering: .relaxed)
        return false
    }

    // MARK: TCP

    /// A new connection's number; unlike all others, and not 0.
    fileprivate func number() -> UInt32 {
        self.rows.withLock { rows in
            repeat { rows.lastStream &+= 1 } while rows.lastStream == 0 || rows.streams[rows.lastStream] != nil
            return rows.lastStream
        }
    }

    func add(_ stream: WebRTCStream) { self.rows.withLock { $0.streams[stream.address.connection] = stream } }
    func remove(_ stream: WebRTCStream) { self.rows.withLock { $0.streams[stream.address.connection] = nil } }

    /// The connection that stands for the address; nil for one of UDP, and for one that has gone.
    func stream(_ address: DatagramAddress) -> WebRTCStream? {
        address.connection == 0 ? nil : self.rows.withLock { $0.streams[address.connection] }
    }

    /// Sends one datagram. `local`: the address of this machine that it comes from; nil: the one that the system chooses.
    func send(_ bytes: UnsafeRawBufferPointer, to address: DatagramAddress, from local: DatagramAddress?) {
        guard address.connection == 0 else {
            _ = self.stream(address)?.sendRun(bytes, segment: bytes.count)
            return
        }
        _ = self.sender?.send(bytes, to: address, from: local)
    }

    private final class Demultiplexer: ChannelInboundHandler, Sendable {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>

        private let port: WebRTCPort

        init(_ port: WebRTCPort) { self.port = port }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let envelope = self.unwrapInboundIn(data)
            guard let address = DatagramAddress(envelope.remoteAddress) else { return }
            let local = envelope.metadata?.packetInfo.flatMap { DatagramAddress($0.destinationAddress) }
            self.port.receive(envelope.data, from: address, at: local)
        }

        // A port unreachable somewhere is no matter of the port's.
        func errorCaught(context: ChannelHandlerContext, error: any Error) {}
    }
}

extension WebRTCPort: PortNeighbor {
    package func handler(_ channel: any Channel, firstByte: UInt8, keep: @escaping () -> Void) -> (any ChannelInboundHandler)? {
        guard self.acceptsStreams, DatagramFrames.mayBegin(with: firstByte),
            let address = channel.remoteAddress.flatMap({ DatagramAddress($0) })
        else { return nil }
        return WebRTCStream(address.by(self.number()), channel, self, keep: keep)
    }
}
