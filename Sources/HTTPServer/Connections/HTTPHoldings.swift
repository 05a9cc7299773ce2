package import Support
import Synchronization

/// Counts the bytes that HTTP's clients make the server hold: heads, bodies without a reader, unsent answers. Any thread.
///
/// Everything is charged to the process's ledger, and to the client's address. Past its share an address gets no new request; far past it, answers
/// that nobody reads end. Requests of API callers count against their address's share only, so that operators get in while others hold HTTP's.
///
/// | share of `limits.memory` | new requests end | answers end |
/// |---|---|---|
/// | one address | past 1/4 | past 3/8 |
/// | all of HTTP | past 1/2 | past 3/4 |
package final class HTTPHoldings: Sendable {
    private let ledger: MemoryLedger
    private let total = Atomic<Int>(0)
    private let accounts = Mutex<[HostKey: Entry]>([:])

    private struct Entry {
        weak var account: Account?
    }

    /// No share is smaller, whatever the limit: a few players must fit. Bytes.
    private static let leastShare = 8 << 20

    package init(_ ledger: MemoryLedger) { self.ledger = ledger }

    /// Bytes held by all clients.
    package var held: Int { self.total.load(ordering: .relaxed) }

    /// The account of an address; all its connections and requests share it. Nil: a proxy or a client that is not known yet, counted only in total.
    package func account(of address: HostKey?, mayUseReserve: Bool = false) -> Account {
        guard let address else { return Account(nil, mayUseReserve: mayUseReserve, in: self) }
        return self.accounts.withLock { accounts in
            if let known = accounts[address]?.account { return known }
            let made = Account(address, mayUseReserve: mayUseReserve, in: self)
            accounts[address] = Entry(account: made)
            return made
        }
    }

    private func forget(_ address: HostKey) {
        // The last reference to another account of this address must not go while the lock is held.
        let other = self.accounts.withLock { accounts in
            let other = accounts[address]?.account
            if other == nil { accounts[address] = nil }
            return other
        }
        withExtendedLifetime(other) {}
    }

    private func share(_ eighths: Int) -> Int { max(Self.leastShare, self.ledger.limit / 8 * eighths) }

    /// What one address makes the server hold. Any thread.
    package final class Account: Sendable {
        private let address: HostKey?
        private let mayUseReserve: Bool
        private let holdings: HTTPHoldings
        private let bytes = Atomic<Int>(0)

        fileprivate init(_ address: HostKey?, mayUseReserve: Bool, in holdings: HTTPHoldings) {
            self.address = address
            self.mayUseReserve = mayUseReserve
            self.holdings = holdings
        }

        deinit {
            if let address = self.address { self.holdings.forget(address) }
        }

        fileprivate func charge(_ bytes: Int) {
            self.bytes.add(bytes, ordering: .relaxed)
            self.holdings.total.add(bytes, ordering: .relaxed)
            self.holdings.ledger.charge(bytes)
        }

        /// Whether a new request is served.
        package var hasSpace: Bool { self.isWithin(ofAddress: 2, ofAll: 4) }
        /// Whether an answer may go on that holds so many bytes more. A short one always may: new requests are refused before there are many, and a
        /// health check is answered whatever others hold.
        package func mayAnswer(_ bytes: Int = .max) -> Bool { bytes <= HTTPHolding.shortAnswer || self.isWithin(ofAddress: 3, ofAll: 6) }

        private func isWithin(ofAddress: Int, ofAll: Int) -> Bool {
            let isOwnWithin = self.address == nil || self.bytes.load(ordering: .relaxed) <= self.holdings.share(ofAddress)
            return isOwnWithin && (self.mayUseReserve || self.holdings.held <= self.holdings.share(ofAll))
        }
    }
}

/// What one connection or request makes the server hold. Loop-bound; given back on deinit.
package final class HTTPHolding {
    package let account: HTTPHoldings.Account
    package private(set) var bytes = 0

    package init(_ account: HTTPHoldings.Account) { self.account = account }

    deinit { self.account.charge(-self.bytes) }

    package func add(_ bytes: Int) {
        self.bytes += bytes
        self.account.charge(bytes)
    }

    package func set(_ bytes: Int) { self.add(bytes - self.bytes) }
}

extension HTTPHolding {
    /// What a connection takes without any request, TLS and HTTP/2 included: measured, in bytes.
    static let connectionBytes = 16 << 10
    static let secureConnectionBytes = 64 << 10
    /// What an HTTP/2 stream takes besides its head and body: channel, handlers, task.
    static let streamBytes = 12 << 10
    static let shortAnswer = 4 << 10
    /// What a header field takes besides its text.
    static let fieldBytes = 96
}
