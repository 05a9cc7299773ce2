import NIOCore

/// An address as log lines show it.
extension SocketAddress {
    /// "192.0.2.1:4711", "[2001:db8::1]:4711".
    var hostAndPort: String {
        guard let host = self.ipAddress, let port = self.port else { return "unknown" }
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}

extension IOError {
    /// A short description of the common socket errors, by the numbers of Linux's errno.h.
    var words: String {
        switch self.errnoCode {
        case 104: "reset by the client"
        case 32: "closed by the client while being written to"
        case 110: "the client's network no longer answers"
        default: self.description
        }
    }
}
