import Apps
import Support
import Synchronization

/// Guests' accounts, in memory, kept for six hours after their last use. A guest whose account has expired gets another one. Any thread.
final class TouristAccounts: Sendable {
    private struct Entry {
        let account: DollsCatcherAccount
        /// Everybody in a room sees account names, and an account brings the token that plays. So a name renews its account only from the address
        /// that made it.
        let host: HostKey
        var expiresMs: Int64
    }

    private struct State {
        var accounts: [String: Entry] = [:]
        /// New accounts per host since the day began.
        var made: [HostKey: Int] = [:]
        var day: Int64 = 0
    }

    static let lifetimeMs: Int64 = 6 * 3_600_000
    static let perDay = 100
    static let most = 100_000
    private static let dayMs: Int64 = 86_400_000

    private let state = Mutex(State())

    /// The account if it is still valid at this address, otherwise a new one.
    func account(_ sid: String?, from host: HostKey, nowMs: Int64) throws(DollsCatcherError) -> DollsCatcherAccount {
        try self.state.withLock { (state) throws(DollsCatcherError) in
            if let sid, let known = state.accounts[sid], known.expiresMs > nowMs, known.host == host {
                state.accounts[sid]?.expiresMs = nowMs + Self.lifetimeMs
                return known.account
            }
            if state.day != nowMs / Self.dayMs {
                state.day = nowMs / Self.dayMs
                state.made = [:]
            }
            if state.accounts.count >= Self.most { state.accounts = state.accounts.filter { $0.value.expiresMs > nowMs } }
            guard state.accounts.count < Self.most else { throw .noMoreTourists("There are \(Self.most) guest accounts now, the limit.") }
            guard state.made[host, default: 0] < Self.perDay else {
                throw .noMoreTourists("This address has had its \(Self.perDay) guest accounts of today.")
            }
            var account: DollsCatcherAccount
            repeat {
                account = DollsCatcherAccount(sequence: .random(in: 100_000...(.max)), random: .random(in: 0...(.max)))
            } while state.accounts[account.accid] != nil
            state.accounts[account.accid] = Entry(account: account, host: host, expiresMs: nowMs + Self.lifetimeMs)
            state.made[host, default: 0] += 1
            return account
        }
    }

    func isKnown(_ sid: String, nowMs: Int64) -> Bool { self.state.withLock { ($0.accounts[sid]?.expiresMs ?? 0) > nowMs } }
}
