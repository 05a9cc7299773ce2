import LibC

/// A plain TCP connection's socket, written to without going through its channel. Open while a message may be started on it. Loop-bound;
/// owned by the connection's writer, which opens and shuts it. The slots of the connection's viewers hold its descriptor.
package final class DirectLine {
    /// Negative while no message may be started. Then an earlier message or an answer is pending, or the connection is closed.
    private(set) var descriptor: CInt = -1
    private var viewers: [Viewer] = []
    private var ownBytes: UInt64 = 0

    /// Lets messages be started on this socket.
    package func open(_ descriptor: CInt) {
        guard self.descriptor != descriptor else { return }
        self.descriptor = descriptor
        for viewer in self.viewers { viewer.slot?.pointee.descriptor = descriptor }
    }

    package func shut() { self.open(-1) }

    /// Bytes that the kernel has accepted, for all viewers of the connection together.
    package var bytesWritten: UInt64 { self.viewers.reduce(self.ownBytes) { $0 &+ ($1.slot?.pointee.bytes ?? 0) } }

    func add(_ viewer: Viewer) {
        self.viewers.append(viewer)
        viewer.slot?.pointee.descriptor = self.descriptor
    }

    func remove(_ viewer: Viewer) {
        guard let index = self.viewers.firstIndex(where: { $0 === viewer }) else { return }
        self.viewers.remove(at: index)
        viewer.slot?.pointee.descriptor = -1
        self.ownBytes &+= viewer.slot?.pointee.bytes ?? 0
    }

    func count(_ bytes: Int) { self.ownBytes &+= UInt64(bytes) }

    /// Writes as much as the kernel accepts now, also to finish a started message. Returns 0 when it accepts nothing, negative when the
    /// connection is broken.
    package func send(_ vectors: UnsafeBufferPointer<IOVector>, to descriptor: CInt) -> Int {
        let sent = Self.send(vectors, to: descriptor)
        if sent > 0 { self.count(sent) }
        return sent
    }

    /// Like the instance method, without counting the bytes.
    static func send(_ vectors: UnsafeBufferPointer<IOVector>, to descriptor: CInt) -> Int {
        guard let first = vectors.first else { return 0 }
        while true {
            let sent: Int
            if vectors.count == 1 {
                // A single piece is the common case, and this call is cheaper.
                sent = systemSend(descriptor, first.iov_base, first.iov_len, self.flags)
            } else {
                var header = msghdr()
                header.msg_iov = UnsafeMutablePointer(mutating: vectors.baseAddress)
                header.msg_iovlen = numericCast(vectors.count)
                sent = sendmsg(descriptor, &header, self.flags)
            }
            if sent >= 0 { return sent }
            if errno == EAGAIN { return 0 }
            if errno != EINTR { return -1 }
        }
    }

    private static let flags = CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT)
}

/// Calls the C function `send`, which ``DirectLine``'s own methods hide.
private func systemSend(_ descriptor: CInt, _ bytes: UnsafeMutableRawPointer?, _ count: Int, _ flags: CInt) -> Int {
    send(descriptor, bytes, count, flags)
}
