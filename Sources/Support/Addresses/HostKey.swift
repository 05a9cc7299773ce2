package import NIOCore

/// Identifies a host for throttles and limits. Pure; any thread.
package enum HostKey {
    /// The host's IPv4 address, or its /64 of IPv6: a host has that many addresses to itself.
    package static func of(_ remote: SocketAddress?) -> String {
        switch remote {
        case .v6?:
            remote?.ipAddress.flatMap(IPText.v6)?.prefix(8).map { String($0, radix: 16) }.joined(separator: ":") ?? "v6"
        case let remote?: remote.ipAddress ?? "unix"
        case nil: "none"
        }
    }
}
