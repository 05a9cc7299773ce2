import Support
import Synchronization

/// Which names may be devices'. Never says no to one that is; a yes is to be looked up in the store. Any thread; event loops ask it at every join.
///
/// A Bloom filter with one hash function, of a fixed size: with a million devices it wrongly says yes once in nine.
final class DeviceNames: Sendable {
    private static let bits = 1 << 23
    private let words = Mutex([UInt64](repeating: 0, count: DeviceNames.bits / 64))

    func add(_ name: String) {
        let bit = Self.bit(name)
        self.words.withLock { $0[bit / 64] |= 1 << UInt64(bit % 64) }
    }

    func mayHave(_ name: String) -> Bool {
        let bit = Self.bit(name)
        return self.words.withLock { $0[bit / 64] >> UInt64(bit % 64) & 1 == 1 }
    }

    private static func bit(_ name: String) -> Int {
        var hasher = Hasher()
        hasher.combine(name.exact)
        return Int(truncatingIfNeeded: UInt(bitPattern: hasher.finalize()) % UInt(Self.bits))
    }
}
