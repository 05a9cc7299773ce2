import NIOCore
import Synchronization

/// How often each token may call, and each address may fail to show one. Any thread.
final class RateLimits: Sendable {
    private struct State {
        var calls: [Int64: TokenBucket] = [:]
        var failures: [String: TokenBucket] = [:]
    }

    /// Calls per second and token.
    let rate: Int
    private let state = Mutex(State())

    /// Per address: a slip of the hand costs nothing, a search soon stops.
    private static let failureRate = 0.2
    private static let failureBurst = 20.0
    /// Addresses remembered; past it those that are full again are forgotten, and then all.
    private static let addressLimit = 10_000

    init(rate: Int) { self.rate = rate }

    private static var nowNs: UInt64 { NIODeadline.now().uptimeNanoseconds }

    /// Takes one of the token's calls.
    func call(token: Int64, nowNs: UInt64 = RateLimits.nowNs) -> TokenBucket.Outcome {
        self.state.withLock { state in
            let fresh = TokenBucket(rate: Double(self.rate), burst: Double(self.rate * 2), nowNs: nowNs)
            return state.calls[token, default: fresh].take(nowNs: nowNs)
        }
    }

    /// Whether this address may try a token that is not known; nil when it may, otherwise after how many seconds.
    func mayTry(address: String, nowNs: UInt64 = RateLimits.nowNs) -> Double? {
        self.state.withLock { state in
            guard let outcome = state.failures[address]?.look(nowNs: nowNs), !outcome.isAllowed else { return nil }
            return outcome.waitSeconds
        }
    }

    /// This address showed no valid token.
    func failed(address: String, nowNs: UInt64 = RateLimits.nowNs) {
        self.state.withLock { state in
            if state.failures.count >= Self.addressLimit {
                for (address, var bucket) in state.failures where bucket.isFull(nowNs: nowNs) { state.failures[address] = nil }
                if state.failures.count >= Self.addressLimit { state.failures.removeAll() }
            }
            let fresh = TokenBucket(rate: Self.failureRate, burst: Self.failureBurst, nowNs: nowNs)
            _ = state.failures[address, default: fresh].take(nowNs: nowNs)
        }
    }
}
