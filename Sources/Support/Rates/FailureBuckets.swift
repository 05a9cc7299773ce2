/// Throttles hosts that keep failing: a few mistakes are free, guessing is soon stopped. A value; `nowNs` is monotonic.
package struct FailureBuckets: Sendable {
    private var buckets: PaceTable<HostKey>

    /// Failures forgiven per second and host.
    private static let rate = 0.2

    /// `burst`: failures before the throttle applies.
    package init(burst: Double = 20) { self.buckets = PaceTable(rate: Self.rate, burst: burst) }

    /// Seconds until the host may try again; nil when it may now.
    package mutating func wait(_ host: HostKey, nowNs: UInt64) -> Double? {
        guard let outcome = self.buckets.peek(host, nowNs: nowNs), !outcome.isAllowed else { return nil }
        return outcome.waitSeconds
    }

    package mutating func failed(_ host: HostKey, nowNs: UInt64) { _ = self.buckets.acquire(host, nowNs: nowNs) }

    package var count: Int { self.buckets.count }
}
