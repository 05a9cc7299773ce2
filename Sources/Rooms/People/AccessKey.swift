import Support

/// A key pair with which a back end signs its requests, as cloud services have them: an id that is no secret, and a secret. A value.
///
/// Signatures are checked with the secret itself, so the store holds it and not its hash.
package struct AccessKey: Sendable, Equatable {
    /// "AKID" and 28 letters and digits.
    package let id: String
    package let name: String
    package let role: TokenRole
    /// Milliseconds since 1970.
    package let createdAt: Int64
    package let revokedAt: Int64?

    package init(id: String, name: String, role: TokenRole, createdAt: Int64, revokedAt: Int64?) {
        self.id = id
        self.name = name
        self.role = role
        self.createdAt = createdAt
        self.revokedAt = revokedAt
    }

    package static let prefix = "AKID"

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")

    private static func random(_ length: Int) -> String {
        var generator = SystemRandomNumberGenerator()
        return String((0..<length).map { _ in self.alphabet[Int.random(in: self.alphabet.indices, using: &generator)] })
    }

    package static func randomID() -> String { self.prefix + self.random(28) }

    /// 32 letters and digits: 190 bits.
    package static func randomSecret() -> String { self.random(32) }
}

extension AuditChange {
    /// A created or a revoked key.
    package mutating func key(from old: AccessKey?, to new: AccessKey) {
        self.object = "key/\(new.id)"
        self.add("name", from: old.map { .string($0.name) }, to: .string(new.name))
        self.add("role", from: old.map { .string($0.role.rawValue) }, to: .string(new.role.rawValue))
        self.add("revokedAt", from: old?.revokedAt.map { .string(Instant.text($0)) }, to: new.revokedAt.map { .string(Instant.text($0)) })
    }
}
