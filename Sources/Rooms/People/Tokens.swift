/// The permissions of an API caller. Each role includes those after it.
package enum TokenRole: String, Sendable, CaseIterable, Comparable {
    /// Everything, tokens and deletion included.
    case admin
    /// Rooms, streams, sessions: list, expire, drop, forbid.
    case ops
    /// A back end: create and look up rooms, URLs, members.
    case backend

    private var rank: Int { self == .admin ? 2 : self == .ops ? 1 : 0 }
    package static func < (left: TokenRole, right: TokenRole) -> Bool { left.rank < right.rank }
}

/// An API token as listed; only its owner knows the secret.
package struct APIToken: Sendable, Equatable {
    package let id: Int64
    package let name: String
    package let role: TokenRole
    package let createdAt: Int64
    package let revokedAt: Int64?
    package let scope: TokenScope

    package init(id: Int64, name: String, role: TokenRole, createdAt: Int64, revokedAt: Int64?, scope: TokenScope = .all) {
        self.id = id
        self.name = name
        self.role = role
        self.createdAt = createdAt
        self.revokedAt = revokedAt
        self.scope = scope
    }
}
