import NIOCore
package import Support

/// In tests a host is written as its address, or as any other word, which stands for a host of its own.
extension HostKey: ExpressibleByStringInterpolation {
    package init(stringLiteral text: String) {
        // FNV-1a, as a /64 of its own.
        let hash = text.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        let words = (0..<4).map { String(hash >> UInt64(48 - 16 * $0) & 0xFFFF, radix: 16) }
        let own = try? SocketAddress(ipAddress: words.joined(separator: ":") + "::1", port: 1)
        self = HostKey.of((try? SocketAddress(ipAddress: text, port: 1)) ?? own)
    }
}
