import NIOCore
import Synchronization

/// Limits calls per token, and failed authentications per address. Any thread.
final class RateLimits: Sendable {
    private struct State {
        var calls: [Int64: TokenBucket] = [:]
        var failures = FailureBuckets()
    }

    /// Calls per second and token.
    let rate: Int
    /// Calls at once, after ``windowSeconds`` without any.
    var burst: Int { self.rate * Self.windowSeconds }
    static let windowSeconds = 2
    private let state = Mutex(State())

    init(rate: Int) { self.rate = rate }

    private static var nowNs: UInt64 { NIODeadline.now().uptimeNanoseconds }

    /// Takes a call from the token's bucket.
    func call(token: Int64, nowNs: UInt64 = RateLimits.nowNs) -> TokenBucket.Outcome {
        self.state.withLock { state in
            let fresh = TokenBucket(rate: Double(self.rate), burst: Double(self.burst), nowNs: nowNs)
            return state.calls[token, default: fresh].take(nowNs: nowNs)
        }
    }

    /// Seconds until this address may try an unknown token; nil when it may now.
    func mayTry(address: String, nowNs: UInt64 = RateLimits.nowNs) -> Double? {
        self.state.withLock { $0.failures.wait(address, nowNs: nowNs) }
    }

    /// Counts an invalid token from this address.
    func failed(address: String, nowNs: UInt64 = RateLimits.nowNs) {
        self.state.withLock { $0.failures.failed(address, nowNs: nowNs) }
    }
}

/// Throttles addresses that keep failing: a few slips are free, guessing soon stops. A value; `nowNs` is monotonic.
struct FailureBuckets: Sendable {
    private var buckets: [String: TokenBucket] = [:]
    /// Failures before the throttle applies.
    private let burst: Double

    /// Failures forgiven per second and address.
    private static let rate = 0.2
    /// Most addresses remembered. At the limit, full buckets are dropped; if that is not enough, all are.
    private static let addressLimit = 10_000

    init(burst: Double = 20) { self.burst = burst }

    /// Seconds until the address may try again; nil when it may now.
    mutating func wait(_ address: String, nowNs: UInt64) -> Double? {
        guard let outcome = self.buckets[address]?.look(nowNs: nowNs), !outcome.isAllowed else { return nil }
        return outcome.waitSeconds
    }

    mutating func failed(_ address: String, nowNs: UInt64) {
        if self.buckets.count >= Self.addressLimit {
            for (address, var bucket) in self.buckets where bucket.isFull(nowNs: nowNs) { self.buckets[address] = nil }
            if self.buckets.count >= Self.addressLimit { self.buckets.removeAll() }
        }
        let fresh = TokenBucket(rate: Self.rate, burst: self.burst, nowNs: nowNs)
        _ = self.buckets[address, default: fresh].take(nowNs: nowNs)
    }

    var count: Int { self.buckets.count }
}
