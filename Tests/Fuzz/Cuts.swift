import NIOCore

/// The places at which the network cuts a run of bytes. A plain value.
struct Cuts: Sendable {
    private let seed: UInt8

    /// Leaves the bytes in one piece.
    static let none = Cuts(0)

    /// Cuts nowhere for 0, at every byte for 1, and otherwise at random places given by the seed.
    init(_ seed: UInt8) { self.seed = seed }

    /// The most bytes to cut so that a run stays short: `whole` in one piece, fewer the shorter the pieces are.
    static func limit(_ seed: UInt8, _ whole: Int) -> Int { seed == 0 ? whole : min(whole, seed < 64 ? 1_024 : 16 << 10) }

    func pieces(of bytes: [UInt8]) -> [ByteBuffer] {
        guard self.seed > 0, bytes.count > 1 else { return [ByteBuffer(bytes: bytes)] }
        var pieces: [ByteBuffer] = []
        var state = UInt64(self.seed) &* 0x9E37_79B9_7F4A_7C15
        var start = 0
        while start < bytes.count {
            // xorshift64.
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            let length = self.seed == 1 ? 1 : 1 + Int(truncatingIfNeeded: state >> 33) % (2 * Int(self.seed))
            let end = min(bytes.count, start + length)
            pieces.append(ByteBuffer(bytes: bytes[start..<end]))
            start = end
        }
        return pieces
    }
}
