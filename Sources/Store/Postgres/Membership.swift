import LibC
import Rooms
import Support

/// This server's membership in a database: the number of its name, and the incarnation that fences it. One running server has it, or the nodes of a
/// cluster, each under its name. Used by the writer's thread.
///
/// `@unchecked Sendable`: the store's turn guards `batch`.
package final class Membership: @unchecked Sendable {
    package let number: Int64
    package let lease: NodeLease
    /// The newest push when this node registered, if no other one can run: all up to it have ended with their servers. Nil if others may run.
    package let lastLeftPush: Int64?
    private let location: PostgresLocation
    private var incarnation: Int64
    private var batch: Int64
    /// Up to this one, another process with the same number has counted since.
    private var forgottenBatch: Int64 = 0

    package var name: String { self.location.node }

    private static let pauseUs: UInt32 = 250_000
    /// Registrations run one after the other. Any number that no other program in the database uses.
    package static let lock: Int64 = 0x6561_7273_686f_7432

    /// Takes the node's membership. While another process has it, waits until its lease must have ended: a server that was killed on another machine
    /// leaves one behind. Waits as long for nodes whose lease has ended: after a failure of the database those that run renew theirs. Throws
    /// ``StoreError`` once the membership's lease is renewed. Blocks.
    init(_ location: PostgresLocation, _ writer: PostgresConnection) throws {
        self.location = location
        let (deadline, end) = (ContinuousClock.now + .seconds(NodeLease.seconds + 1), ContinuousClock.now + PostgresStore.startPatience)
        var first: Holder?
        while true {
            let isOver = ContinuousClock.now >= deadline
            let attempt: Attempt
            do {
                attempt = try Self.acquire(location, isOver ? .decides : .asks, writer)
            } catch  where PostgresFailure.state(of: error) == PostgresFailure.lockTimeout && ContinuousClock.now < end {
                // Others register, or the keeper clears up.
                attempt = .doubtful
            }
            switch attempt {
            case .acquired(let acquired):
                (self.number, self.lastLeftPush) = (acquired.number, acquired.lastLeftPush)
                (self.incarnation, self.batch) = (acquired.incarnation, acquired.batch)
                self.lease = NodeLease(location, number: acquired.number, incarnation: acquired.incarnation)
                return
            case .held(let holder):
                first = first ?? holder
                guard holder == first, !isOver else { throw Self.conflict(holder, location) }
            case .doubtful: break
            }
            usleep(Self.pauseUs)
        }
    }

    /// What a registration does about nodes that may run although their lease has ended.
    private enum Manner {
        /// Does not register yet.
        case asks
        /// Takes them for dead, if no other node has a lease: they are fenced, and all that ran has ended.
        case decides
        /// Leaves them to the keeper.
        case rejoins
    }

    /// Another process in the database. One that runs renews its lease.
    private struct Holder: Equatable {
        let name: String
        let process: String
        let expires: String
        /// As ``PostgresLocation/keys``; empty for a server that has the database to itself.
        let keys: String
    }

    private struct Row {
        let holder: Holder
        let number: Int64
        let hasLease: Bool
        let isGone: Bool
    }

    private enum Attempt {
        case acquired(Acquired)
        case held(Holder)
        case doubtful
    }

    private struct Acquired {
        let number: Int64
        let incarnation: Int64
        let batch: Int64
        let lastLeftPush: Int64?
        /// Whether another process had the membership.
        let wasAnothers: Bool
    }

    private static func conflict(_ holder: Holder, _ location: PostgresLocation) -> StoreError {
        let (problem, advice): (String, String) =
            switch (location.cluster, holder.keys) {
            case (nil, ""):
                ("is in use by the running server \(holder.name)", "stop that one, or give this one a database of its own")
            case (nil, _):
                (
                    "is in use by the cluster of the running node \(holder.name)",
                    "set cluster.key to the cluster's key to join it, or give this server a database of its own"
                )
            case (_?, ""):
                (
                    "is in use by the running server \(holder.name), which has no cluster.key",
                    "set the same cluster.key there, and restart it first"
                )
            case (_?, _) where location.isOneCluster(with: holder.keys):
                ("has a running node with the name \(holder.name) already", "give each node a cluster.name of its own")
            case (_?, _) where location.knows(holder.keys):
                (
                    "is in use by the running node \(holder.name), which does not know this server's cluster.key",
                    "set it there as cluster.previousKey, and restart that one first"
                )
            case (_?, _):
                ("is in use by the running node \(holder.name), whose cluster.key is another one", "set the same cluster.key on all nodes")
            }
        return StoreError(path: location.description, problem: problem, advice: advice, isConflict: true)
    }

    private static func acquire(_ location: PostgresLocation, _ manner: Manner, _ writer: PostgresConnection) throws -> Attempt {
        let process = ProcessIdentity.current
        let store = StoreAccess(writer)
        try writer.begin()
        do {
            try writer.run("SELECT pg_advisory_xact_lock($1)", [self.lock])
            let rows = try store.all(
                """
                SELECT name, process, expires_at, key, number, CASE WHEN expires_at > clock_timestamp() THEN 1 ELSE 0 END,
                    CASE WHEN state = 'gone' THEN 1 ELSE 0 END FROM nodes ORDER BY name = $1 DESC
                """, [location.node]
            ) { (row: inout RowReader) -> Row in
                let holder = Holder(name: row.next(), process: row.next(), expires: row.next(), keys: row.next())
                return Row(holder: holder, number: row.next(), hasLease: row.next(), isGone: row.next())
            }
            let others = rows.filter { other in
                let isThis = other.holder.process == process && (location.cluster == nil || other.holder.name == location.node)
                return !isThis && !ProcessIdentity.isGone(other.holder.process)
            }
            let holders = others.filter(\.hasLease).map(\.holder)
            let rival = holders.first { location.cluster == nil || $0.name == location.node || !location.isOneCluster(with: $0.keys) }
            if let holder = rival {
                writer.rollback()
                return .held(holder)
            }
            let doubtful = others.filter { !$0.hasLease && !$0.isGone && $0.holder.name != location.node }
            let isAlone = location.cluster == nil || holders.isEmpty
            if location.cluster != nil, isAlone, !doubtful.isEmpty, manner == .asks {
                writer.rollback()
                return .doubtful
            }
            let isFirst = isAlone && manner != .rejoins
            let former = rows.first { $0.holder.name == location.node }?.holder.process
            let number = try store.insert(
                """
                INSERT INTO nodes (name, process, version, started_at, expires_at, key)
                VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp() + make_interval(secs => $4), $5)
                ON CONFLICT (name) DO UPDATE SET process = $2, version = $3, started_at = clock_timestamp(),
                    expires_at = clock_timestamp() + make_interval(secs => $4), key = $5, state = 'running',
                    address = CASE WHEN nodes.process = $2 THEN nodes.address END
                RETURNING number
                """, [location.node, process, location.version, NodeLease.seconds, location.keys])
            // Alone, one server at a time writes, whatever the others' names are. Waits for a transaction that one of them is at.
            if location.cluster == nil { try writer.run("UPDATE fences SET incarnation = incarnation + 1 WHERE node <> $1", [number]) }
            if location.cluster != nil, isFirst { for other in doubtful { try store.fence(other.number) } }
            let fence = try store.first(
                """
                INSERT INTO fences (node, incarnation, batch) VALUES ($1, 1, 0)
                ON CONFLICT (node) DO UPDATE SET incarnation = fences.incarnation + 1 RETURNING incarnation, batch
                """, [number]
            ) { (row: inout RowReader) -> (incarnation: Int64, batch: Int64) in (row.next(), row.next()) }
            guard let fence else { throw StoreAccess.NoNewRow() }
            let lastPush = try store.number("SELECT max(sequence) FROM pushes") ?? 0
            try writer.commit()
            return .acquired(
                Acquired(
                    number: number, incarnation: fence.incarnation, batch: fence.batch, lastLeftPush: isFirst ? lastPush : nil,
                    wasAnothers: former != nil && former != process))
        } catch {
            if writer.isOpen { writer.rollback() }
            throw error
        }
    }

    /// Takes the membership again after another node has ended this one's work, which this node learns from the signals. Throws if another process has
    /// the membership.
    func rejoin(_ writer: PostgresConnection) throws {
        try writer.open()
        guard case .acquired(let acquired) = try Self.acquire(self.location, .rejoins, writer) else { throw CommitForgotten() }
        // The other process has counted on, so that nobody can tell of batches before.
        if acquired.wasAnothers { self.forgottenBatch = self.batch }
        (self.incarnation, self.batch) = (acquired.incarnation, max(self.batch, acquired.batch))
        self.lease.rejoined(acquired.incarnation, wasAnothers: acquired.wasAnothers)
    }

    /// Begins a write transaction: the server refuses it once another process has taken the membership. Returns the transaction's number.
    func fence(_ writer: PostgresConnection) throws -> Int64 {
        self.batch += 1
        try writer.run("SELECT earshot_fence($1, $2, $3)", [self.number, self.incarnation, self.batch])
        return self.batch
    }

    /// Whether a transaction whose COMMIT was never answered is in the database. One that the server is still at holds the fence's row: throws
    /// once that has been waited for too long. Throws, too, when another process has the membership, and nobody can tell any more: only this process counts
    /// its batches, whoever fences it.
    func wasCommitted(_ batch: Int64, _ writer: PostgresConnection) throws -> Bool {
        guard batch > self.forgottenBatch else { throw CommitForgotten() }
        try writer.open()
        let found = try StoreAccess(writer).number(
            """
            SELECT f.batch FROM fences f JOIN nodes n ON n.number = f.node WHERE f.node = $1 AND n.process = $2 FOR UPDATE OF f
            """, [self.number, ProcessIdentity.current])
        guard let found else { throw CommitForgotten() }
        return found == batch
    }

    /// Gives the membership up, so that the next process need not wait.
    func leave(_ writer: PostgresConnection) {
        self.lease.stop()
        guard writer.isOpen else { return }
        do {
            let mine: StoreArguments = [self.number, ProcessIdentity.current]
            // What it could not end is the keeper's.
            _ = try writer.change(
                """
                UPDATE nodes SET expires_at = clock_timestamp(), state = CASE
                    WHEN EXISTS (SELECT 1 FROM pushes WHERE node = $1 AND ended_at IS NULL) THEN state ELSE 'gone' END
                WHERE number = $1 AND process = $2
                """, mine)
            _ = try writer.change(
                """
                UPDATE duties SET expires_at = clock_timestamp() WHERE node = $1 AND EXISTS (
                    SELECT 1 FROM nodes WHERE number = $1 AND process = $2)
                """, mine)
        } catch {
            // The lease ends by itself.
        }
    }
}

extension StoreAccess {
    /// From now on the node writes nothing more, until it has registered anew.
    package func fence(_ node: Int64) throws {
        try self.run("UPDATE fences SET incarnation = incarnation + 1 WHERE node = $1", [node])
        try self.set(node, "fenced")
    }

    package func markGone(_ node: Int64) throws { try self.set(node, "gone") }

    private func set(_ node: Int64, _ state: String) throws {
        try self.run("UPDATE nodes SET state = $1 WHERE number = $2", [state, node])
    }
}
