package import Access
import Support

/// A browser's login, as its cookie holds it: the API token that it represents, and its expiry. Signed, so nothing is kept on the server, and a login
/// outlives a restart; revoking the token ends it. A value.
package struct ConsoleSession: Sendable, Equatable {
    package let tokenID: Int64
    /// Milliseconds since 1970.
    package let expiresAt: Int64
    /// The cookie's value. Secret.
    package let cookie: String
    /// The page sends it back in `X-Csrf-Token`. Another site's page cannot know it. Secret.
    package let csrf: String

    /// Twelve hours: a working day.
    package static let lifetimeMs: Int64 = 12 * 3_600_000
    /// Bytes; a longer cookie is ignored.
    private static let longest = 256

    package init(for tokenID: Int64, nowMs: Int64, key: SessionKey) {
        let expiresAt = nowMs + Self.lifetimeMs
        let text = "1.\(tokenID).\(expiresAt).\(SecretText.random())"
        self.init(tokenID: tokenID, expiresAt: expiresAt, cookie: "\(text).\(key.signature(of: text))", key: key)
    }

    /// Nil when the cookie was not signed with this key or has expired.
    package init?(cookie: String, nowMs: Int64, key: SessionKey) {
        guard cookie.utf8.count <= Self.longest, let end = cookie.lastIndex(of: ".") else { return nil }
        let text = String(cookie[..<end])
        guard key.isSignature(cookie[cookie.index(after: end)...], of: text) else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[0] == "1", let tokenID = Int64(parts[1]), let expiresAt = Int64(parts[2]), nowMs < expiresAt else {
            return nil
        }
        self.init(tokenID: tokenID, expiresAt: expiresAt, cookie: cookie, key: key)
    }

    private init(tokenID: Int64, expiresAt: Int64, cookie: String, key: SessionKey) {
        self.tokenID = tokenID
        self.expiresAt = expiresAt
        self.cookie = cookie
        self.csrf = key.signature(of: "csrf \(cookie)")
    }
}
