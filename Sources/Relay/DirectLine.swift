#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The short way to a plain TCP viewer: its socket, while a message may be started on it. What the pump needs of a connection per message,
/// in one place that fits a cache line. Loop-bound; owned by the connection's writer, which opens and shuts it.
package final class DirectLine {
    /// The socket; negative while nothing may be started: something of an earlier message or an answer waits, or the connection is closed.
    package fileprivate(set) var descriptor: CInt = -1
    package private(set) var bytesWritten: UInt64 = 0

    package init() {}

    package func open(_ descriptor: CInt) { self.descriptor = descriptor }
    package func shut() { self.descriptor = -1 }

    /// Writes what the kernel takes now. 0 when it takes nothing, negative with `errno` set when the connection is broken.
    package func send(_ vectors: UnsafeBufferPointer<IOVector>) -> Int {
        guard let first = vectors.first else { return 0 }
        while true {
            let sent: Int
            if vectors.count == 1 {
                // One piece is the common case, and the cheaper call.
                sent = systemSend(self.descriptor, first.iov_base, first.iov_len, Self.flags)
            } else {
                var header = msghdr()
                header.msg_iov = UnsafeMutablePointer(mutating: vectors.baseAddress)
                header.msg_iovlen = numericCast(vectors.count)
                sent = sendmsg(self.descriptor, &header, Self.flags)
            }
            if sent > 0 {
                self.bytesWritten &+= UInt64(sent)
                return sent
            }
            if sent == 0 || errno == EAGAIN { return 0 }
            if errno != EINTR { return -1 }
        }
    }

    private static let flags = CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT)
}

/// `send` within a method named `send`.
private func systemSend(_ descriptor: CInt, _ bytes: UnsafeMutableRawPointer?, _ count: Int, _ flags: CInt) -> Int {
    send(descriptor, bytes, count, flags)
}
