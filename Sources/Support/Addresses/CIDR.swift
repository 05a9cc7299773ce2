package import NIOCore

/// A block of IP addresses, `10.0.0.0/8` or `fd00::/8`. A plain value.
///
/// The families are separate. An IPv4 block contains IPv4 addresses and their IPv4-mapped IPv6 form (RFC 4291 §2.5.5.2, which a
/// dual-stack listener reports for an IPv4 peer); an IPv6 block contains neither. So `::/0` alone admits no IPv4 peer.
package struct CIDR: Sendable, Hashable, CustomStringConvertible {
    /// 4 or 16 bytes, zero beyond the prefix.
    private let network: [UInt8]
    /// Bits.
    private let prefix: Int

    package static let expected = "a network such as 192.168.0.0/16, fd00::/8, or any"

    package static let loopback = [CIDR([127, 0, 0, 0], prefix: 8), CIDR([UInt8](repeating: 0, count: 15) + [1], prefix: 128)]
    /// The block of one address, of 4 or 16 bytes.
    package static func address(_ bytes: [UInt8]) -> CIDR { CIDR(bytes, prefix: bytes.count * 8) }
    /// Addresses that only a connection within this machine has, or none at all.
    package static let ofThisMachine =
        loopback + [CIDR([0, 0, 0, 0], prefix: 8), CIDR([UInt8](repeating: 0, count: 16), prefix: 128)]
    package static let any = [CIDR([0, 0, 0, 0], prefix: 0), CIDR([UInt8](repeating: 0, count: 16), prefix: 0)]

    private init(_ network: [UInt8], prefix: Int) {
        self.network = network
        self.prefix = prefix
    }

    /// Reads an address, with or without `/prefix`. Refuses bits beyond the prefix: they are more often a mistake than intended.
    package init(parsing text: String) throws(ValueProblem) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = parts.first.map(String.init), var bytes = IPText.v4(address) ?? IPText.v6(address) else {
            throw ValueProblem("\"\(text)\" is not a network; expected \(Self.expected)")
        }
        var prefix = bytes.count * 8
        if parts.count == 2 {
            guard (1...3).contains(parts[1].utf8.count), parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let bits = Int(parts[1]),
                bits <= prefix
            else {
                throw ValueProblem("\"\(text)\" has no prefix of 0 to \(prefix) bits; expected \(Self.expected)")
            }
            prefix = bits
        }
        if prefix >= 96, let mapped = Self.unmapped(bytes) {
            bytes = mapped
            prefix -= 96
        }
        let network = Self.mask(bytes, prefix)
        guard network == bytes else {
            let single = CIDR(bytes, prefix: bytes.count * 8)
            throw ValueProblem("\"\(text)\" has bits beyond its prefix; write \(CIDR(network, prefix: prefix)) or \(single)")
        }
        self.init(network, prefix: prefix)
    }

    /// Reads one entry of a list: a network, or `any` for all addresses of both families.
    package static func parseList(_ text: String) throws(ValueProblem) -> [CIDR] {
        text == "any" ? any : [try CIDR(parsing: text)]
    }

    /// Whether the block contains `address`: 4 or 16 bytes in network order. False for any other length.
    package func contains(_ address: some Collection<UInt8>) -> Bool {
        var bytes = Array(address)
        if let mapped = Self.unmapped(bytes) { bytes = mapped }
        return bytes.count == network.count && Self.mask(bytes, prefix) == network
    }

    /// Whether the block contains the peer's address. False for a Unix-domain peer, which has none.
    package func contains(_ address: SocketAddress) -> Bool { contains(address.ipBytes) }

    package var description: String { "\(IPText.text(network))/\(prefix)" }

    /// Whether both are the same address, IPv4-mapped or not.
    package static func same(_ left: [UInt8], _ right: [UInt8]) -> Bool { (unmapped(left) ?? left) == (unmapped(right) ?? right) }

    /// The 4 bytes within an IPv4-mapped IPv6 address; nil for other addresses.
    static func unmapped(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count == 16, bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF else { return nil }
        return Array(bytes[12...])
    }

    private static func mask(_ bytes: [UInt8], _ prefix: Int) -> [UInt8] {
        bytes.enumerated().map { index, byte in
            let bits = min(max(prefix - index * 8, 0), 8)
            return byte & ~UInt8(0xFF >> bits)
        }
    }
}

extension Sequence<CIDR> {
    /// Whether any block contains the address (4 or 16 bytes, network order).
    package func contains(address: some Collection<UInt8>) -> Bool { contains { $0.contains(address) } }
    /// Whether any block contains the peer's address.
    package func contains(address: SocketAddress) -> Bool { contains(address: address.ipBytes) }
}

extension SocketAddress {
    /// 4 or 16 bytes in network order; empty for a Unix-domain socket.
    package var ipBytes: [UInt8] {
        // By offset, since the module of `sin_addr` may not be imported: family and port (4 bytes), then IPv6's flow label (4).
        switch self {
        case .v4(let address): withUnsafeBytes(of: address.address) { Array($0[4..<8]) }
        case .v6(let address): withUnsafeBytes(of: address.address) { Array($0[8..<24]) }
        case .unixDomainSocket: []
        }
    }
}
