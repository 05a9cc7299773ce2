import NIOCore

/// An address as log lines show it.
extension SocketAddress {
    /// With its port, unless that is not known.
    package var shown: String { self.port == 0 ? self.ipAddress ?? "unknown" : self.hostAndPort }

    /// "192.0.2.1:4711", "[2001:db8::1]:4711".
    package var hostAndPort: String {
        guard let host = self.ipAddress, let port = self.port else { return "unknown" }
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
