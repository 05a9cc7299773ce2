/// Throttles addresses that keep failing: a few mistakes are free, guessing is soon stopped. A value; `nowNs` is monotonic.
package struct FailureBuckets: Sendable {
    private var buckets: [String: TokenBucket] = [:]
    /// Failures before the throttle applies.
    private let burst: Double

    /// Failures forgiven per second and address.
    private static let rate = 0.2
    /// Most addresses remembered. At the limit, full buckets are dropped; if that is not enough, all are.
    private static let addressLimit = 10_000

    package init(burst: Double = 20) { self.burst = burst }

    /// Seconds until the address may try again; nil when it may now.
    package mutating func wait(_ address: String, nowNs: UInt64) -> Double? {
        guard let outcome = self.buckets[address]?.look(nowNs: nowNs), !outcome.isAllowed else { return nil }
        return outcome.waitSeconds
    }

    package mutating func failed(_ address: String, nowNs: UInt64) {
        if self.buckets.count >= Self.addressLimit {
            for (address, var bucket) in self.buckets where bucket.isFull(nowNs: nowNs) { self.buckets[address] = nil }
            if self.buckets.count >= Self.addressLimit { self.buckets.removeAll() }
        }
        let fresh = TokenBucket(rate: Self.rate, burst: self.burst, nowNs: nowNs)
        _ = self.buckets[address, default: fresh].take(nowNs: nowNs)
    }

    package var count: Int { self.buckets.count }
}
