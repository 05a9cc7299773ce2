import Dispatch
import Rooms
import Synchronization

/// Renews a node's lease, on a connection and a queue of its own: a long transaction must not end it. In a cluster also takes or keeps the
/// keeper's role, and reads the database's clock. Any thread.
///
/// Times of its own are those of the steady clock, taken before each renewal was sent: here the lease never lasts longer than in the database.
package final class NodeLease: Sendable {
    private struct State {
        var isOver = false
        var returns = 0
        var incarnation: Int64
        /// The renewals have had no gap since then.
        var unbrokenSince: Int64
        var renewedAt: Int64
        var keeperUntil: Int64 = 0
        /// As the database said last.
        var isKeptElsewhere = false
        /// Nodes with a lease, as they were counted last.
        var nodeCount = 1
        /// Renewals until they are counted again.
        var countsIn = 0
        var isFenced = false
        /// The database's clock less this machine's steady one, in milliseconds.
        var clockMs: Int64?
    }

    private let connection: PostgresConnection
    private let queue = DispatchQueue(label: "earshot.store.lease")
    private let state: Mutex<State>
    private let number: Int64
    private let isShared: Bool

    /// How long a node's membership is kept for it after its last renewal, by the database's clock.
    static let seconds = 10
    private static let everySeconds = 3
    /// Nodes are counted with one renewal of so many: a node that counts reads as many rows as there are nodes.
    private static let renewalsPerCount = 10
    private static let leaseMs = Int64(NodeLease.seconds) * 1_000
    /// A longer gap between renewals is a failure of the database, perhaps. Shorter ones end no node's lease.
    private static let gapMs: Int64 = 4_500
    /// By so much the keeper ends its work before its role ends.
    private static let marginMs: Int64 = 1_000

    init(_ location: PostgresLocation, number: Int64, incarnation: Int64) {
        self.number = number
        self.isShared = location.cluster != nil
        self.connection = PostgresConnection(
            .init(url: location.url, prepares: location.prepares, name: "earshot \(location.node) lease", patienceMs: 3_000))
        let now = Self.now
        self.state = Mutex(State(incarnation: incarnation, unbrokenSince: now, renewedAt: now))
        if self.isShared { self.queue.sync { _ = self.tick() } }
        self.schedule()
    }

    /// Milliseconds of the machine's steady clock.
    private static var now: Int64 { RoomClock.Sources.system.steadyMs() }

    /// Whether this node does the work that one node does for all.
    package var isKeeper: Bool { self.state.withLock { !$0.isFenced && Self.now + Self.marginMs < $0.keeperUntil } }

    /// Whether another node does it, as the database said last; stays while it does not answer.
    package var isKeptElsewhere: Bool { self.state.withLock { $0.isFenced || $0.isKeptElsewhere } }

    /// Whether it may end what other nodes have left. After a failure of the database all leases look ended: it waits until the others have had
    /// time to renew theirs. From its own last renewal it knows that the database has not failed since, as far as a lease would feel it.
    package var mayClearUp: Bool {
        self.state.withLock { state in
            let now = Self.now
            return !state.isFenced && now - state.renewedAt < Self.gapMs && now - state.unbrokenSince > Self.leaseMs
        }
    }

    /// What is left of the lease, in milliseconds; 0 when it has ended, or another node has ended this one's work.
    package var leftMs: Int64 {
        self.state.withLock { state in state.isFenced ? 0 : max(0, state.renewedAt + Self.leaseMs - Self.now) }
    }

    /// Nodes that have a lease, this one included; counted every half minute.
    package var nodeCount: Int { self.state.withLock { $0.nodeCount } }

    /// Whether another node has ended this one's work.
    package var isFenced: Bool { self.state.withLock { $0.isFenced } }

    /// How often the node got its membership back from another process that had it meanwhile.
    package var returns: Int { self.state.withLock { $0.returns } }

    /// The node has registered anew.
    func rejoined(_ incarnation: Int64, wasAnothers: Bool) {
        self.state.withLock { state in
            if wasAnothers { state.returns += 1 }
            state.incarnation = incarnation
            state.isFenced = false
            (state.renewedAt, state.unbrokenSince) = (Self.now, Self.now)
        }
    }

    /// The database's clock less this machine's steady one, in milliseconds. Nil before the first answer.
    package var clockMs: Int64? { self.state.withLock { $0.clockMs } }

    private func schedule(after seconds: Int = NodeLease.everySeconds) {
        self.queue.asyncAfter(deadline: .now() + .seconds(seconds)) { [weak self] in
            guard let self, !self.state.withLock({ $0.isOver }) else { return }
            // What fails is tried again soon; the writer's own failures tell of a database that is away.
            self.schedule(after: self.tick() ? Self.everySeconds : 1)
        }
    }

    /// Returns whether it succeeded.
    private func tick() -> Bool {
        do {
            try self.renew()
            if self.isShared {
                try self.keep()
                try self.countNodes()
            }
            return true
        } catch {
            return false
        }
    }

    private func renew() throws {
        try self.connection.open()
        let sent = Self.now
        let answer = try StoreAccess(self.connection).first(
            """
            WITH renewed AS (
                UPDATE nodes SET expires_at = clock_timestamp() + make_interval(secs => $1)
                WHERE number = $2 AND EXISTS (SELECT 1 FROM fences WHERE node = $2 AND incarnation = $3) RETURNING number)
            SELECT (SELECT count(*) FROM renewed), (extract(epoch FROM clock_timestamp()) * 1000)::bigint
            """, [Self.seconds, self.number, self.state.withLock { $0.incarnation }]
        ) { (row: inout RowReader) -> (isRenewed: Bool, clockMs: Int64) in (row.next(), row.next()) }
        guard let answer else { return }
        let clock = answer.clockMs - (sent + Self.now) / 2
        self.state.withLock { state in
            // A leap of the database's clock may have ended the others' leases.
            if let former = state.clockMs, (clock - former).magnitude > UInt64(Self.marginMs) { state.unbrokenSince = sent }
            state.clockMs = clock
            state.isFenced = !answer.isRenewed
            guard answer.isRenewed else { return }
            if sent - state.renewedAt > Self.gapMs { state.unbrokenSince = sent }
            state.renewedAt = sent
        }
    }

    private func keep() throws {
        let sent = Self.now
        let count = try self.connection.change(
            """
            UPDATE duties SET node = $1, expires_at = clock_timestamp() + make_interval(secs => $2)
            WHERE name = 'keeper' AND (node = $1 OR expires_at < clock_timestamp())
                AND EXISTS (SELECT 1 FROM fences WHERE node = $1 AND incarnation = $3)
            """, [self.number, Self.seconds, self.state.withLock { $0.incarnation }])
        self.state.withLock { state in
            state.keeperUntil = count > 0 ? sent + Self.leaseMs : 0
            state.isKeptElsewhere = count == 0
        }
    }

    private func countNodes() throws {
        let isDue = self.state.withLock { state in
            state.countsIn = state.countsIn > 0 ? state.countsIn - 1 : Self.renewalsPerCount - 1
            return state.countsIn == Self.renewalsPerCount - 1
        }
        guard isDue else { return }
        let count = try StoreAccess(self.connection).number("SELECT count(*) FROM nodes WHERE expires_at > clock_timestamp()") ?? 1
        self.state.withLock { $0.nodeCount = Int(count) }
    }

    /// Waits for a renewal that is under way, which would lengthen the lease once more; not for long.
    func stop() {
        self.state.withLock {
            $0.isOver = true
            $0.keeperUntil = 0
        }
        let done = DispatchSemaphore(value: 0)
        self.queue.async {
            self.connection.close()
            done.signal()
        }
        _ = done.wait(timeout: .now() + 1)
    }
}
