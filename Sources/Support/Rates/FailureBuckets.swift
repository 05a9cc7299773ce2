/// Throttles hosts that keep failing: a few mistakes are free, guessing is soon stopped. A value; `nowNs` is monotonic.
package struct FailureBuckets: Sendable {
    private var buckets: [HostKey: TokenBucket] = [:]
    /// Failures before the throttle applies.
    private let burst: Double

    /// Failures forgiven per second and host.
    private static let rate = 0.2
    /// Most hosts remembered. At the limit, full buckets are dropped; if that is not enough, all are.
    private static let hostLimit = 10_000

    package init(burst: Double = 20) { self.burst = burst }

    /// Seconds until the host may try again; nil when it may now.
    package mutating func wait(_ host: HostKey, nowNs: UInt64) -> Double? {
        guard let outcome = self.buckets[host]?.look(nowNs: nowNs), !outcome.isAllowed else { return nil }
        return outcome.waitSeconds
    }

    package mutating func failed(_ host: HostKey, nowNs: UInt64) {
        if self.buckets.count >= Self.hostLimit {
            for (known, var bucket) in self.buckets where bucket.isFull(nowNs: nowNs) { self.buckets[known] = nil }
            if self.buckets.count >= Self.hostLimit { self.buckets.removeAll() }
        }
        let fresh = TokenBucket(rate: Self.rate, burst: self.burst, nowNs: nowNs)
        _ = self.buckets[host, default: fresh].take(nowNs: nowNs)
    }

    package var count: Int { self.buckets.count }
}
