internal import Crypto
import Support

/// Signs the data that the console keeps in a browser's cookie. The key is in a file beside the store, so that a login outlives a restart. A value;
/// printing it shows no key.
package struct SessionKey: Sendable, CustomStringConvertible {
    private let key: SymmetricKey

    package static let fileName = "console.key"
    private static let advice = "remove it: the server then creates another, and whoever uses the console logs in again"

    package var description: String { "SessionKey(key not shown)" }

    /// Reads the key, or creates one when there is none. Blocks. Throws ``KeyFileError``.
    package init(directory: String) throws {
        self.key = SymmetricKey(data: try SecretFile.key(Self.fileName, in: directory, advice: Self.advice))
    }

    /// For tests: a key of its own.
    package init() { self.key = SymmetricKey(size: .bits256) }

    /// HMAC-SHA256 in base64url.
    package func signature(of text: String) -> String {
        SecretText.base64URL(Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: self.key)))
    }

    package func isSignature(_ signature: some StringProtocol, of text: String) -> Bool {
        SecretText.isEqual(Array(signature.utf8), Array(self.signature(of: text).utf8))
    }
}
