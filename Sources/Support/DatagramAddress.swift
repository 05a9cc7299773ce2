/// Where a datagram came from or goes to: an IPv4 or IPv6 address, and a port. A value without references, for tables with a look-up a datagram.
package struct DatagramAddress: Sendable, Hashable {
    /// The 16 bytes of an IPv6 address in network order, in two halves; IPv4 as ::ffff:a.b.c.d (RFC 4291 §2.5.5.2).
    package let high: UInt64
    package let low: UInt64
    package let port: UInt16
    /// The interface of a link-local address; otherwise 0.
    package let scope: UInt32
    /// The number of the TCP connection by which datagrams come and go; 0: UDP.
    package let connection: UInt32

    private static let mapped: UInt64 = 0xFFFF

    package init(high: UInt64, low: UInt64, port: UInt16, scope: UInt32 = 0, connection: UInt32 = 0) {
        self.high = high
        self.low = low
        self.port = port
        self.scope = scope
        self.connection = connection
    }

    /// The same address, by a TCP connection.
    package func by(_ connection: UInt32) -> DatagramAddress {
        DatagramAddress(high: self.high, low: self.low, port: self.port, scope: self.scope, connection: connection)
    }

    package init(ipv4 address: UInt32, port: UInt16) {
        self.init(high: 0, low: Self.mapped << 32 | UInt64(address), port: port)
    }

    package var isIPv4: Bool { self.high == 0 && self.low >> 32 == Self.mapped }
    package var ipv4: UInt32 { UInt32(truncatingIfNeeded: self.low) }

    /// 4 or 16 bytes in network order.
    package var bytes: [UInt8] {
        if self.isIPv4 { return (0..<4).map { UInt8(truncatingIfNeeded: self.low >> (24 - 8 * UInt64($0))) } }
        return (0..<16).map { index in
            let half = index < 8 ? self.high : self.low
            return UInt8(truncatingIfNeeded: half >> (56 - 8 * UInt64(index & 7)))
        }
    }
}
