internal import Crypto
package import ServerConfiguration
import Support

/// The secret that the servers of a cluster share. Gives each of them the same keys, one for each use, so that none is copied.
///
/// A plain value; printing it shows no key.
package struct ClusterKey: Sendable {
    /// What a key is for. The raw value is its label: a changed one makes worthless what the key signed or sealed.
    package enum Use: String, Sendable, CaseIterable {
        /// Signs URLs: ``KeyRing/key``.
        case urls
        /// Signs tokens: ``KeyRing/jwtKey``.
        case tokens
        /// Signs webhooks and hooks: ``KeyRing/webhookKey``.
        case webhooks
        /// Signs the console's cookies: ``SessionKey``.
        case cookies
        /// Seals the addresses of links: ``URLVault``.
        case vault
        /// Seals one-time tickets: ``OneTimeTickets``.
        case tickets
    }

    private let current: [UInt8]
    private let previous: [UInt8]?

    /// `previous` checks and opens only. The configuration says which keys are good.
    package init(current: String, previous: String?) {
        self.current = Array(current.utf8)
        self.previous = previous.map { Array($0.utf8) }
    }

    /// Nil for a server that is alone.
    package init?(_ config: ServerConfig) {
        guard let key = config.cluster.key else { return nil }
        self.init(current: key, previous: config.cluster.previousKey)
    }

    /// 32 bytes that sign or seal.
    package func key(for use: Use) -> [UInt8] { Self.derived(from: self.current, use.rawValue, count: 32) }

    /// 32 bytes that check and open what the previous key made. Nil without a previous key.
    package func previousKey(for use: Use) -> [UInt8]? { self.previous.map { Self.derived(from: $0, use.rawValue, count: 32) } }

    /// Names the cluster: 16 bytes in hex, which say nothing of the key. Differs for another current key.
    package var fingerprint: String { Self.fingerprint(of: self.current) }

    /// The same of the previous key, by which the cluster is known until all its servers have the current one.
    package var previousFingerprint: String? { self.previous.map(Self.fingerprint) }

    private static func fingerprint(of key: [UInt8]) -> String { SecretText.hex(Self.derived(from: key, "fingerprint", count: 16)) }

    /// HKDF-SHA256 (RFC 5869). The salt keeps these keys apart from those that another program makes of the same secret.
    private static func derived(from key: [UInt8], _ label: String, count: Int) -> [UInt8] {
        let secret = SymmetricKey(data: key)
        return HKDF<SHA256>.deriveKey(
            inputKeyMaterial: secret, salt: Array("earshot cluster 1".utf8), info: Array(label.utf8), outputByteCount: count
        ).withUnsafeBytes { Array($0) }
    }
}

extension ClusterKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "ClusterKey(\(self.previous == nil ? "" : "with a previous key, ")keys not shown)" }
    package var debugDescription: String { self.description }
    /// Used by `dump` and test failures.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
