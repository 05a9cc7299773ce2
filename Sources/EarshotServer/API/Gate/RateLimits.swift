import NIOCore
import Synchronization

/// How often each token may call, and each address may fail to show one. Any thread.
final class RateLimits: Sendable {
    private struct State {
        var calls: [Int64: TokenBucket] = [:]
        var failures = FailureBuckets()
    }

    /// Calls per second and token.
    let rate: Int
    /// Calls at once, after as many seconds without any as ``windowSeconds``.
    var burst: Int { self.rate * Self.windowSeconds }
    static let windowSeconds = 2
    private let state = Mutex(State())

    init(rate: Int) { self.rate = rate }

    private static var nowNs: UInt64 { NIODeadline.now().uptimeNanoseconds }

    /// Takes one of the token's calls.
    func call(token: Int64, nowNs: UInt64 = RateLimits.nowNs) -> TokenBucket.Outcome {
        self.state.withLock { state in
            let fresh = TokenBucket(rate: Double(self.rate), burst: Double(self.burst), nowNs: nowNs)
            return state.calls[token, default: fresh].take(nowNs: nowNs)
        }
    }

    /// Whether this address may try a token that is not known; nil when it may, otherwise after how many seconds.
    func mayTry(address: String, nowNs: UInt64 = RateLimits.nowNs) -> Double? {
        self.state.withLock { $0.failures.wait(address, nowNs: nowNs) }
    }

    /// This address showed no valid token.
    func failed(address: String, nowNs: UInt64 = RateLimits.nowNs) {
        self.state.withLock { $0.failures.failed(address, nowNs: nowNs) }
    }
}

/// How often each address has failed of late: a slip of the hand costs nothing, a search soon stops. A value; `nowNs` is monotonic.
struct FailureBuckets: Sendable {
    private var buckets: [String: TokenBucket] = [:]
    /// Failures that are free.
    private let burst: Double

    /// Per second and address.
    private static let rate = 0.2
    /// Addresses remembered; past it those that are full again are forgotten, and then all.
    private static let addressLimit = 10_000

    init(burst: Double = 20) { self.burst = burst }

    /// Nil when the address may try now, otherwise after how many seconds.
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
