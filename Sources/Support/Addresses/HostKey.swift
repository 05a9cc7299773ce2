package import NIOCore

/// Identifies a host for throttles and limits. Pure; any thread.
package enum HostKey {
    /// The host's IPv4 address, or its /64 of IPv6: a host has that many addresses to itself. On a listener for both kinds IPv4 clients have
    /// IPv4-mapped addresses (RFC 4291 §2.5.5.2), which all share one /64.
    package static func of(_ remote: SocketAddress?) -> String {
        switch remote {
        case .v6?:
            guard let bytes = remote?.ipAddress.flatMap(IPText.v6) else { return "v6" }
            if let address = CIDR.unmapped(bytes) { return IPText.text(address) }
            return bytes.prefix(8).map { String($0, radix: 16) }.joined(separator: ":")
        case let remote?: return remote.ipAddress ?? "unix"
        case nil: return "none"
        }
    }
}
