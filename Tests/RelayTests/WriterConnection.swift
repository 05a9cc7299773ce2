import LibC
import NIOCore
import Sockets
import Testing

@testable import Relay

/// A viewer's connection as in the server: a NIO channel over a real socket. It uses the server's own ``SocketWriter``, to which this
/// folder links.
///
/// `@unchecked Sendable`: touched on its loop only.
final class WriterConnection: ChannelInboundHandler, SocketWriterOwner, ClosingConnection, ViewerSink, @unchecked Sendable {
    typealias InboundIn = ByteBuffer

    private let loop: RelayLoop
    /// Whether writes bypass the channel where possible, as over plain TCP. Otherwise they go through it, as over TLS.
    private let isDirect: Bool
    /// Runs before the writer exists.
    private let begin: @Sendable (ChannelHandlerContext) -> Void
    private(set) var context: ChannelHandlerContext?
    private(set) var writer: SocketWriter?
    private var viewers: [Viewer] = []
    /// Runs when the peer has sent something.
    var onRead: (() -> Void)?
    /// Messages that were accepted only in part.
    private(set) var cuts = 0
    /// Whether a message could still have been started after the channel closed the socket.
    private(set) var endedWithOpenLine = false

    init(_ loop: RelayLoop, isDirect: Bool, begin: @escaping @Sendable (ChannelHandlerContext) -> Void) {
        self.loop = loop
        self.isDirect = isDirect
        self.begin = begin
    }

    /// Opens a connection. The kernel buffers about `kernelBytes` that the peer does not read.
    static func open(
        on loop: RelayLoop, isDirect: Bool, kernelBytes: CInt = 4 << 10,
        begin: @escaping @Sendable (ChannelHandlerContext) -> Void = { _ in }
    ) throws -> (WriterConnection, Peer) {
        var ends: [CInt] = [0, 0]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        var bytes = kernelBytes
        _ = setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<CInt>.size))
        let peer = Peer(ends[1])
        let connection = WriterConnection(loop, isDirect: isDirect, begin: begin)
        let sockets = try #require(loop.eventLoop as? SocketLoop)
        SocketChannel(ends[0], on: sockets).start { channel in
            channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(connection) }
        }
        try RelayHarness.wait(for: sockets.submit {})
        return (connection, peer)
    }

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        self.begin(context)
        var descriptor: CInt?
        if self.isDirect {
            descriptor = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
            #expect(descriptor != nil)
        }
        self.writer = SocketWriter(owner: self, context: context, descriptor: descriptor)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { self.onRead?() }

    func channelInactive(context: ChannelHandlerContext) {
        self.endedWithOpenLine = (self.line?.descriptor ?? -1) >= 0
        self.writer?.invalidate()
        self.stop()
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if !self.isDirect, context.channel.isWritable { self.writer?.proceed() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    // MARK: Test

    func play(_ stream: Relay.Stream, streamID: UInt32 = 1) {
        let viewer = Viewer(stream: stream, streamID: streamID, sink: self, nowMs: self.loop.nowMs)
        self.viewers.append(viewer)
        #expect(stream.enterViewer(limit: .max))
        self.loop.attach(viewer)
    }

    func stop() {
        for viewer in self.viewers {
            self.loop.detach(viewer)
            viewer.stream.leaveViewer()
        }
        self.viewers = []
    }

    /// Sends an answer, which must be whole messages.
    func say(_ bytes: ByteBuffer) {
        self.writer?.writeControl { $0.writeImmutableBuffer(bytes) }
        self.writer?.flush()
    }

    // MARK: SocketWriterOwner

    func writerBecameReady() { for viewer in self.viewers { self.loop.pump(viewer) } }
    func writeFailed() { self.context?.close(promise: nil) }
    func writerOverflowed() { self.context?.close(promise: nil) }

    // MARK: ViewerSink

    var isReady: Bool { self.writer?.isReady == true }
    var line: DirectLine? { self.writer?.line }

    func write(_ vectors: UnsafeBufferPointer<IOVector>, bytes: Int) -> Int { self.writer?.write(vectors, bytes: bytes) ?? 0 }

    func finish(_ message: EncodedMessage, header: UnsafeRawBufferPointer, from offset: Int) {
        self.cuts += 1
        self.writer?.finish(message, header: header, from: offset)
    }

    func notify(_ viewer: Viewer, _ change: StreamChange) {}
    func fellTooFarBehind(_ viewer: Viewer, ms: Int64) { self.context?.close(promise: nil) }
    func shed(_ viewer: Viewer) { self.context?.close(promise: nil) }
    func unsentBytes() -> Int { self.writer?.unsentBytes() ?? 0 }
    func setLowWater(_ bytes: Int) { self.writer?.setLowWater(bytes) }
}

/// The other end of a connection. Reads only on request.
///
/// `@unchecked Sendable`: used by one test, one step at a time.
final class Peer: @unchecked Sendable {
    private let descriptor: CInt
    private var isOpen = true
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    private(set) var bytes: [UInt8] = []
    /// Whether the server has closed the connection and everything has been read.
    private(set) var hasEnded = false

    init(_ descriptor: CInt) { self.descriptor = descriptor }

    deinit {
        self.close()
        self.buffer.deallocate()
    }

    /// Closes the socket. Unread bytes make that a reset.
    func close() {
        guard self.isOpen else { return }
        self.isOpen = false
        closeDescriptor(self.descriptor)
    }

    func say(_ byte: UInt8) {
        var byte = byte
        #expect(send(self.descriptor, &byte, 1, CInt(MSG_NOSIGNAL)) == 1)
    }

    /// Reads at most `most` bytes, waiting up to `waitMs` for the first. Returns the count.
    @discardableResult
    func read(_ most: Int, waitMs: CInt = 0) -> Int {
        guard self.isOpen, !self.hasEnded else { return 0 }
        var poller = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&poller, 1, waitMs) > 0 else { return 0 }
        let count = recv(self.descriptor, self.buffer.baseAddress, min(most, self.buffer.count), CInt(MSG_DONTWAIT))
        self.hasEnded = count == 0
        guard count > 0 else { return 0 }
        self.bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: self.buffer[..<count]))
        return count
    }
}

/// Calls the C function `close`, which the class's own method hides.
private func closeDescriptor(_ descriptor: CInt) {
    #expect(close(descriptor) == 0, "closed once only")
}
