/// Filler for handshake packets. It must differ between connections but need not be secret.
package enum HandshakeRandom {
    /// Generates bytes by SplitMix64 from one system seed. The system generator makes a system call per number, which at 3 KB a handshake
    /// was most of the cost of a join.
    package static func bytes(_ count: Int) -> [UInt8] {
        var system = SystemRandomNumberGenerator()
        var state = system.next()
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            var word: UInt64 = 0
            for index in 0..<count {
                if index & 7 == 0 {
                    state &+= 0x9E37_79B9_7F4A_7C15
                    word = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
                    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
                    word ^= word >> 31
                }
                buffer[index] = UInt8(truncatingIfNeeded: word)
                word >>= 8
            }
            initialized = count
        }
    }
}
