import NIOCore
import Relay

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What a ``SocketWriter`` tells the connection that owns it.
protocol SocketWriterOwner: AnyObject {
    /// A message may be started again.
    func writerBecameReady()
    func writeFailed()
    /// More answers wait for the peer than it may leave unread.
    func writerOverflowed()
}

/// Writes one connection's bytes, by one of two paths. Loop-bound; owned by its connection.
///
/// Plain TCP: straight to the descriptor, without a queue; what the kernel does not take of a started message goes through the channel in
/// small pieces, whose completion says that there is room again. TLS: everything through the channel, while it is writable.
/// Control messages always go through the channel, and start at a message boundary.
final class SocketWriter {
    private unowned let owner: any SocketWriterOwner
    private var context: ChannelHandlerContext?
    /// The socket; `nil` for TLS and once the channel is inactive (the number may be reused from then on).
    private var descriptor: CInt?
    /// The pump's way to the socket, open exactly while ``isReady`` holds: whatever that depends on calls ``settle()``. `nil` for TLS.
    let line: DirectLine?
    private var isDirect: Bool { self.line != nil }
    /// Writes given to the channel on the direct path that it has not completed.
    private var inFlight = 0 {
        didSet { self.settle() }
    }
    private var rest: Rest? {
        didSet { self.settle() }
    }
    /// Control bytes of the current turn, and those that wait for the end of a started message.
    private var control = ByteBuffer()
    /// Control bytes that the channel was given and has not written.
    private var controlInFlight = 0
    private var isBroken = false
    /// The connection is being closed: no message is started any more.
    var isEnding = false {
        didSet { self.settle() }
    }
    /// What follows the last byte, if anything.
    private var whenSent: (() -> Void)?
    private var bytesThroughChannel: UInt64 = 0
    var bytesWritten: UInt64 { self.bytesThroughChannel &+ (self.line?.bytesWritten ?? 0) }

    /// What is left of a message that was cut.
    private struct Rest {
        /// Bytes that replace the message's own first header; empty otherwise.
        var header: [UInt8]
        let message: EncodedMessage
        /// Bytes already written, of header and body together.
        var offset: Int
    }

    /// Given to the channel when the kernel is full: enough to be told when there is room, small enough to cost nothing per slow viewer.
    private static let directPiece = 2 << 10
    private static let channelPiece = 64 << 10
    /// Bytes of answers that may wait for one peer: it asks for them as often as it likes, and need not read them.
    private static let controlLimit = 256 << 10

    init(owner: any SocketWriterOwner, context: ChannelHandlerContext, descriptor: CInt?) {
        self.owner = owner
        self.context = context
        self.descriptor = descriptor
        self.line = descriptor == nil ? nil : DirectLine()
        self.settle()
    }

    /// Opens the line or shuts it.
    private func settle() {
        guard let line = self.line else { return }
        if let descriptor = self.descriptor, self.isReady { line.open(descriptor) } else { line.shut() }
    }

    /// The channel is inactive: nothing may touch the descriptor any more.
    func invalidate() {
        self.descriptor = nil
        self.context = nil
        self.control = ByteBuffer()
        self.rest = nil
        self.whenSent = nil
        self.settle()
    }

    var isReady: Bool {
        guard let context = self.context, !self.isBroken, !self.isEnding, self.rest == nil, self.control.readableBytes == 0 else {
            return false
        }
        return self.isDirect ? self.inFlight == 0 : context.channel.isWritable
    }

    // MARK: Media

    /// Starts at a message boundary; only while ``isReady``. Returns the bytes taken.
    func write(_ vectors: UnsafeBufferPointer<IOVector>, bytes: Int) -> Int {
        if self.isDirect { return self.sendNow(vectors) }
        let taken = self.writeToChannel(vectors, bytes: min(bytes, Self.channelPiece))
        self.bytesThroughChannel &+= UInt64(taken)
        return taken
    }

    func finish(_ message: EncodedMessage, header: UnsafeRawBufferPointer, from offset: Int) {
        self.rest = Rest(header: Array(header), message: message, offset: offset)
        if self.isDirect { self.writePiece(Self.directPiece) } else { self.writeRestWhileWritable() }
    }

    /// TLS: writability may have come and gone within the last write, and no event tells of it afterwards.
    private func writeRestWhileWritable() {
        while self.rest != nil, self.context?.channel.isWritable == true { self.writePiece(Self.channelPiece) }
    }

    /// Only what the kernel takes now; 0 when it takes nothing.
    private func sendNow(_ vectors: UnsafeBufferPointer<IOVector>) -> Int {
        guard let line = self.line, let descriptor = self.descriptor else { return 0 }
        let sent = line.send(vectors, to: descriptor)
        guard sent < 0 else { return sent }
        self.fail { $0.writeFailed() }
        return 0
    }

    private func writeToChannel(_ vectors: UnsafeBufferPointer<IOVector>, bytes: Int) -> Int {
        guard let context = self.context else { return 0 }
        var buffer = context.channel.allocator.buffer(capacity: bytes)
        for vector in vectors where buffer.readableBytes < bytes {
            let count = min(vector.iov_len, bytes - buffer.readableBytes)
            buffer.writeBytes(UnsafeRawBufferPointer(start: vector.iov_base, count: count))
        }
        let count = buffer.readableBytes
        context.writeAndFlush(NIOAny(buffer), promise: nil)
        return count
    }

    // MARK: Control

    /// Adds bytes of whole control messages; they leave at the next ``flush()``.
    func writeControl(_ body: (inout ByteBuffer) -> Void) {
        guard !self.isBroken else { return }
        body(&self.control)
        self.settle()
        guard self.control.readableBytes + self.controlInFlight > Self.controlLimit else { return }
        self.fail { $0.writerOverflowed() }
    }

    /// Sends the control bytes, unless a started message must be finished first.
    func flush() {
        guard let context = self.context, self.control.readableBytes > 0, self.rest == nil else { return }
        let bytes = self.control
        let count = bytes.readableBytes
        self.control = ByteBuffer()
        self.bytesThroughChannel &+= UInt64(count)
        self.controlInFlight += count
        self.inFlight += 1
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { result in
            self.controlInFlight -= count
            self.wrote(result)
        }
        context.writeAndFlush(NIOAny(bytes), promise: promise)
    }

    /// What others have given the channel leaves before the first message: to be called while it may still be waiting there.
    func waitForChannel() {
        // Over TLS the messages go the same way.
        if self.isDirect { self.writeThroughChannel(ByteBuffer()) }
    }

    private func writeThroughChannel(_ bytes: ByteBuffer) {
        guard let context = self.context else { return }
        self.inFlight += 1
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { self.wrote($0) }
        context.writeAndFlush(NIOAny(bytes), promise: promise)
    }

    private func wrote(_ result: Result<Void, any Error>) {
        // The channel has closed its socket, and tells its handlers after this: the descriptor may be another connection's soon.
        if case .failure = result { self.isBroken = true }
        self.inFlight -= 1
        // Over TLS the channel says by its writability that there is room.
        if self.isDirect, case .success = result { self.proceed() }
    }

    // MARK: Going on

    /// The channel has room again (TLS), or has written what it was given (plain TCP).
    func proceed() {
        guard self.context != nil, !self.isBroken, !self.isDirect || self.inFlight == 0 else { return }
        if self.rest != nil {
            if self.isDirect {
                self.sendRest()
                if self.rest != nil { return self.writePiece(Self.directPiece) }
            } else {
                self.writeRestWhileWritable()
                if self.rest != nil { return }
            }
        }
        if self.control.readableBytes > 0 {
            self.flush()
            // On the direct path the flush's completion comes here again.
            if self.isDirect { return }
        }
        self.endIfSent()
        if self.isReady { self.owner.writerBecameReady() }
    }

    /// Runs `body`, once, when a started message and all answers are out. Not at all when the channel becomes inactive before.
    func whenSent(_ body: @escaping () -> Void) {
        self.whenSent = body
        self.flush()
        self.endIfSent()
    }

    private func endIfSent() {
        guard let context = self.context, let body = self.whenSent else { return }
        guard self.isBroken || self.rest == nil && self.control.readableBytes == 0 else { return }
        self.whenSent = nil
        // An empty write completes behind all that the channel was given before.
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in body() }
        context.writeAndFlush(NIOAny(ByteBuffer()), promise: promise)
    }

    private func sendRest() {
        guard var rest = self.rest, let start = rest.message.start else { return }
        rest.header.withUnsafeMutableBytes { header in
            var vectors = (IOVector(), IOVector())
            let bodyOffset = max(rest.offset, header.count)
            let headerOffset = min(rest.offset, header.count)
            vectors.0 = IOVector(iov_base: header.baseAddress.map { $0 + headerOffset }, iov_len: header.count - headerOffset)
            vectors.1 = IOVector(
                iov_base: UnsafeMutableRawPointer(mutating: start + bodyOffset), iov_len: rest.message.length - bodyOffset)
            rest.offset += withUnsafeBytes(of: &vectors) { self.sendNow($0.bindMemory(to: IOVector.self)) }
        }
        self.rest = rest.offset < rest.message.length ? rest : nil
    }

    private func writePiece(_ limit: Int) {
        guard let context = self.context, var rest = self.rest, let start = rest.message.start else { return }
        let count = min(limit, rest.message.length - rest.offset)
        var piece = context.channel.allocator.buffer(capacity: count)
        let fromHeader = max(0, min(rest.header.count - rest.offset, count))
        piece.writeBytes(rest.header[min(rest.offset, rest.header.count)...].prefix(fromHeader))
        piece.writeBytes(UnsafeRawBufferPointer(start: start + rest.offset + fromHeader, count: count - fromHeader))
        rest.offset += count
        self.bytesThroughChannel &+= UInt64(count)
        self.rest = rest.offset < rest.message.length ? rest : nil
        if self.isDirect {
            self.writeThroughChannel(piece)
        } else {
            context.writeAndFlush(NIOAny(piece), promise: nil)
        }
    }

    /// Nothing more can be written. Closing here would run into the caller's loop over viewers, so it happens on the next turn.
    private func fail(_ tell: @escaping (any SocketWriterOwner) -> Void) {
        guard !self.isBroken, let context = self.context else { return }
        self.isBroken = true
        self.settle()
        context.eventLoop.assumeIsolated().execute { tell(self.owner) }
    }

    // MARK: Socket

    /// Bytes that the kernel has and has not sent; 0 when that cannot be told.
    func unsentBytes() -> Int {
        guard let descriptor = self.descriptor else { return 0 }
        var count: CInt = 0
        return ioctl(descriptor, UInt(Self.SIOCOUTQNSD), &count) == 0 ? Int(count) : 0
    }

    func setLowWater(_ bytes: Int) {
        guard let descriptor = self.descriptor else { return }
        var value = CInt(clamping: bytes)
        // Advisory: where the kernel does not know the option, only the bound on what it queues is looser.
        _ = setsockopt(descriptor, CInt(IPPROTO_TCP), Self.TCP_NOTSENT_LOWAT, &value, socklen_t(MemoryLayout<CInt>.size))
    }

    /// linux/sockios.h and linux/tcp.h; the libc headers do not carry them into Swift.
    private static let SIOCOUTQNSD = 0x894B
    private static let TCP_NOTSENT_LOWAT: CInt = 25
}
