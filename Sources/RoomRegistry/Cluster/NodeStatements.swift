package import Rooms
import Store

/// The tables that nodes share their work by. They exist in PostgreSQL only.
extension StoreAccess {
    // MARK: - Signals

    /// Stores what a batch changed, for the other nodes. Returns its number: numbers are in the order of commits, without a gap.
    func insert(_ signal: NodeSignal, of node: Int64) throws -> Int64 {
        try self.insert(
            """
            WITH head AS (UPDATE heads SET signal = signal + 1 RETURNING signal)
            INSERT INTO signals (id, node, body) VALUES ((SELECT signal FROM head), $1, $2) RETURNING id
            """, [node, signal.text])
    }

    /// The newest number ever given.
    func lastSignal() throws -> Int64 { try self.number("SELECT signal FROM heads") ?? 0 }

    /// Signals after this one, oldest first, with the events that they name if `readsEvents`. That is asked
    /// after the signals were read: whoever begins to read later finds in the store what they name.
    ///
    /// Needs no transaction: an event is in the store when its signal is.
    func signals(after id: Int64, before end: Int64 = .max, limit: Int, readsEvents: () -> Bool) throws -> SignalPage {
        var page = SignalPage()
        // The last one known shows that none is missing. All nodes ask this many times a second: one index, and no more.
        try self.connection.query(
            """
            SELECT id, node, CASE WHEN id > $1 THEN body END FROM signals WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3
            """, [id, end, limit + 1]
        ) { row in
            var reader = RowReader(row: row)
            let (number, node): (Int64, Int64) = (reader.next(), reader.next())
            if number == id {
                page.hasLast = true
            } else {
                page.signals.append(SignalPage.Entry(id: number, node: node, signal: try NodeSignal(text: reader.next())))
            }
            return true
        }
        guard !page.signals.isEmpty else { return page }
        guard readsEvents() else { return page }
        let ids = page.signals.flatMap(\.signal.events)
        guard let first = ids.min(), let last = ids.max() else { return page }
        for event in try self.events(after: first - 1, room: nil, limit: Int(last - first) + 1) { page.events[event.id] = event }
        return page
    }

    /// Whether the signal behind this one is no longer kept, or the database has lost this one. `page`: what was read behind it.
    func isBehind(_ id: Int64, _ page: SignalPage) throws -> Bool {
        if let next = page.signals.first { return next.id != id + 1 }
        if page.hasLast { return false }
        // Before the first signal of all.
        let found = try self.first("SELECT signal, (SELECT min(id) FROM signals WHERE id > $1) FROM heads", [id]) {
            (row: inout RowReader) -> (head: Int64, next: Int64?) in (row.next(), row.optional())
        }
        return found?.head ?? 0 != id && found?.next != id + 1
    }

    /// The newest one stays: nodes know by it that they have missed none.
    func forgetSignals(limit: Int) throws -> Int {
        try self.change(
            """
            DELETE FROM signals WHERE id IN (
                SELECT id FROM signals WHERE at < clock_timestamp() - make_interval(secs => $1) AND id < (SELECT signal FROM heads)
                ORDER BY id LIMIT $2)
            """, [SignalPage.keptSeconds, limit])
    }

    // MARK: - Pushes of nodes

    /// A condition for rows that belong to this node, or to none: those of a database that was copied.
    var isMine: String { self.node.map { "node IN (0, \($0))" } ?? "TRUE" }

    /// Keeps who pushes, for claims that arrive at another node.
    func setClaim(_ sequence: Int64, _ claim: PushClaim) throws {
        try self.run(
            "UPDATE pushes SET node_identity = $1, node_rank = $2 WHERE sequence = $3",
            [TokenSecret.hash(claim.identity), claim.rank, sequence])
    }

    /// Open pushes of a stream on other nodes. Takeovers of the stream are counted since `ms`.
    func pushesElsewhere(of path: StreamPath, than node: Int64, takeoversSince ms: Int64) throws -> [PushElsewhere] {
        try self.all(
            """
            SELECT p.sequence, p.node_identity, p.node_rank, CASE WHEN n.state = 'running' THEN 1 ELSE 0 END,
                (SELECT count(*) FROM pushes WHERE app = $1 AND name = $2 AND how_ended = 'takenOver' AND ended_at > $3)
            FROM pushes p LEFT JOIN nodes n ON n.number = p.node
            WHERE p.app = $1 AND p.name = $2 AND p.ended_at IS NULL AND p.node <> $4 ORDER BY p.sequence
            """, [path.app, path.name, ms, node]
        ) { row in
            PushElsewhere(
                sequence: row.next(), identity: row.optional(), rank: row.optional() ?? 0, isOfRunningNode: row.next(),
                takeovers: row.next())
        }
    }

    /// Open pushes of a node. Those of a number that no node has are everybody's.
    func openPushes(of node: Int64, limit: Int) throws -> [StoredPush] {
        try self.pushes(where: "ended_at IS NULL AND node = $1", order: "sequence", [node], limit: limit)
    }

    /// Pushes of a node that have ended since then.
    func pushes(of node: Int64, endedSince ms: Int64, limit: Int) throws -> [StoredPush] {
        try self.pushes(where: "ended_at >= $1 AND node = $2", order: "sequence DESC", [ms, node], limit: limit)
    }

    /// The names of the nodes that have these pushes.
    func nodeNames(of sequences: [Int64]) throws -> [Int64: String] {
        try self.nodeNames(
            "pushes p", "p.sequence = ANY(CAST($1 AS BIGINT[]))", "{\(sequences.map(String.init).joined(separator: ","))}")
    }

    func nodeNames(ofRoom id: String) throws -> [Int64: String] {
        try self.nodeNames("slots s JOIN pushes p ON p.sequence = s.sequence", "s.room_id = $1", id)
    }

    private func nodeNames(_ tables: String, _ condition: String, _ argument: String) throws -> [Int64: String] {
        let rows = try self.all(
            "SELECT p.sequence, n.name FROM \(tables) JOIN nodes n ON n.number = p.node WHERE \(condition)", [argument]
        ) { (row: inout RowReader) -> (Int64, String) in (row.next(), row.next()) }
        return Dictionary(rows) { first, _ in first }
    }

    /// Gives the rows of a database that was copied to this node, which has the files.
    func adoptRows(by node: Int64) throws {
        for table in ["pushes", "recordings", "snapshots", "gatherings"] {
            try self.run("UPDATE \(table) SET node = $1 WHERE node = 0", [node])
        }
    }

    // MARK: - Nodes

    /// A node whose lease has ended, and whose work is not cleared away yet.
    func staleNode(besides node: Int64) throws -> (number: Int64, isFenced: Bool)? {
        try self.first(
            """
            SELECT number, CASE WHEN state = 'fenced' THEN 1 ELSE 0 END FROM nodes
            WHERE number <> $1 AND state <> 'gone' AND expires_at < clock_timestamp() ORDER BY number LIMIT 1
            """, [node]
        ) { row in (number: row.next(), isFenced: row.next()) }
    }

    /// Nobody registers before this transaction's end. False if somebody is at it.
    func lockRegistrations() throws -> Bool {
        try self.number("SELECT CASE WHEN pg_try_advisory_xact_lock($1) THEN 1 ELSE 0 END", [Membership.lock]) == 1
    }

    func setAddress(_ address: String?, of node: Int64) throws {
        try self.run("UPDATE nodes SET address = $1 WHERE number = $2", [address, node])
    }

    /// All nodes by name, but for those that are gone for a day.
    func nodes() throws -> [ClusterNode] {
        try self.nodes(where: "NOT (n.state = 'gone' AND n.expires_at < clock_timestamp() - make_interval(hours => 24))", [])
    }

    private func nodes(where condition: String, _ arguments: StoreArguments) throws -> [ClusterNode] {
        try self.all(
            """
            SELECT n.number, n.name, n.version, (extract(epoch FROM n.started_at) * 1000)::bigint,
                (extract(epoch FROM n.expires_at - clock_timestamp()) * 1000)::bigint, n.state, n.address,
                CASE WHEN d.node = n.number AND d.expires_at > clock_timestamp() THEN 1 ELSE 0 END,
                (SELECT count(*) FROM pushes p WHERE p.ended_at IS NULL AND p.node = n.number)
            FROM nodes n LEFT JOIN duties d ON d.name = 'keeper' WHERE \(condition) ORDER BY n.name
            """, arguments
        ) { row in
            let (number, name, version): (Int64, String, String) = (row.next(), row.next(), row.next())
            let (startedAt, leaseMs): (Int64, Int64) = (row.next(), row.next())
            let state: String = row.next()
            return ClusterNode(
                number: number, name: name, version: version, address: row.optional(), startedAt: startedAt, leaseMs: max(0, leaseMs),
                state: leaseMs > 0 ? .running : state == "gone" ? .gone : .lost, isKeeper: row.next(), pushes: row.next())
        }
    }

    /// The node that has this; nil if none has.
    func node(having thing: NodeThing) throws -> ClusterNode? {
        let (number, arguments): (String, StoreArguments) =
            switch thing {
            case .node(let number): ("$1", [number])
            case .stream(let name): try self.nodeOfPush(to: self.stream(named: name))
            case .room(let id):
                (
                    "(SELECT node FROM pushes WHERE room_id = $1 AND ended_at IS NULL ORDER BY slot, sequence DESC LIMIT 1)",
                    [try self.room(named: id)?.id.rawValue ?? id]
                )
            case .recording(let id): ("(SELECT node FROM recordings WHERE id = $1)", [id])
            case .gathering(let id): ("(SELECT node FROM gatherings WHERE id = $1)", [id])
            case .snapshot(let id): ("(SELECT node FROM snapshots WHERE id = $1)", [id])
            }
        return try self.nodes(where: "n.number = \(number)", arguments).first
    }

    private func nodeOfPush(to path: StreamPath) -> (String, StoreArguments) {
        (
            "(SELECT node FROM pushes WHERE app = $1 AND name = $2 AND ended_at IS NULL ORDER BY sequence DESC LIMIT 1)",
            [path.app, path.name]
        )
    }
}

/// What only one node has.
package enum NodeThing: Sendable, Equatable {
    /// Everything of the node with this number.
    case node(Int64)
    /// A running push.
    case stream(StreamPath)
    /// The running push of the room's first stream that has one.
    case room(String)
    /// A recording's file, by its id.
    case recording(String)
    /// A picture's file, by its id.
    case snapshot(String)
    /// An app's gathering.
    case gathering(String)
}

/// Signals in their order, as read at once.
struct SignalPage: Sendable {
    struct Entry: Sendable {
        let id: Int64
        let node: Int64
        let signal: NodeSignal
    }

    /// A node that was away for longer reads its tables anew.
    static let keptSeconds = 600

    /// Whether the one before them is there.
    var hasLast = false
    var signals: [Entry] = []
    var events: [Int64: RoomEvent] = [:]
}

/// An open push that another node has.
struct PushElsewhere {
    let sequence: Int64
    /// Hashed; nil if its node stored none.
    let identity: String?
    let rank: Int64
    /// False if the node was fenced: its publisher's connection counts as lost. A lease that has ended does not tell; the database may have been away.
    let isOfRunningNode: Bool
    /// How often its stream was taken over lately.
    let takeovers: Int64

    /// The rule of one node's streams, `PublisherIdentity.actsFor`.
    func isHeld(by claim: PushClaim) -> Bool { self.identity == TokenSecret.hash(claim.identity) && self.rank <= claim.rank }
}

/// A server that shares the registry, or did.
package struct ClusterNode: Sendable, Equatable {
    package enum State: String, Sendable, CaseIterable {
        case running
        /// Its lease has ended, and its pushes are not ended yet.
        case lost
        /// It has left, or its pushes were ended for it.
        case gone
    }

    /// Its number in the database.
    package let number: Int64
    package let name: String
    package let version: String
    /// `http://host:port`, where other nodes reach its API; nil if it named none.
    package let address: String?
    /// Milliseconds since 1970, by the database's clock.
    package let startedAt: Int64
    /// What is left of its lease; 0 when it has ended.
    package let leaseMs: Int64
    package let state: State
    /// Whether it applies deadlines, clears up after lost nodes and sends webhooks for all.
    package let isKeeper: Bool
    package let pushes: Int
}
