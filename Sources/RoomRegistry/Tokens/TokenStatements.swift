import Rooms
import Store

/// Tokens and stored answers as rows.
extension StoreAccess {
    private static func token(_ row: inout RowReader) throws -> APIToken {
        APIToken(
            id: row.next(), name: row.next(), role: try row.word(), createdAt: row.next(), revokedAt: row.optional(),
            scope: TokenScope(apps: Self.names(row.next()), rooms: Self.names(row.next())))
    }

    private static let tokenColumns = "id, name, role, created_at, revoked_at, apps, rooms"

    /// Names without commas, as one text.
    private static func names(_ text: String) -> [String] { text.split(separator: ",").map(String.init) }

    func insertToken(name: String, role: TokenRole, scope: TokenScope, hash: String, now: Int64) throws -> APIToken {
        let id = try self.insert(
            "INSERT INTO tokens (name, role, hash, created_at, apps, rooms) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
            [name, role.rawValue, hash, now, scope.apps.joined(separator: ","), scope.rooms.joined(separator: ",")])
        return APIToken(id: id, name: name, role: role, createdAt: now, revokedAt: nil, scope: scope)
    }

    func tokens() throws -> [APIToken] {
        try self.all("SELECT \(Self.tokenColumns) FROM tokens ORDER BY id") { row in try Self.token(&row) }
    }

    func validTokenCount() throws -> Int { Int(try self.number("SELECT count(*) FROM tokens WHERE revoked_at IS NULL") ?? 0) }

    func hasToken(named name: String) throws -> Bool {
        try self.number("SELECT 1 FROM tokens WHERE name = $1 AND revoked_at IS NULL", [name]) != nil
    }

    /// Finds valid tokens only.
    func token(hash: String) throws -> APIToken? {
        try self.first(
            "SELECT \(Self.tokenColumns) FROM tokens WHERE hash = $1 AND revoked_at IS NULL", [hash]
        ) { row in try Self.token(&row) }
    }

    /// Finds revoked tokens too.
    func tokenName(hash: String) throws -> (id: Int64, name: String)? {
        try self.first("SELECT id, name FROM tokens WHERE hash = $1", [hash]) { row in (id: row.next(), name: row.next()) }
    }

    /// Finds revoked tokens too.
    func token(_ id: Int64) throws -> APIToken? {
        try self.first("SELECT \(Self.tokenColumns) FROM tokens WHERE id = $1", [id]) { row in try Self.token(&row) }
    }

    /// Revokes the token and returns it, even if it was already revoked; nil if there is none.
    func revokeToken(_ id: Int64, now: Int64) throws -> APIToken? {
        try self.run("UPDATE tokens SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL", [now, id])
        return try self.token(id)
    }

    // MARK: - Idempotency

    /// Stores the answer under a new key. Throws if the key exists.
    func keep(_ answer: StoredAnswer, for key: IdempotencyKey, now: Int64) throws {
        let kept = try self.change(
            """
            INSERT INTO answers (token_id, key, fingerprint, created_at, status, body) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (token_id, key) DO NOTHING
            """, [key.tokenID, key.key, key.fingerprint, now, answer.status, answer.body])
        // A repeat gets the other request's answer.
        if kept == 0, try self.answer(to: key) != nil { throw RegistryError.keyBusy(key.key) }
    }

    /// The stored answer; nil if the key is new. Throws for another request's key.
    func answer(to key: IdempotencyKey) throws -> StoredAnswer? {
        let found = try self.first(
            "SELECT fingerprint, status, body FROM answers WHERE token_id = $1 AND key = $2", [key.tokenID, key.key]
        ) { (row: inout RowReader) -> (String, Int?, String?) in (row.next(), row.optional(), row.optional()) }
        guard let (fingerprint, status, body) = found else { return nil }
        guard fingerprint == key.fingerprint else { throw RegistryError.keyReused(key.key) }
        // Earlier versions stored the key first and the answer later, so the request was run.
        guard let status, let body else { throw RegistryError.keyOutcomeUnknown(key.key) }
        return StoredAnswer(status: status, body: body)
    }

    // MARK: - Members

    private static func member(_ row: inout RowReader) -> Member {
        Member(user: row.next(), nick: row.next(), joinedAt: row.next(), seenAt: row.next())
    }

    func member(_ user: String, of room: RoomID) throws -> Member? {
        try self.first(#"SELECT "user", nick, joined_at, seen_at FROM members WHERE room_id = $1 AND "user" = $2"#, [room.rawValue, user]) {
            row in
            Self.member(&row)
        }
    }

    /// Ordered by user.
    func members(of room: String, after user: String?, limit: Int) throws -> [Member] {
        try self.all(
            #"SELECT "user", nick, joined_at, seen_at FROM members WHERE room_id = $1 AND "user" > $2 ORDER BY "user" LIMIT $3"#,
            [room, user ?? "", limit]
        ) { row in Self.member(&row) }
    }

    func setMember(_ member: Member, of room: RoomID) throws {
        try self.run(
            """
            INSERT INTO members (room_id, "user", nick, joined_at, seen_at) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (room_id, "user") DO UPDATE SET nick = $3, seen_at = $5
            """, [room.rawValue, member.user, member.nick, member.joinedAt, member.seenAt])
    }

    func sawMember(_ user: String, of room: RoomID, at now: Int64) throws {
        try self.run(#"UPDATE members SET seen_at = $1 WHERE room_id = $2 AND "user" = $3"#, [now, room.rawValue, user])
    }

    /// False if there was none.
    func removeMember(_ user: String, of room: RoomID) throws -> Bool {
        try self.change(#"DELETE FROM members WHERE room_id = $1 AND "user" = $2"#, [room.rawValue, user]) > 0
    }

    func removeMembers(of room: RoomID) throws { try self.run("DELETE FROM members WHERE room_id = $1", [room.rawValue]) }
}
