import LibC
import NIOCore

/// Connections without an event loop: opening one costs two calls of the kernel, so that a busy machine opens many at once, too.
enum PlainSocket {
    /// A connected descriptor, which the caller closes; nil if it cannot be had. Blocks until the kernel has put it into the backlog.
    static func open(_ port: Int, from address: String = "127.0.0.1") -> CInt? {
        let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        guard let own = try? SocketAddress(ipAddress: address, port: 0),
            let server = try? SocketAddress(ipAddress: "127.0.0.1", port: port),
            own.withSockAddr({ bind(descriptor, $0, socklen_t($1)) }) == 0,
            server.withSockAddr({ connect(descriptor, $0, socklen_t($1)) }) == 0
        else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    /// Whether the other side has closed it. Nothing may wait to be read.
    static func isClosed(_ descriptor: CInt) -> Bool {
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT))
        return count == 0 || (count < 0 && errno != EAGAIN)
    }
}
