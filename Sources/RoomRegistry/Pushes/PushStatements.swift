import Rooms
import Store

/// Pushes and bans as rows.
extension StoreAccess {
    private static let pushColumns = """
        sequence, app, name, room_id, slot, client_address, parameters, started_at, media_at, ended_at, how_ended, width, height, video_codec,
        audio_codec
        """

    private static func push(_ row: inout RowReader) -> StoredPush {
        let sequence: Int64 = row.next()
        let path = StreamPath(app: row.next(), name: row.next())
        let roomID = RoomID(stored: row.next())
        var push = StoredPush(
            sequence: sequence, path: path, roomID: roomID, slot: row.next(), clientAddress: row.next(), parameters: row.next(),
            startedAt: row.next())
        push.mediaAt = row.optional()
        push.endedAt = row.optional()
        let end: String? = row.optional()
        push.end = end.flatMap(PushEnd.init(rawValue:))
        push.media = MediaSummary(
            width: row.optional(), height: row.optional(), videoCodec: row.optional(), audioCodec: row.optional())
        return push
    }

    func push(_ sequence: Int64) throws -> StoredPush? {
        try self.first("SELECT \(Self.pushColumns) FROM pushes WHERE sequence = $1", [sequence]) { row in Self.push(&row) }
    }

    /// Inserts a push and returns its sequence.
    func insertPush(_ request: PushRequest, path: StreamPath, room: RoomID, slot: Int, now: Int64) throws -> Int64 {
        try self.insert(
            """
            INSERT INTO pushes (app, name, room_id, slot, client_address, session, parameters, query, started_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING sequence
            """,
            [
                path.app, path.name, room.rawValue, slot, request.clientAddress, Int64(bitPattern: request.session), request.parameters,
                request.query, now,
            ])
    }

    func setMedia(_ push: StoredPush) throws {
        try self.run(
            "UPDATE pushes SET media_at = $1, width = $2, height = $3, video_codec = $4, audio_codec = $5 WHERE sequence = $6",
            [push.mediaAt, push.media.width, push.media.height, push.media.videoCodec, push.media.audioCodec, push.sequence])
    }

    func setConnection(of sequence: Int64, _ request: PushRequest) throws {
        try self.run(
            "UPDATE pushes SET client_address = $1, session = $2 WHERE sequence = $3",
            [request.clientAddress, Int64(bitPattern: request.session), sequence])
    }

    func endPush(_ sequence: Int64, _ end: PushEnd, at now: Int64) throws {
        try self.run("UPDATE pushes SET ended_at = $1, how_ended = $2 WHERE sequence = $3", [now, end.rawValue, sequence])
    }

    /// The query of a push, and of the newest push of a stream that had begun by then. Nil if the history no longer has it.
    func pushQuery(_ sequence: Int64) throws -> String? {
        try self.first("SELECT query FROM pushes WHERE sequence = $1", [sequence]) { (row: inout RowReader) -> String in row.next() }
    }

    func pushQuery(of path: StreamPath, at: Int64) throws -> String? {
        try self.first(
            "SELECT query FROM pushes WHERE app = $1 AND name = $2 AND started_at <= $3 ORDER BY started_at DESC, sequence DESC LIMIT 1",
            [path.app, path.name, at]
        ) { (row: inout RowReader) -> String in row.next() }
    }

    func deletePush(_ sequence: Int64) throws { try self.run("DELETE FROM pushes WHERE sequence = $1", [sequence]) }

    func openPushes(after sequence: Int64, upTo last: Int64, limit: Int) throws -> [StoredPush] {
        try self.pushes(where: "ended_at IS NULL AND sequence > $1 AND sequence <= $2", order: "sequence", [sequence, last], limit: limit)
    }

    func pushes(where condition: String, order: String, _ arguments: [(any StoreConvertible)?], limit: Int) throws -> [StoredPush] {
        try self.all(
            "SELECT \(Self.pushColumns) FROM pushes WHERE \(condition) ORDER BY \(order) LIMIT $\(arguments.count + 1)",
            StoreArguments(arguments + [limit])
        ) { row in Self.push(&row) }
    }

    /// Newest first.
    func pushes(
        path: StreamPath?, scope: TokenScope = .all, fromMs: Int64?, toMs: Int64?, before: Int64?, limit: Int
    ) throws -> [StoredPush] {
        var filter = StoreFilter()
        if let path { filter.and("app = \(filter.mark(path.app)) AND name = \(filter.mark(path.name))") }
        if let fromMs { filter.and("started_at >= \(filter.mark(fromMs))") }
        if let toMs { filter.and("started_at < \(filter.mark(toMs))") }
        if let before {
            let mark = filter.mark(before)
            filter.and("(started_at, sequence) < ((SELECT started_at FROM pushes WHERE sequence = \(mark)), \(mark))")
        }
        filter.and(scope, app: "app", name: "name")
        return try self.all(
            "SELECT \(Self.pushColumns) FROM pushes WHERE \(filter.sql) ORDER BY started_at DESC, sequence DESC LIMIT \(filter.mark(limit))",
            filter.arguments
        ) { row in Self.push(&row) }
    }

    /// The running pushes, of one stream or of all.
    func runningPushes(of path: StreamPath?) throws -> [StoredPush] {
        let isThis = path == nil ? "" : " AND app = $1 AND name = $2"
        return try self.all(
            "SELECT \(Self.pushColumns) FROM pushes WHERE ended_at IS NULL\(isThis) ORDER BY sequence",
            StoreArguments(path.map { [$0.app, $0.name] } ?? [])
        ) { row in Self.push(&row) }
    }

    /// Pushes that have ended, and how many fit the query in all.
    func endedPushes(_ query: EndedPushQuery) throws -> (total: Int, list: [StoredPush]) {
        var filter = StoreFilter()
        filter.and("ended_at BETWEEN \(filter.mark(query.fromMs)) AND \(filter.mark(query.toMs))")
        if let app = query.app { filter.and("app = \(filter.mark(app))") }
        if let name = query.name {
            let mark = filter.mark(name)
            filter.and(query.isExact ? "name = \(mark)" : "\(self.connection.dialect.position(of: mark, in: "name")) > 0")
        }
        if query.onlyWithMedia { filter.and("media_at IS NOT NULL") }
        let order = query.isAscending ? "ASC" : "DESC"
        let total = try self.number("SELECT count(*) FROM pushes WHERE \(filter.sql)", filter.arguments) ?? 0
        let list = try self.all(
            """
            SELECT \(Self.pushColumns) FROM pushes WHERE \(filter.sql) ORDER BY ended_at \(order), sequence \(order)
            LIMIT \(filter.mark(query.limit)) OFFSET \(filter.mark(query.offset))
            """, filter.arguments
        ) { row in Self.push(&row) }
        return (Int(total), list)
    }

    // MARK: - Bans

    private static func ban(_ row: inout RowReader) -> StreamBan {
        StreamBan(path: StreamPath(app: row.next(), name: row.next()), createdAt: row.next(), resumeAt: row.next(), reason: row.next())
    }

    func ban(of path: StreamPath) throws -> StreamBan? {
        try self.first(
            "SELECT app, name, created_at, resume_at, reason FROM bans WHERE app = $1 AND name = $2", [path.app, path.name]
        ) { row in Self.ban(&row) }
    }

    /// Sets a ban; an existing one keeps its `created_at`.
    func setBan(of path: StreamPath, until resumeAt: Int64, reason: String, now: Int64) throws {
        try self.run(
            """
            INSERT INTO bans (app, name, created_at, resume_at, reason) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (app, name) DO UPDATE SET resume_at = $4, reason = $5
            """, [path.app, path.name, now, resumeAt, reason])
    }

    /// False if there was none.
    func removeBan(of path: StreamPath) throws -> Bool {
        try self.change("DELETE FROM bans WHERE app = $1 AND name = $2", [path.app, path.name]) > 0
    }

    func dueBans(now: Int64, limit: Int) throws -> [StreamBan] {
        try self.all(
            "SELECT app, name, created_at, resume_at, reason FROM bans WHERE resume_at <= $1 ORDER BY resume_at LIMIT $2", [now, limit]
        ) { row in Self.ban(&row) }
    }

    /// Ordered by app and name.
    func bans(after path: StreamPath?, scope: TokenScope = .all, limit: Int) throws -> [StreamBan] {
        var filter = StoreFilter()
        filter.and("(app, name) > (\(filter.mark(path?.app ?? "")), \(filter.mark(path?.name ?? "")))")
        filter.and(scope, app: "app", name: "name")
        return try self.all(
            """
            SELECT app, name, created_at, resume_at, reason FROM bans WHERE \(filter.sql) ORDER BY app, name LIMIT \(filter.mark(limit))
            """, filter.arguments
        ) { row in Self.ban(&row) }
    }

    func bans(ofName name: String?) throws -> [StreamBan] {
        let filter = name == nil ? "" : " WHERE name = $1"
        return try self.all(
            "SELECT app, name, created_at, resume_at, reason FROM bans\(filter) ORDER BY app, name",
            StoreArguments(name.map { [$0] } ?? [])
        ) { row in Self.ban(&row) }
    }

    func bannedStreams() throws -> [(path: StreamPath, terms: BanTerms)] {
        try self.all("SELECT app, name, resume_at, reason FROM bans") { row in
            (StreamPath(app: row.next(), name: row.next()), BanTerms(untilMs: row.next(), reason: row.next()))
        }
    }

    func banCount(scope: TokenScope = .all) throws -> Int {
        var filter = StoreFilter()
        filter.and(scope, app: "app", name: "name")
        return Int(try self.number("SELECT count(*) FROM bans WHERE \(filter.sql)", filter.arguments) ?? 0)
    }
}
