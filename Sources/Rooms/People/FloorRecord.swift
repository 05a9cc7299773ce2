/// One decision about the floor, the right to speak in a room's talk channel. Its event goes to the audit trail.
package struct FloorRecord: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable {
        case granted, denied, revoked, released

        package var event: RoomEvent.Kind {
            switch self {
            case .granted: .floorGranted
            case .denied: .floorDenied
            case .revoked: .floorRevoked
            case .released: .floorReleased
            }
        }
    }

    package var kind: Kind
    package var user: String
    /// The reason, as a word of the floor's rules.
    package var reason: String
    /// "open" or "ptt".
    package var mode: String
    /// How long the floor was held; nil unless it was released or revoked.
    package var heldMs: Int64?
    /// The other participant or the API token that caused this; nil if only the rules did.
    package var by: String?
    /// The API token whose call caused this; nil if none did.
    package var caller: String?

    package init(kind: Kind, user: String, reason: String, mode: String, heldMs: Int64? = nil, by: String? = nil, caller: String? = nil) {
        self.kind = kind
        self.user = user
        self.reason = reason
        self.mode = mode
        self.heldMs = heldMs
        self.by = by
        self.caller = caller
    }
}
