import Synchronization

/// Counts of refused calls. Any thread; locked only briefly.
package final class CallFigures: Sendable {
    /// The reason why a call of the API, or a login, had no valid token.
    package enum AuthenticationFailure: String, Sendable, CaseIterable {
        /// No token at all.
        case missing
        /// A token or code that is unknown or revoked.
        case wrong
        /// Not looked up, because too many wrong ones came from the address.
        case throttled
    }

    package struct Values: Sendable {
        package var authenticationFailures: [AuthenticationFailure: UInt64] = [:]
        /// Calls refused for `api.rateLimit`.
        package var callsOverRate: UInt64 = 0
    }

    private let values = Mutex(Values())

    package init() {}

    package var current: Values { self.values.withLock { $0 } }

    package func failed(_ failure: AuthenticationFailure) {
        self.values.withLock { $0.authenticationFailures[failure, default: 0] += 1 }
    }

    func callOverRate() { self.values.withLock { $0.callsOverRate += 1 } }
}
