import NIOCore
import Support
import Synchronization

/// Limits calls per token, and failed authentications per host. Any thread.
final class RateLimits: Sendable {
    private struct State {
        var calls: [Int64: TokenBucket] = [:]
        var failures = FailureBuckets()
    }

    /// Calls per second and token.
    let rate: Int
    /// Largest burst of calls, after ``windowSeconds`` without any.
    var burst: Int { self.rate * Self.windowSeconds }
    static let windowSeconds = 2
    private let state = Mutex(State())

    init(rate: Int) { self.rate = rate }

    private static var nowNs: UInt64 { NIODeadline.now().uptimeNanoseconds }

    /// Takes a call from the token's bucket.
    func call(token: Int64, nowNs: UInt64 = RateLimits.nowNs) -> TokenBucket.Outcome {
        self.state.withLock { state in
            let fresh = TokenBucket(rate: Double(self.rate), burst: Double(self.burst), nowNs: nowNs)
            return state.calls[token, default: fresh].acquire(nowNs: nowNs)
        }
    }

    /// Seconds until this host may try an unknown token; nil when it may now.
    func mayTry(host: HostKey, nowNs: UInt64 = RateLimits.nowNs) -> Double? {
        self.state.withLock { $0.failures.wait(host, nowNs: nowNs) }
    }

    /// Counts an invalid token from this host.
    func failed(host: HostKey, nowNs: UInt64 = RateLimits.nowNs) {
        self.state.withLock { $0.failures.failed(host, nowNs: nowNs) }
    }
}
