internal import Crypto
internal import NIOCore
internal import Synchronization

/// Holds back addresses that show wrong credentials again and again, over RTMP and HTTP together. Any thread.
///
/// Twenty are free, then one in five seconds: what comes before is refused without a look, so that a search tells its maker nothing and costs
/// the server no hash. A credential that was right once is let through all the same: a device that comes back is not held back by what its
/// neighbour behind the same address does. Loopback is an address like others: what is wrong there goes wrong as often.
final class CredentialThrottle: Sendable {
    private struct State {
        var failures: FailureBuckets
        /// Digests of credentials that were right, the newest and those before them.
        var known: Set<SHA256.Digest> = []
        var older: Set<SHA256.Digest> = []
    }

    private let state: Mutex<State>
    /// In each of the two sets.
    private static let knownLimit = 10_000

    init(_ failures: FailureBuckets = FailureBuckets()) { self.state = Mutex(State(failures: failures)) }

    static var nowNs: UInt64 { NIODeadline.now().uptimeNanoseconds }

    /// What stands for a credential here.
    static func digest(_ credential: String) -> SHA256.Digest { SHA256.hash(data: Array(credential.utf8)) }

    /// Nil when the credential may be looked at, otherwise in how many seconds.
    func wait(_ address: String, _ credential: SHA256.Digest, nowNs: UInt64 = CredentialThrottle.nowNs) -> Double? {
        self.state.withLock { state in
            guard let wait = state.failures.wait(address, nowNs: nowNs) else { return nil }
            return state.known.contains(credential) || state.older.contains(credential) ? nil : wait
        }
    }

    func failed(_ address: String, nowNs: UInt64 = CredentialThrottle.nowNs) {
        self.state.withLock { $0.failures.failed(address, nowNs: nowNs) }
    }

    func succeeded(_ credential: SHA256.Digest) {
        self.state.withLock { state in
            guard !state.known.contains(credential) else { return }
            if state.known.count >= Self.knownLimit {
                state.older = state.known
                state.known = []
            }
            state.known.insert(credential)
        }
    }
}
