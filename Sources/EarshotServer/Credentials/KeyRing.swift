// STUB: signatures to build against.

/// The server's own secrets: from the configuration, or made at the first start and kept in the data directory. Never logged.
package struct KeyRing: Sendable, Equatable {
    /// Signs and checks `txSecret`.
    package var key: String
    package var backupKey: String?
    /// HS256 key of tokens, at least 32 bytes.
    package var jwtKey: String
    /// Signs webhooks.
    package var webhookKey: String

    package init(key: String, backupKey: String?, jwtKey: String, webhookKey: String) {
        self.key = key
        self.backupKey = backupKey
        self.jwtKey = jwtKey
        self.webhookKey = webhookKey
    }

    /// Reads `keys.json` in the data directory (made with mode 0600 when missing) for what the configuration does not set. Blocks.
    package static func load(config: ServerConfig) throws -> KeyRing { preconditionFailure("stub") }
}
