import Support

/// Signs and checks links to files of the API: `PATH?expires=SECONDS&signature=…`, which need no token. A value; printing it shows no key.
///
/// The signature is HMAC-SHA256 of method, path and expiry, in base64url. So a link opens one file, for GET and HEAD, until it expires. The
/// keys come from those of URLs for publishing: all nodes of a cluster have the same, and a link outlives a restart and a key's rotation.
package struct FileLinks: Sendable {
    /// The query's parameters.
    package static let expires = "expires"
    package static let signature = "signature"
    /// How long links may live, in seconds.
    package static let lifetimeSeconds: ClosedRange<Int64> = 60...604_800
    /// Seconds; unless the caller says otherwise.
    package static let usualSeconds: Int64 = 3_600

    /// The first signs, all check.
    private let keys: [String]

    package init(_ keys: KeyRing) { self.keys = keys.fileKeys }

    /// A link's failure. Only a link with a right signature is called expired.
    package enum Refusal: Error, Equatable {
        case wrong
        /// Seconds since 1970.
        case expired(Int64)
    }

    /// The path with its signed query. `path` begins with `/api/v1`; `expiresAt`: seconds since 1970.
    package func signed(_ path: String, expiresAt: Int64) -> String {
        let signature = Self.signature(path, "\(expiresAt)", key: self.keys[0])
        return "\(path)?\(Self.expires)=\(expiresAt)&\(Self.signature)=\(signature)"
    }

    /// `expires` and `signature` as sent: text that spells the same time otherwise has another signature.
    package func check(_ path: String, expires: String, signature: String, nowSeconds: Int64) throws(Refusal) {
        let given = Array(signature.utf8)
        var isRight = false
        // Always checks all keys, so that timing does not reveal which one is used.
        for key in self.keys { isRight = SecretText.isEqual(given, Array(Self.signature(path, expires, key: key).utf8)) || isRight }
        guard isRight, let expiresAt = Int64(expires) else { throw .wrong }
        guard nowSeconds < expiresAt else { throw .expired(expiresAt) }
    }

    /// GET stands for HEAD too (RFC 9110 §9.3.2).
    private static func signature(_ path: String, _ expires: String, key: String) -> String {
        SignedToken.signature(of: "GET\n\(path)\n\(expires)", key: key)
    }
}

extension FileLinks: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "FileLinks(keys not shown)" }
    package var debugDescription: String { self.description }
    /// Used by `dump` and test failures.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
