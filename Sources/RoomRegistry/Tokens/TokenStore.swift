import Crypto
package import Rooms
package import Store
import Support

/// Secrets of API tokens.
enum TokenSecret {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")

    /// "earshot_" and 32 random base62 characters: 190 bits.
    static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        return "earshot_" + String((0..<32).map { _ in self.alphabet[Int.random(in: 0..<62, using: &generator)] })
    }

    /// SHA-256 in hex. Unsalted: a random secret of this length cannot be looked up in a table.
    static func hash(_ secret: String) -> String { SecretText.hex(SHA256.hash(data: Array(secret.utf8))) }

    static func create(
        _ secret: String, name: String, role: TokenRole, scope: TokenScope, in store: StoreAccess, now: Int64
    ) throws -> APIToken {
        try scope.check()
        try RoomLimits.checkName(name, "name", longest: RoomLimits.tokenNameLength)
        guard try !store.hasToken(named: name) else { throw FieldError("name", name, "a valid token already has this name") }
        guard try store.validTokenCount() < RoomLimits.tokens else {
            throw RegistryError.tooMany(what: "tokens", limit: RoomLimits.tokens)
        }
        return try store.insertToken(name: name, role: role, scope: scope, hash: self.hash(secret), now: now)
    }
}

/// The API tokens and access keys in a data directory or a database, with or without a server that runs on it. For the command line: every call blocks.
package final class TokenStore: Sendable {
    private let location: StoreLocation
    private let store: any RoomStore
    private let clock = RoomClock()

    /// Opens or creates the store. Throws ``StoreError``.
    package init(_ location: StoreLocation) throws {
        self.location = location
        self.store = try location.open(as: .tool).store
    }

    /// Problems found with the store's files.
    package var notices: [String] { self.store.notices }

    /// Closes the store, and leaves a running server's changes to it.
    package func close() { self.store.close(emptiesLog: !self.location.isOfRunningServer) }

    package func create(
        name: String, role: TokenRole, scope: TokenScope = .all
    ) throws(RegistryError) -> (token: APIToken, secret: String) {
        let secret = TokenSecret.random()
        let token = try self.change { store, now in
            let token = try TokenSecret.create(secret, name: name, role: role, scope: scope, in: store, now: now)
            try store.insert(Self.line("createToken", from: nil, to: token), at: now)
            return token
        }
        return (token, secret)
    }

    private static func line(_ operation: String, from old: APIToken?, to token: APIToken) -> AuditLine {
        var change = AuditChange()
        change.token(from: old, to: token)
        return self.line(operation, change)
    }

    /// The audit line of a change that the command line makes.
    static func line(_ operation: String, _ change: AuditChange) -> AuditLine {
        var line = AuditLine(operation)
        line.token = "cli"
        line.via = .cli
        return line.with(change)
    }

    /// All tokens, including revoked ones.
    package func list() throws(RegistryError) -> [APIToken] { try self.read { try $0.tokens() } }

    func read<Value: Sendable>(_ body: @escaping @Sendable (StoreAccess) throws -> Value) throws(RegistryError) -> Value {
        do {
            return try self.store.readNow(body)
        } catch {
            throw RegistryError(of: error)
        }
    }

    /// Runs a transaction and passes it the present time.
    func change<Value>(_ body: (StoreAccess, Int64) throws -> Value) throws(RegistryError) -> Value {
        do {
            return try self.store.transaction { try body($0, self.clock.now()) }
        } catch {
            throw RegistryError(of: error)
        }
    }

    /// Revokes the token and returns it; nil if there is none with this id.
    package func revoke(_ id: Int64) throws(RegistryError) -> APIToken? {
        try self.change { store, now in
            let old = try store.token(id)
            guard let token = try store.revokeToken(id, now: now) else { return nil }
            try store.insert(Self.line("revokeToken", from: old, to: token), at: now)
            return token
        }
    }
}
