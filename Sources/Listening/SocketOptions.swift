import LibC
package import NIOCore

/// Linux's TCP options that NIO does not name, for all listeners and connections.
extension NIOBSDSocket.Option {
    /// `TCP_USER_TIMEOUT` (RFC 5482): milliseconds that sent data may stay unacknowledged before the kernel gives the peer up.
    package static let tcpUserTimeout = Self(rawValue: LinuxSocket.userTimeout)
    /// `TCP_QUICKACK` (tcp(7)): acknowledges received data now.
    package static let tcpQuickAcknowledgement = Self(rawValue: LinuxSocket.quickAcknowledgement)
    /// `TCP_NOTSENT_LOWAT`. Without it the kernel buffers up to 4 MB before the server notices that a client has stopped reading.
    package static let tcpNotSentLowWater = Self(rawValue: LinuxSocket.notSentLowWater)
}

/// Option values for sockets of viewers, in any protocol.
package enum ViewerSocket {
    /// For `TCP_USER_TIMEOUT`, in milliseconds.
    package static let timeoutMs = 15_000
    /// For `TCP_NOTSENT_LOWAT`, in bytes.
    package static let notSentBytes = 128 << 10
    /// The same for feeds of text.
    package static let feedNotSentBytes = 64 << 10
}
