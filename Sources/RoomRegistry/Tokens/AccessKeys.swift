package import Rooms
import Store
import Support

/// Access keys as rows.
extension StoreAccess {
    private static func key(_ row: inout RowReader) throws -> AccessKey {
        AccessKey(id: row.next(), name: row.next(), role: try row.word(), createdAt: row.next(), revokedAt: row.optional())
    }

    private static let keyColumns = "id, name, role, created_at, revoked_at"

    func insert(_ key: AccessKey, secret: String) throws {
        try self.run(
            "INSERT INTO access_keys (id, name, role, secret, created_at) VALUES ($1, $2, $3, $4, $5)",
            [key.id, key.name, key.role.rawValue, secret, key.createdAt])
    }

    func keys() throws -> [AccessKey] {
        try self.all("SELECT \(Self.keyColumns) FROM access_keys ORDER BY created_at, id") { row in try Self.key(&row) }
    }

    /// The key with this id, even if it is revoked.
    func key(_ id: String) throws -> AccessKey? {
        try self.first("SELECT \(Self.keyColumns) FROM access_keys WHERE id = $1", [id]) { row in try Self.key(&row) }
    }

    /// The secret of a valid key.
    func keySecret(_ id: String) throws -> String? {
        try self.first("SELECT secret FROM access_keys WHERE id = $1 AND revoked_at IS NULL", [id]) { row in row.next() }
    }

    func validKeyCount() throws -> Int { Int(try self.number("SELECT count(*) FROM access_keys WHERE revoked_at IS NULL") ?? 0) }

    func hasKey(named name: String) throws -> Bool {
        try self.number("SELECT 1 FROM access_keys WHERE name = $1 AND revoked_at IS NULL", [name]) != nil
    }

    /// Also deletes the secret, which nothing needs any more.
    func revokeKey(_ id: String, now: Int64) throws {
        try self.run("UPDATE access_keys SET revoked_at = $1, secret = '' WHERE id = $2 AND revoked_at IS NULL", [now, id])
    }
}

extension RoomRegistry {
    /// A valid key with its secret; nil if there is none with this id.
    package nonisolated func accessKey(_ id: String) async throws(RegistryError) -> (key: AccessKey, secret: String)? {
        try await self.store.read { store in
            guard let key = try store.key(id), key.revokedAt == nil, let secret = try store.keySecret(id) else { return nil }
            return (key, secret)
        }
    }
}

extension TokenStore {
    package func createKey(name: String, role: TokenRole) throws(RegistryError) -> (key: AccessKey, secret: String) {
        try self.change { store, now in
            try RoomLimits.checkName(name, "name", longest: RoomLimits.tokenNameLength)
            guard try !store.hasKey(named: name) else { throw FieldError("name", name, "a valid key already has this name") }
            guard try store.validKeyCount() < RoomLimits.tokens else {
                throw RegistryError.tooMany(what: "keys", limit: RoomLimits.tokens)
            }
            let key = AccessKey(id: AccessKey.randomID(), name: name, role: role, createdAt: now, revokedAt: nil)
            let secret = AccessKey.randomSecret()
            try store.insert(key, secret: secret)
            var change = AuditChange()
            change.key(from: nil, to: key)
            try store.insert(Self.line("createKey", change), at: now)
            return (key, secret)
        }
    }

    /// All keys, including revoked ones.
    package func keys() throws(RegistryError) -> [AccessKey] { try self.read { try $0.keys() } }

    /// Revokes the key and returns it; nil if there is none with this id.
    package func revokeKey(_ id: String) throws(RegistryError) -> AccessKey? {
        try self.change { store, now in
            guard let old = try store.key(id) else { return nil }
            guard old.revokedAt == nil else { return old }
            try store.revokeKey(id, now: now)
            let key = try store.key(id) ?? old
            var change = AuditChange()
            change.key(from: old, to: key)
            try store.insert(Self.line("revokeKey", change), at: now)
            return key
        }
    }
}
