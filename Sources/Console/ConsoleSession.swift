package import Access
import Support

/// A browser's login, as its cookie holds it: the API token that it represents, and its expiry. Signed, so nothing is kept on the server, and a login
/// outlives a restart; revoking the token ends it. A value.
package struct ConsoleSession: Sendable, Equatable {
    package let tokenID: Int64
    /// Random; that of one login, however often it is renewed.
    private let id: String
    /// Milliseconds since 1970.
    private let beganAt: Int64
    /// Milliseconds since 1970.
    package let expiresAt: Int64
    /// The cookie's value. Secret.
    package let cookie: String
    /// The page sends it back in `X-Csrf-Token`. Another site's page cannot know it. Secret.
    package let csrf: String

    /// Twelve hours: a working day.
    package static let lifetimeMs: Int64 = 12 * 3_600_000
    /// An open page can renew its login for up to a week, so that a stolen cookie expires.
    package static let longestMs: Int64 = 7 * 24 * 3_600_000
    /// Bytes; a longer cookie is ignored.
    private static let longest = 256

    package init(for tokenID: Int64, nowMs: Int64, key: SessionKey) {
        self.init(for: tokenID, id: SecretText.random(), beganAt: nowMs, nowMs: nowMs, key: key)
    }

    private init(for tokenID: Int64, id: String, beganAt: Int64, nowMs: Int64, key: SessionKey) {
        let expiresAt = min(nowMs + Self.lifetimeMs, beganAt + Self.longestMs)
        let text = "2.\(tokenID).\(beganAt).\(expiresAt).\(id)"
        self.init(tokenID: tokenID, id: id, beganAt: beganAt, expiresAt: expiresAt, cookie: "\(text).\(key.signature(of: text))", key: key)
    }

    /// The same login with its whole time again, once half of it has passed; nil before, and at the end of ``longestMs``. `csrf` stays, so that
    /// other tabs go on.
    package func renewed(nowMs: Int64, key: SessionKey) -> ConsoleSession? {
        guard self.expiresAt - nowMs < Self.lifetimeMs / 2 else { return nil }
        let renewed = ConsoleSession(for: self.tokenID, id: self.id, beganAt: self.beganAt, nowMs: nowMs, key: key)
        return renewed.expiresAt > self.expiresAt ? renewed : nil
    }

    /// Nil when the cookie was not signed with this key or has expired.
    package init?(cookie: String, nowMs: Int64, key: SessionKey) {
        guard cookie.utf8.count <= Self.longest, let end = cookie.lastIndex(of: ".") else { return nil }
        let text = String(cookie[..<end])
        guard key.isSignature(cookie[cookie.index(after: end)...], of: text) else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 5, parts[0] == "2", let tokenID = Int64(parts[1]), let beganAt = Int64(parts[2]),
            let expiresAt = Int64(parts[3]), nowMs < expiresAt
        else { return nil }
        self.init(tokenID: tokenID, id: String(parts[4]), beganAt: beganAt, expiresAt: expiresAt, cookie: cookie, key: key)
    }

    private init(tokenID: Int64, id: String, beganAt: Int64, expiresAt: Int64, cookie: String, key: SessionKey) {
        self.tokenID = tokenID
        self.id = id
        self.beganAt = beganAt
        self.expiresAt = expiresAt
        self.cookie = cookie
        self.csrf = key.signature(of: Self.csrfText(tokenID, id))
    }

    private static func csrfText(_ tokenID: Int64, _ id: String) -> String { "csrf \(tokenID).\(id)" }

    /// Whether the page's proof is that of this login. Not compared with ``csrf``: while a cluster's key changes, a page may have the other one.
    package func isProven(by proof: String, key: SessionKey) -> Bool { key.isSignature(proof, of: Self.csrfText(self.tokenID, self.id)) }
}
