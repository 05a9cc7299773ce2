import NIOCore

/// How connections and their ends are put in the log.
extension SocketAddress {
    /// "192.0.2.1:4711", "[2001:db8::1]:4711".
    var hostAndPort: String {
        guard let host = self.ipAddress, let port = self.port else { return "unknown" }
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}

extension IOError {
    /// The common ends of a connection in words; errno.h of Linux.
    var words: String {
        switch self.errnoCode {
        case 104: "reset by the client"
        case 32: "closed by the client while being written to"
        case 110: "the client's network no longer answers"
        default: self.description
        }
    }
}
