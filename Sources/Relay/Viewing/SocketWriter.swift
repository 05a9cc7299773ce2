import LibC
package import NIOCore

/// The connection that owns a ``SocketWriter`` and gets its events.
package protocol SocketWriterOwner: AnyObject {
    /// The connection may start a new message again.
    func writerBecameReady()
    func writeFailed()
    /// Too many bytes of answers wait for a peer that does not read.
    func writerOverflowed()
}

/// Writes one connection's bytes, by one of two paths. Loop-bound; owned by its connection.
///
/// Plain TCP: writes directly to the descriptor, without a queue. The rest of a started message that the kernel does not accept goes through the
/// channel in small pieces, whose completion signals room. TLS: everything goes through the channel, while it is writable. Control messages always go
/// through the channel, and start at a message boundary.
package final class SocketWriter {
    private unowned let owner: any SocketWriterOwner
    @exclusivity(unchecked) private var context: ChannelHandlerContext?
    /// The socket; `nil` for TLS and once the channel is inactive (the number may be reused from then on).
    private var descriptor: CInt?
    /// The pump's direct path to the socket; `nil` for TLS. Open exactly while ``isReady`` holds, so every change to that calls
    /// ``settle()``.
    package let line: DirectLine?
    private var isDirect: Bool { self.line != nil }
    /// Writes given to the channel on the direct path and not completed yet.
    private var inFlight = 0 {
        didSet { self.settle() }
    }
    private var rest: Rest? {
        didSet { self.settle() }
    }
    /// Control bytes of the current turn, or waiting for a started message to end.
    @exclusivity(unchecked) private var control = ByteBuffer()
    /// Control bytes given to the channel and not written yet.
    private var controlInFlight = 0
    private var isBroken = false
    /// The connection is closing and starts no further message.
    package var isEnding = false {
        didSet { self.settle() }
    }
    /// Runs after the last byte, if set.
    private var whenSent: (() -> Void)?
    private var bytesThroughChannel: UInt64 = 0
    package var bytesWritten: UInt64 { self.bytesThroughChannel &+ (self.line?.bytesWritten ?? 0) }

    /// The rest of a partly written message.
    private struct Rest {
        /// Bytes that replace the message's own first header; empty otherwise.
        var header: [UInt8]
        let message: EncodedMessage
        /// Bytes already written, of header and body together.
        var offset: Int
    }

    /// Size of a piece for the channel when the kernel is full. Its completion signals room, so it must not be too small; each slow viewer holds one,
    /// so it must not be large.
    private static let directPiece = 2 << 10
    private static let channelPiece = 64 << 10
    /// Bytes of answers that may wait for one peer. A peer can request any number of answers without reading them.
    private static let controlLimit = 256 << 10

    package init(owner: any SocketWriterOwner, context: ChannelHandlerContext, descriptor: CInt?) {
        self.owner = owner
        self.context = context
        self.descriptor = descriptor
        self.line = descriptor == nil ? nil : DirectLine()
        self.settle()
    }

    /// Opens or shuts the line.
    private func settle() {
        guard let line = self.line else { return }
        if let descriptor = self.descriptor, self.isReady { line.open(descriptor) } else { line.shut() }
    }

    /// Drops the descriptor, which nothing may touch once the channel is inactive.
    package func invalidate() {
        self.descriptor = nil
        self.context = nil
        self.control = ByteBuffer()
        self.rest = nil
        self.whenSent = nil
        self.settle()
    }

    package var isReady: Bool {
        guard let context = self.context, !self.isBroken, !self.isEnding, self.rest == nil, self.control.readableBytes == 0 else {
            return false
        }
        return self.isDirect ? self.inFlight == 0 : context.channel.isWritable
    }

    // MARK: Media

    /// Writes from a message boundary on, and returns the bytes accepted. Only while ``isReady``.
    package func write(_ vectors: UnsafeBufferPointer<IOVector>, bytes: Int) -> Int {
        if self.isDirect { return self.sendNow(vectors) }
        let taken = self.writeToChannel(vectors, bytes: min(bytes, Self.channelPiece))
        self.bytesThroughChannel &+= UInt64(taken)
        return taken
    }

    package func finish(_ message: EncodedMessage, header: UnsafeRawBufferPointer, from offset: Int) {
        self.rest = Rest(header: Array(header), message: message, offset: offset)
        if self.isDirect { self.writePiece(Self.directPiece) } else { self.writeRestWhileWritable() }
    }

    /// Writes the rest over TLS. The last write may have changed writability there and back, which no later event reports.
    private func writeRestWhileWritable() {
        while self.rest != nil, self.context?.channel.isWritable == true { self.writePiece(Self.channelPiece) }
    }

    /// Sends only what the kernel accepts now; returns 0 if that is nothing.
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
    package func writeControl(_ body: (inout ByteBuffer) -> Void) {
        guard !self.isBroken else { return }
        body(&self.control)
        self.settle()
        guard self.control.readableBytes + self.controlInFlight > Self.controlLimit else { return }
        self.fail { $0.writerOverflowed() }
    }

    /// Sends the control bytes, unless a started message must be finished first.
    package func flush() {
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

    /// Holds the first message until the channel has sent its present output. Call it while something may still be waiting there.
    package func waitForChannel() {
        // Over TLS, messages go through the channel too.
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
        // The channel has closed its socket but informs its handlers later; the descriptor may soon be another connection's.
        if case .failure = result { self.isBroken = true }
        self.inFlight -= 1
        // Media that waited behind the answers goes on; without this, over TLS only the next frame would bring it.
        if case .success = result { self.proceed() }
    }

    // MARK: Resuming

    /// Resumes once the channel has room (TLS), or has written everything (plain TCP).
    package func proceed() {
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
            // On the direct path, the flush's completion calls this again.
            if self.isDirect { return }
        }
        self.endIfSent()
        if self.isReady { self.owner.writerBecameReady() }
    }

    /// Runs `body` once, after a started message and all answers have been sent. Never runs if the channel becomes inactive before.
    func whenSent(_ body: @escaping () -> Void) {
        self.whenSent = body
        self.flush()
        self.endIfSent()
    }

    private func endIfSent() {
        guard let context = self.context, let body = self.whenSent else { return }
        guard self.isBroken || self.rest == nil && self.control.readableBytes == 0 else { return }
        self.whenSent = nil
        // An empty write completes after everything that the channel was given before.
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

    /// Stops all writing and notifies the owner on the next turn. Closing here would interfere with the caller's loop over viewers.
    private func fail(_ notify: @escaping (any SocketWriterOwner) -> Void) {
        guard !self.isBroken, let context = self.context else { return }
        self.isBroken = true
        self.settle()
        context.eventLoop.assumeIsolated().execute { notify(self.owner) }
    }

    // MARK: Socket

    /// Bytes that the kernel has not sent yet; 0 if unknown.
    package func unsentBytes() -> Int {
        guard let descriptor = self.descriptor else { return 0 }
        var count: CInt = 0
        return ioctl(descriptor, LinuxSocket.unsentBytes, &count) == 0 ? Int(count) : 0
    }

    package func setLowWater(_ bytes: Int) {
        guard let descriptor = self.descriptor else { return }
        // Without the option, the kernel only queues more.
        setSocketOption(descriptor, CInt(IPPROTO_TCP), LinuxSocket.notSentLowWater, CInt(clamping: bytes))
    }
}
