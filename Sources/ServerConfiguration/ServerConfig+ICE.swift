extension ServerConfig {
    /// STUN and TURN servers through which browsers reach each other (RFC 8489, RFC 8656). The server names them; it is none itself.
    package struct ICE: Sendable, Equatable {
        /// `stun:`, `turn:` and `turns:` URLs, in the order for browsers.
        package var urls: [String] = []
        /// The same TURN credential for everybody.
        package var username: String?
        package var credential: String?
        /// Shared with the TURN server; credentials made with it expire. Excludes ``username`` and ``credential``.
        package var secret: String?
        /// How long these may be used.
        package var lifetimeMs: Int64 = 43_200_000

        package static let stun = "stun:"
        package static let turn = ["turn:", "turns:"]

        package var hasTURN: Bool { self.urls.contains { !$0.hasPrefix(Self.stun) } }
        package var hasCredential: Bool { self.secret != nil || (self.username != nil && self.credential != nil) }
    }
}
