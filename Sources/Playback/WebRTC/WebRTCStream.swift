import HTTPServer
import Listening
import NIOCore
import Sockets
import Support
import Synchronization
import WebRTC

/// A client's TCP connection, which stands for a path of ICE (RFC 6544): for networks that let no UDP through.
///
/// `@unchecked Sendable`: any thread sends; the rest is touched on the connection's loop only.
final class WebRTCStream: ChannelInboundHandler, DatagramStream, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The connection as an address: the peer's, and the connection's number.
    let address: DatagramAddress
    private let loop: any EventLoop
    private let port: WebRTCPort
    private let keep: () -> Void
    private var context: ChannelHandlerContext?
    private var frames = DatagramFrames()
    /// The viewer whose right check has come.
    private var inbox: WebRTCInbox?
    /// It closes once all is sent.
    private var isEnding = false
    /// Datagrams of nobody here.
    private var strangers = 0
    /// Bytes that the kernel has not taken.
    private let unsent = Atomic<Int>(0)
    /// The viewer waits for room.
    private let isAwaited = Atomic<Bool>(false)

    /// Time for a right check.
    private static let proofTime = TimeAmount.seconds(10)
    /// So many are looked for at most, in all before the proof and in one read after it.
    private static let mostStrangers = 16
    /// Time for what was sent to a viewer that has ended.
    private static let farewell = TimeAmount.seconds(2)
    /// Bytes on their way past which the viewer waits: a fifth of a second of 2 Mbit/s.
    private static let fullBytes = 48 << 10
    /// Bytes past which datagrams are lost, as they are by UDP.
    private static let mostBytes = 4 << 20

    init(_ address: DatagramAddress, _ channel: any Channel, _ port: WebRTCPort, keep: @escaping () -> Void) {
        self.address = address
        self.loop = channel.eventLoop
        self.port = port
        self.keep = keep
    }

    // MARK: In

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        self.port.add(self)
        // What is not sent soon is not worth sending: it waits here, where the viewer sees it.
        try? context.channel.syncOptions?.setOption(.tcpOption(.tcpNotSentLowWater), value: .init(Self.fullBytes / 4))
        try? context.channel.syncOptions?.setOption(.tcpOption(.tcp_nodelay), value: 1)
        try? context.channel.syncOptions?.setOption(.tcpOption(.tcpUserTimeout), value: ViewerSocket.timeoutMs)
        self.loop.assumeIsolated().scheduleTask(in: Self.proofTime) { [weak self] in
            guard let self, self.inbox == nil else { return }
            self.close()
        }
        context.read()
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.ended() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = self.unwrapInboundIn(data)
        do throws(DatagramFrames.Problem) {
            let (port, address) = (self.port, self.address)
            var strangers = self.inbox == nil ? self.strangers : 0
            let problem = bytes.withUnsafeReadableBytes { raw -> DatagramFrames.Problem? in
                do throws(DatagramFrames.Problem) {
                    try self.frames.read(raw) { datagram in
                        guard strangers < Self.mostStrangers else { return }
                        if !port.receive(ByteBuffer(bytes: datagram), from: address, at: nil) { strangers += 1 }
                    }
                    return nil
                } catch { return error }
            }
            self.strangers = strangers
            if let problem { throw problem }
        } catch {
            return self.close()
        }
        if self.inbox == nil, self.strangers >= Self.mostStrangers { self.close() }
    }

    func channelReadComplete(context: ChannelHandlerContext) { context.read() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent:
            // The viewer says goodbye by it.
            if let inbox = self.inbox { inbox.end(.serverShutdown) } else { self.close() }
        case ChannelEvent.inputClosed as ChannelEvent: self.close()
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.ended()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { self.close() }

    /// The connection is this viewer's: its right check has come by it. Any thread.
    func prove(_ inbox: WebRTCInbox) {
        self.loop.execute {
            guard self.context != nil else { return inbox.lost(self.address) }
            if let former = self.inbox, former !== inbox { former.lost(self.address) }
            self.inbox = inbox
            self.keep()
        }
    }

    /// The viewer has ended, or uses another way; what was sent goes out first. Any thread.
    func end() {
        self.loop.execute {
            self.inbox = nil
            self.isEnding = true
            guard self.unsent.load(ordering: .relaxed) > 0 else { return self.close() }
            self.loop.assumeIsolated().scheduleTask(in: Self.farewell) { [weak self] in self?.close() }
        }
    }

    private func close() { self.context?.close(promise: nil) }

    private func ended() {
        guard self.context != nil else { return }
        self.context = nil
        self.port.remove(self)
        self.inbox?.lost(self.address)
        self.inbox = nil
    }

    // MARK: Out

    /// Whether the viewer should wait; if so, it is told when there is room. Any thread.
    var isFull: Bool {
        guard self.unsent.load(ordering: .sequentiallyConsistent) >= Self.fullBytes else { return false }
        self.isAwaited.store(true, ordering: .sequentiallyConsistent)
        // It may have become less before that was seen.
        return self.unsent.load(ordering: .sequentiallyConsistent) >= Self.fullBytes
    }

    func sendRun(_ bytes: UnsafeRawBufferPointer, segment: Int) -> DatagramSender.Outcome {
        guard segment > 0, self.unsent.load(ordering: .relaxed) < Self.mostBytes else { return .full }
        var framed = ByteBuffer()
        framed.reserveCapacity(bytes.count + (bytes.count / segment + 1) * DatagramFrames.headerBytes)
        var start = 0
        while start < bytes.count {
            let end = min(start + segment, bytes.count)
            framed.writeInteger(UInt16(truncatingIfNeeded: end - start))
            framed.writeBytes(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
            start = end
        }
        let (data, count) = (framed, framed.readableBytes)
        self.unsent.add(count, ordering: .sequentiallyConsistent)
        self.port.ledger.charge(count)
        self.loop.execute {
            guard let context = self.context else { return self.sent(count) }
            context.writeAndFlush(self.wrapOutboundOut(data)).assumeIsolated().whenComplete { _ in self.sent(count) }
        }
        return .sent
    }

    private func sent(_ count: Int) {
        self.port.ledger.charge(-count)
        let left = self.unsent.subtract(count, ordering: .sequentiallyConsistent).newValue
        if self.isEnding, left == 0 { return self.close() }
        guard left < Self.fullBytes, self.isAwaited.exchange(false, ordering: .sequentiallyConsistent) else { return }
        self.inbox?.call { $0.hasRoom() }
    }
}
