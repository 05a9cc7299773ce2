import NIOCore

/// An address as log lines show it.
extension SocketAddress {
    /// "192.0.2.1:4711", "[2001:db8::1]:4711".
    package var hostAndPort: String {
        guard let host = self.ipAddress, let port = self.port else { return "unknown" }
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
