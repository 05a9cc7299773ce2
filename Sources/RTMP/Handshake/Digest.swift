import Crypto
import NIOCore

/// The digest by which Flash-era peers prove themselves genuine in C1, S1 and S2. Undocumented by Adobe. Both known positions ("schemes")
/// are in use: scheme 0 puts it in the first half of the packet, scheme 1 in the second.
///
/// ```
/// scheme 0: | time 4 | version 4 | digest block 764 | key block 764 |
/// scheme 1: | time 4 | version 4 | key block 764 | digest block 764 |
/// digest block: | offset 4 (sum of bytes, modulo 728) | … | digest 32 | … |
/// ```
enum HandshakeDigest {
    static let packetLength = 1536
    static let digestLength = 32

    enum Scheme: Int, CaseIterable, Sendable {
        case digestFirst = 0
        case digestSecond = 1

        /// Position of the four offset bytes in the packet.
        var offsetPosition: Int { self == .digestFirst ? 8 : 772 }
    }

    /// The text part of each side's key; the server's and client's full keys append the same 32 bytes.
    private static let clientText = Array("Genuine Adobe Flash Player 001".utf8)
    private static let serverText = Array("Genuine Adobe Flash Media Server 001".utf8)
    private static let suffix: [UInt8] = [
        0xF0, 0xEE, 0xC2, 0x4A, 0x80, 0x68, 0xBE, 0xE8, 0x2E, 0x00, 0xD0, 0xD1, 0x02, 0x9E, 0x7E, 0x57,
        0x6E, 0xEC, 0x5D, 0x2D, 0x29, 0x80, 0x6F, 0xAB, 0x93, 0xB8, 0xE6, 0x36, 0xCF, 0xEB, 0x31, 0xAE,
    ]

    enum Side: Sendable {
        case client
        case server
        var text: [UInt8] { self == .client ? HandshakeDigest.clientText : HandshakeDigest.serverText }
        /// For digests inside C1 and S1.
        var shortKey: [UInt8] { self.text }
        /// For the key that signs C2 and S2.
        var fullKey: [UInt8] { self.text + HandshakeDigest.suffix }
    }

    static func mac(key: [UInt8], _ parts: ArraySlice<UInt8>...) -> [UInt8] {
        var mac = HMAC<SHA256>(key: SymmetricKey(data: key))
        for part in parts { mac.update(data: part) }
        return Array(mac.finalize())
    }

    /// Position of the digest in this packet under the scheme.
    static func position(in packet: [UInt8], scheme: Scheme) -> Int {
        let start = scheme.offsetPosition
        let sum = packet[start..<start + 4].reduce(0) { $0 + Int($1) }
        return sum % 728 + start + 4
    }

    /// The digest that the packet should carry at `position`.
    static func digest(of packet: [UInt8], at position: Int, side: Side) -> [UInt8] {
        self.mac(key: side.shortKey, packet[..<position], packet[(position + self.digestLength)...])
    }

    /// Finds a valid digest by the given side; `nil` for a simple handshake.
    static func find(in packet: [UInt8], side: Side) -> (scheme: Scheme, digest: [UInt8])? {
        guard packet.count == self.packetLength else { return nil }
        for scheme in Scheme.allCases {
            let position = self.position(in: packet, scheme: scheme)
            let carried = Array(packet[position..<position + self.digestLength])
            if self.digest(of: packet, at: position, side: side) == carried { return (scheme, carried) }
        }
        return nil
    }

    /// Writes the side's digest into a packet of random bytes and returns it.
    static func sign(_ packet: inout [UInt8], scheme: Scheme, side: Side) -> [UInt8] {
        let position = self.position(in: packet, scheme: scheme)
        let digest = self.digest(of: packet, at: position, side: side)
        packet.replaceSubrange(position..<position + self.digestLength, with: digest)
        return digest
    }

    /// C2 or S2: random bytes whose last 32 are a MAC keyed by the other side's digest.
    static func answer(random: [UInt8], to digest: [UInt8], side: Side) -> [UInt8] {
        let body = random.prefix(self.packetLength - self.digestLength)
        let key = self.mac(key: side.fullKey, digest[...])
        return Array(body) + self.mac(key: key, body)
    }

    /// Whether C2 or S2 answers the digest that we sent.
    static func isAnswer(_ packet: [UInt8], to digest: [UInt8], side: Side) -> Bool {
        let key = self.mac(key: side.fullKey, digest[...])
        return self.mac(key: key, packet[..<(self.packetLength - self.digestLength)]) == Array(packet.suffix(self.digestLength))
    }
}
