package import NIOCore

/// Identifies a host for throttles and limits: the one thing that counts by address. A value.
///
/// A type of its own, so that code that counts cannot be given an address as text: a host with a /64 of IPv6 would have no limit.
package struct HostKey: Hashable, Sendable, CustomStringConvertible {
    private enum Kind: Hashable {
        case v4(UInt32)
        /// The /64.
        case v6(UInt64)
        case unixSocket
        case unknown
    }

    private let kind: Kind

    /// The host's IPv4 address, or its /64 of IPv6: a host has that many addresses to itself. On a listener for both kinds IPv4 clients have
    /// IPv4-mapped addresses (RFC 4291 §2.5.5.2), which all share one /64. Clients whose address is unknown are one host.
    package static func of(_ remote: SocketAddress?) -> HostKey {
        guard let remote else { return HostKey(kind: .unknown) }
        let bytes = remote.ipBytes
        switch bytes.count {
        case 4: return HostKey(kind: .v4(UInt32(truncatingIfNeeded: Self.number(bytes[...]))))
        case 16:
            if let address = CIDR.unmapped(bytes) { return HostKey(kind: .v4(UInt32(truncatingIfNeeded: Self.number(address[...])))) }
            return HostKey(kind: .v6(Self.number(bytes[..<8])))
        default: return HostKey(kind: .unixSocket)
        }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

    private static func bytes(_ number: UInt64, _ count: Int) -> [UInt8] {
        (1...count).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * (count - $0))) }
    }

    /// For the log.
    package var description: String {
        switch self.kind {
        case .v4(let address): IPText.text(Self.bytes(UInt64(address), 4))
        case .v6(let network): "\(IPText.text(Self.bytes(network, 8) + [UInt8](repeating: 0, count: 8)))/64"
        case .unixSocket: "unix"
        case .unknown: "unknown"
        }
    }
}
