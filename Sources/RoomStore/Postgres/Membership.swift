import LibC
import Rooms
import Support

/// This server's place in a database, which one running server has: the number of its name, and the incarnation that fences it. Used by the
/// writer's thread.
///
/// `@unchecked Sendable`: the store's turn guards `batch`.
final class Membership: @unchecked Sendable {
    let number: Int64
    private let incarnation: Int64
    private let lease: NodeLease
    private var batch: Int64

    /// How long a node's place is kept for it after its last renewal, by the database's clock.
    static let leaseSeconds = 10
    private static let pauseUs: UInt32 = 250_000
    /// Registrations run one after the other. Any number that no other program in the database uses.
    private static let lock: Int64 = 0x6561_7273_686f_7432

    /// Takes the node's place. While another process uses the database, waits until its lease must have ended: a server that was killed on
    /// another machine leaves one behind. Throws ``StoreError`` once it is renewed. Blocks.
    init(_ place: PostgresPlace, _ writer: PostgresConnection) throws {
        let process = ProcessIdentity.current
        let deadline = ContinuousClock.now + .seconds(Self.leaseSeconds + 1)
        var first: Holder?
        waiting: while true {
            switch try Self.take(place, process, writer) {
            case .taken(let number, let incarnation, let batch):
                (self.number, self.incarnation, self.batch) = (number, incarnation, batch)
                break waiting
            case .held(let holder):
                first = first ?? holder
                guard holder == first, ContinuousClock.now < deadline else {
                    throw StoreError(
                        path: place.description, problem: "is in use by the running server \(holder.name)",
                        advice: "stop that one, or give this one a database of its own", isConflict: true)
                }
            }
            usleep(Self.pauseUs)
        }
        self.lease = NodeLease(place, number: self.number, incarnation: self.incarnation)
    }

    /// Another process in the database. One that runs renews its lease.
    private struct Holder: Equatable {
        let name: String
        let process: String
        let expires: String
    }

    private enum Attempt {
        case taken(number: Int64, incarnation: Int64, batch: Int64)
        case held(Holder)
    }

    private static func take(_ place: PostgresPlace, _ process: String, _ writer: PostgresConnection) throws -> Attempt {
        let store = StoreAccess(writer)
        try writer.begin()
        do {
            try writer.run("SELECT pg_advisory_xact_lock(?)", [self.lock])
            let others = try store.all(
                "SELECT name, process, expires_at FROM nodes WHERE expires_at > clock_timestamp() ORDER BY name = ? DESC", [place.node]
            ) { (row: inout RowReader) -> Holder in Holder(name: row.next(), process: row.next(), expires: row.next()) }
            if let other = others.first(where: { $0.process != process && !ProcessIdentity.isGone($0.process) }) {
                writer.rollback()
                return .held(other)
            }
            let number = try store.insert(
                """
                INSERT INTO nodes (name, process, version, started_at, expires_at)
                VALUES (?1, ?2, ?3, clock_timestamp(), clock_timestamp() + make_interval(secs => ?4))
                ON CONFLICT (name) DO UPDATE SET process = ?2, version = ?3, started_at = clock_timestamp(),
                    expires_at = clock_timestamp() + make_interval(secs => ?4)
                RETURNING number
                """, [place.node, process, place.version, self.leaseSeconds])
            // One server at a time writes, whatever the others' names are. Waits for a transaction that one of them is at.
            try writer.run("UPDATE fences SET incarnation = incarnation + 1 WHERE node <> ?", [number])
            let fence = try store.first(
                """
                INSERT INTO fences (node, incarnation, batch) VALUES (?, 1, 0)
                ON CONFLICT (node) DO UPDATE SET incarnation = fences.incarnation + 1 RETURNING incarnation, batch
                """, [number]
            ) { (row: inout RowReader) -> (incarnation: Int64, batch: Int64) in (row.next(), row.next()) }
            guard let fence else { throw StoreAccess.NoNewRow() }
            try writer.commit()
            return .taken(number: number, incarnation: fence.incarnation, batch: fence.batch)
        } catch {
            if writer.isOpen { writer.rollback() }
            throw error
        }
    }

    /// Begins a write transaction: the server refuses it once another process has taken the place. Returns the transaction's number.
    func fence(_ writer: PostgresConnection) throws -> Int64 {
        self.batch += 1
        try writer.run("SELECT earshot_fence(?, ?, ?)", [self.number, self.incarnation, self.batch])
        return self.batch
    }

    /// Whether a transaction whose COMMIT was never answered is in the database. One that the server is still at holds the fence's row: throws
    /// once that has been waited for too long. Throws, too, when another process has the place, and nobody can tell any more.
    func wasCommitted(_ batch: Int64, _ writer: PostgresConnection) throws -> Bool {
        try writer.open()
        let found = try StoreAccess(writer).number(
            "SELECT batch FROM fences WHERE node = ? AND incarnation = ? FOR UPDATE", [self.number, self.incarnation])
        guard let found else { throw CommitForgotten() }
        return found == batch
    }

    /// Gives the place up, so that the next process need not wait.
    func leave(_ writer: PostgresConnection) {
        self.lease.stop()
        guard writer.isOpen else { return }
        do {
            _ = try writer.change(
                "UPDATE nodes SET expires_at = clock_timestamp() WHERE number = ? AND process = ?", [self.number, ProcessIdentity.current])
        } catch {
            // The lease ends by itself.
        }
    }
}
