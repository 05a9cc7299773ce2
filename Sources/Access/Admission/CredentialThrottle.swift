internal import Crypto
internal import NIOCore
import Support
internal import Synchronization

/// Throttles addresses that keep showing wrong credentials, over RTMP and HTTP together. Any thread.
///
/// Twenty wrong ones are free, then one in five seconds. Further attempts are refused unchecked, so that guessing reveals nothing and costs the
/// server no hash. A credential that was once right is exempt: a returning device does not suffer from a neighbour behind the same address. Loopback
/// is throttled like other addresses, because mistakes there repeat as often.
final class CredentialThrottle: Sendable {
    private struct State {
        var failures: FailureBuckets
        /// Digests of credentials that were right: the newest in `known`, those before them in `older`.
        var known: Set<SHA256.Digest> = []
        var older: Set<SHA256.Digest> = []
    }

    private let state: Mutex<State>
    /// Digests in each of the two sets.
    private static let knownLimit = 10_000

    init(_ failures: FailureBuckets = FailureBuckets()) { self.state = Mutex(State(failures: failures)) }

    static var nowNs: UInt64 { NIODeadline.now().uptimeNanoseconds }

    /// The digest that represents a credential here.
    static func digest(_ credential: String) -> SHA256.Digest { SHA256.hash(data: Array(credential.utf8)) }

    /// Seconds until the credential may be checked; nil when it may be now.
    func wait(_ host: HostKey, _ credential: SHA256.Digest, nowNs: UInt64 = CredentialThrottle.nowNs) -> Double? {
        self.state.withLock { state in
            guard let wait = state.failures.wait(host, nowNs: nowNs) else { return nil }
            return state.known.contains(credential) || state.older.contains(credential) ? nil : wait
        }
    }

    func failed(_ host: HostKey, nowNs: UInt64 = CredentialThrottle.nowNs) {
        self.state.withLock { $0.failures.failed(host, nowNs: nowNs) }
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
