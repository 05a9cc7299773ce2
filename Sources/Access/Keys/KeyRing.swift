internal import Crypto
package import ServerConfiguration
import Support

/// The server's own secrets: from the configuration, else from the cluster's key, else made at the first start and kept in the data directory. Never
/// logged.
///
/// A plain value, read once at start. Printing it shows no key.
package struct KeyRing: Sendable, Equatable {
    /// Signs and checks `txSecret`.
    package var key: String
    /// A second key that checks `txSecret`, for key rotation.
    package var backupKey: String?
    /// Signs and checks `txSecret` of URLs for playing; nil: derived from `key`.
    package var ownPlayKey: String?
    /// HS256 key of tokens, at least 32 bytes; with a shorter one no token is made and none is accepted.
    package var jwtKey: String
    /// Signs webhooks and hooks.
    package var webhookKey: String
    /// Keys that come from the cluster's previous key, in place of those that come from its key. They check and never sign.
    package var former = Former()

    package struct Former: Sendable, Equatable {
        /// Nil: none.
        package var key: String?
        /// Nil: none.
        package var jwtKey: String?
    }

    package init(key: String, backupKey: String?, playKey: String? = nil, jwtKey: String, webhookKey: String) {
        self.key = key
        self.backupKey = backupKey
        self.ownPlayKey = playKey
        self.jwtKey = jwtKey
        self.webhookKey = webhookKey
    }

    /// Signs URLs for playing. Differs from the key of pushes, so that a play URL never allows a push.
    var playKey: String { self.ownPlayKey ?? Self.playKey(from: self.key) }

    /// Keys accepted for URLs for publishing.
    var publishKeys: [String] { [self.key, self.backupKey, self.former.key].compactMap { $0 } }

    /// Keys that check tokens.
    var jwtKeys: [String] { [self.jwtKey, self.former.jwtKey].compactMap { $0 } }

    /// Keys accepted for URLs for playing. Includes those for publishing, which allow more.
    var playKeys: [String] {
        let derived = self.ownPlayKey == nil ? self.publishKeys.map(Self.playKey) : []
        return (self.ownPlayKey.map { [$0] } ?? derived) + self.publishKeys
    }

    /// Keys of links to files; the first signs.
    var fileKeys: [String] { self.publishKeys.map { Self.derived(from: $0, "earshot file") } }

    private static func playKey(from key: String) -> String { Self.derived(from: key, "earshot play") }

    private static func derived(from key: String, _ use: String) -> String {
        SecretText.hex(HMAC<SHA256>.authenticationCode(for: Array(use.utf8), using: SymmetricKey(data: Array(key.utf8))))
    }

    /// Bytes. An HS256 key is at least as long as the hash (RFC 7518 §3.2).
    package static let leastJWTKeyBytes = 32
    /// Bytes of the other keys; the configuration requires the same.
    static let leastKeyBytes = 8

    /// Loads keys that the configuration does not set from the cluster's key, or from `keys.json` in the data directory if this server is alone.
    /// Blocks.
    ///
    /// Creates the file with mode 0600 when it is missing. Throws ``KeyFileError``, which names the file and the remedy.
    package static func load(config: ServerConfig) throws -> KeyRing {
        let set = config.credentials
        if let cluster = ClusterKey(config) { return try KeyRing(config, cluster).checked() }
        if let key = set.key, let jwtKey = set.jwtKey, let webhookKey = config.webhooks.key {
            // No key is missing, so no file is made: a read-only data directory does no harm here.
            return try KeyRing(key: key, backupKey: set.backupKey, playKey: set.playKey, jwtKey: jwtKey, webhookKey: webhookKey).checked()
        }
        let file = KeyFile(directory: config.data.directory)
        let stored = try file.readOrMake()
        return try KeyRing(
            key: set.key ?? stored.read("key", least: Self.leastKeyBytes),
            backupKey: set.backupKey, playKey: set.playKey,
            jwtKey: set.jwtKey ?? stored.read("jwtKey", least: Self.leastJWTKeyBytes),
            webhookKey: config.webhooks.key ?? stored.read("webhookKey", least: Self.leastKeyBytes)
        ).checked()
    }

    /// The same on each server of the cluster, if the configured keys are. Reads no file.
    private init(_ config: ServerConfig, _ cluster: ClusterKey) {
        let set = config.credentials
        func text(_ key: [UInt8]) -> String { SecretText.base64URL(key) }
        self.init(
            key: set.key ?? text(cluster.key(for: .urls)), backupKey: set.backupKey, playKey: set.playKey,
            jwtKey: set.jwtKey ?? text(cluster.key(for: .tokens)), webhookKey: config.webhooks.key ?? text(cluster.key(for: .webhooks)))
        if set.key == nil { self.former.key = cluster.previousKey(for: .urls).map(text) }
        if set.jwtKey == nil { self.former.jwtKey = cluster.previousKey(for: .tokens).map(text) }
    }

    /// Checks the keys again, for configurations that were not loaded and checked from a file.
    private func checked() throws(KeyFileError) -> KeyRing {
        let keys: [(String, String?, Int)] = [
            ("credentials.key", self.key, Self.leastKeyBytes), ("credentials.backupKey", self.backupKey, Self.leastKeyBytes),
            ("credentials.playKey", self.ownPlayKey, Self.leastKeyBytes),
            ("credentials.jwtKey", self.jwtKey, Self.leastJWTKeyBytes), ("webhooks.key", self.webhookKey, Self.leastKeyBytes),
        ]
        for case (let name, let key?, let least) in keys where key.utf8.count < least {
            throw KeyFileError("the setting \(name) has \(key.utf8.count) bytes; expected \(least) at least")
        }
        // txSecret is hash(key + name + time): with the keys "k" and "k1", a signature by "k" for "1x" is also one by "k1" for "x".
        if let (name, other) = ServerConfig.Credentials.beginningAlike(keys.prefix(3).map { ($0.0, $0.1) }) {
            throw KeyFileError("the key in \(name) begins with the key in \(other); expected keys that have nothing in common")
        }
        return self
    }
}

extension KeyRing: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "KeyRing(\(self.backupKey == nil ? "" : "with a backup key, ")keys not shown)" }
    package var debugDescription: String { self.description }
    /// Used by `dump` and test failures.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
