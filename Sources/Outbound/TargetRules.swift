package import Support

/// Decides which addresses the server may connect to by itself: public ones, and those in `outbound.allowPrivate`. Pure; any thread.
///
/// Hooks, webhooks and links name their targets by URL, and neither a URL nor the name in it may be a way into the server's own network.
package struct TargetRules: Sendable {
    private let allowed: [CIDR]

    package init(allowPrivate: [CIDR]) { self.allowed = allowPrivate }

    /// The reason to refuse a URL that names this host, or nil. A name passes: its addresses are looked up and checked for each connection.
    package func objection(to host: URLAuthority.Host) -> String? {
        switch host {
        case .address(let bytes): self.objection(to: bytes)
        case .name: nil
        }
    }

    /// The reason to refuse this address (4 or 16 bytes, network order), or nil.
    package func objection(to address: [UInt8]) -> String? {
        if self.allowed.contains(address: address) { return nil }
        if address.count == 16, let embedded = Self.embedded(in: address) {
            return self.objectionBySpace(address) ?? TargetRules(allowPrivate: []).objection(to: embedded)
        }
        return self.objectionBySpace(address)
    }

    private func objectionBySpace(_ address: [UInt8]) -> String? {
        guard address.count == 4 || address.count == 16 else { return "not an IP address" }
        return Self.closed.first { $0.block.contains(address) }?.what
    }

    /// The IPv4 address inside an IPv6 one. A translator or tunnel connects there, so it is the real target.
    ///
    /// ```
    /// ::ffff:a.b.c.d         mapped, RFC 4291 §2.5.5.2      (CIDR sees through this one)
    /// ::a.b.c.d              compatible, §2.5.5.1
    /// ::ffff:0:a.b.c.d       translated, RFC 7915
    /// 64:ff9b::a.b.c.d       NAT64, RFC 6052 §2.1
    /// 2002:aabb:ccdd::       6to4, RFC 3056 §2
    /// …:0:5efe:a.b.c.d       ISATAP, RFC 5214 §6.1, also …:200:5efe:
    /// ```
    private static func embedded(in bytes: [UInt8]) -> [UInt8]? {
        let tail = Array(bytes[12...])
        if bytes[..<12].allSatisfy({ $0 == 0 }) { return tail }
        if Array(bytes[..<12]) == [0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0] { return tail }
        if Array(bytes[..<12]) == [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0] { return tail }
        if bytes[0] == 0x20, bytes[1] == 0x02 { return Array(bytes[2..<6]) }
        if bytes[8] & 0xFD == 0, Array(bytes[9..<12]) == [0, 0x5E, 0xFE] { return tail }
        return nil
    }

    private struct Closed: Sendable {
        let block: CIDR
        let what: String
    }

    /// IANA's special-purpose registries (RFC 6890 and its updates), and addresses where clouds serve machines' credentials.
    private static let closed: [Closed] = [
        ("0.0.0.0/8", "unspecified"), ("10.0.0.0/8", "private"), ("100.64.0.0/10", "shared (carrier NAT)"), ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local (cloud metadata)"), ("172.16.0.0/12", "private"), ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "for documentation"), ("192.88.99.0/24", "reserved"), ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "for benchmarks"), ("198.51.100.0/24", "for documentation"), ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"), ("240.0.0.0/4", "reserved"), ("168.63.129.16/32", "cloud metadata"),
        ("::/128", "unspecified"), ("::1/128", "loopback"), ("64:ff9b:1::/48", "local NAT64"), ("100::/64", "discarded"),
        // Teredo, ORCHID and other protocols.
        ("2001::/23", "reserved"), ("2001:db8::/32", "for documentation"), ("3fff::/20", "for documentation"),
        ("5f00::/16", "segment routing"), ("fc00::/7", "private"), ("fe80::/10", "link-local"), ("fec0::/10", "private (site-local)"),
        ("ff00::/8", "multicast"),
    ].map { text, what in
        do throws(ValueProblem) {
            return Closed(block: try CIDR(parsing: text), what: what)
        } catch {
            // The table is constant, and every test of it reads it.
            preconditionFailure("\(text): \(error)")
        }
    }
}
