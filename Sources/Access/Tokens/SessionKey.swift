internal import Crypto
import Support

/// Signs the data that the console keeps in a browser's cookie. The key is in a file beside the store, so that a login outlives a restart; in
/// a cluster it comes from the cluster's key instead. A value; printing it shows no key.
package struct SessionKey: Sendable, CustomStringConvertible {
    private let key: SymmetricKey
    /// From the cluster's previous key; checks only.
    private let formerKey: SymmetricKey?

    package static let fileName = "console.key"
    private static let advice = "remove it: the server then creates another, and whoever uses the console logs in again"

    package var description: String { "SessionKey(key not shown)" }

    /// Without a cluster it reads the key, or creates one when there is none. Blocks. Throws ``KeyFileError``.
    package init(_ cluster: ClusterKey? = nil, directory: String) throws {
        if let cluster {
            self.key = SymmetricKey(data: cluster.key(for: .cookies))
            self.formerKey = cluster.previousKey(for: .cookies).map { SymmetricKey(data: $0) }
        } else {
            self.key = SymmetricKey(data: try SecretFile.key(Self.fileName, in: directory, advice: Self.advice))
            self.formerKey = nil
        }
    }

    /// For tests: a key of its own.
    package init() {
        self.key = SymmetricKey(size: .bits256)
        self.formerKey = nil
    }

    /// HMAC-SHA256 in base64url.
    package func signature(of text: String) -> String { Self.signature(of: text, self.key) }

    private static func signature(of text: String, _ key: SymmetricKey) -> String {
        SecretText.base64URL(Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key)))
    }

    package func isSignature(_ signature: some StringProtocol, of text: String) -> Bool {
        let given = Array(signature.utf8)
        let isOld = self.formerKey.map { SecretText.isEqual(given, Array(Self.signature(of: text, $0).utf8)) } ?? false
        return SecretText.isEqual(given, Array(self.signature(of: text).utf8)) || isOld
    }
}
