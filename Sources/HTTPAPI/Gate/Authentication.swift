import Crypto
package import HTTPServer
package import HTTPTypes
package import NIOCore
package import RoomRegistry
package import Rooms
import Support
import Synchronization

/// Looks up a request's bearer token by its hash in the store, or the token of a browser's login. Any thread.
package final class Authentication: Sendable {
    private let registry: RoomRegistry
    private let limits: RateLimits
    /// Counts refused requests.
    private let figures: CallFigures?
    private let sessions: (any BrowserSessions)?
    /// Hashes of secrets that were valid once. The throttle on an address does not apply to them.
    private let known = Mutex<Set<[UInt8]>>([])

    private static let knownLimit = 1_000
    /// Bytes. Longer secrets are not looked up.
    private static let longestSecret = 256

    init(registry: RoomRegistry, limits: RateLimits, figures: CallFigures? = nil, sessions: (any BrowserSessions)? = nil) {
        self.figures = figures
        self.registry = registry
        self.limits = limits
        self.sessions = sessions
    }

    /// Uses its own table of failures.
    package convenience init(registry: RoomRegistry, rate: Int, figures: CallFigures? = nil) {
        self.init(registry: registry, limits: RateLimits(rate: rate), figures: figures)
    }

    /// Returns the valid token of the request, or of its browser's login. Throws 401, or 429 after too many failures from its address.
    func token(_ request: HTTPRequest, from remote: SocketAddress?) async throws(APIError) -> APIToken {
        guard request.headerFields[.authorization] == nil, let id = try self.sessions?.tokenID(of: request) else {
            return try await self.token(request.headerFields, from: remote)
        }
        let token: APIToken?
        do { token = try await self.registry.token(id: id) } catch { throw APIError(error) }
        guard let token else { throw Self.unauthorized("The token of this login is revoked.", isInvalid: true) }
        return token
    }

    /// Returns the request's valid token. Throws 401, or 429 after too many failures from its address.
    package func token(_ headers: HTTPFields, from remote: SocketAddress?) async throws(APIError) -> APIToken {
        guard let secret = Self.secret(headers) else {
            // A missing token is not a guess and no load on the store, so it is never throttled.
            self.figures?.failed(.missing)
            throw Self.unauthorized("This call needs a token: Authorization: Bearer earshot_….", isInvalid: false)
        }
        return try await self.token(secret: secret, from: remote)
    }

    /// Returns the valid token with this secret. Throws 401, or 429 after too many failures from its address.
    package func token(secret: String, from remote: SocketAddress?) async throws(APIError) -> APIToken {
        let hash = Array(SHA256.hash(data: Array(secret.utf8)))
        if !self.known.withLock({ $0.contains(hash) }) { try self.checkFailures(remote) }
        let token: APIToken?
        do { token = try await self.registry.token(secret: secret) } catch { throw APIError(error) }
        guard let token, token.revokedAt == nil else {
            self.failed(remote)
            _ = self.known.withLock { $0.remove(hash) }
            throw Self.unauthorized("This token is unknown or revoked.", isInvalid: true)
        }
        self.known.withLock { known in
            if known.count >= Self.knownLimit { known.removeAll() }
            known.insert(hash)
        }
        return token
    }

    /// Counts a wrong credential from this address.
    package func failed(_ remote: SocketAddress?) {
        self.figures?.failed(.wrong)
        self.limits.failed(host: HostKey.of(remote))
    }

    /// Throws 429 after too many wrong credentials from this address.
    package func checkFailures(_ remote: SocketAddress?) throws(APIError) {
        guard let wait = self.limits.mayTry(host: HostKey.of(remote)) else { return }
        self.figures?.failed(.throttled)
        var error = APIError(.tooManyRequests, .rateLimited, "Too many calls without a valid token from this address.")
        error.headers[.retryAfter] = String(Int(wait.rounded(.up)))
        throw error
    }

    /// The bearer token (RFC 6750 §2.1): the scheme in any case, one space, the token.
    static func secret(_ headers: HTTPFields) -> String? {
        guard headers[values: .authorization].count == 1, let header = headers[.authorization] else { return nil }
        let parts = header.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer", (1...Self.longestSecret).contains(parts[1].utf8.count),
            parts[1].utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        return String(parts[1])
    }

    private static func unauthorized(_ message: String, isInvalid: Bool) -> APIError {
        var error = APIError(.unauthorized, .unauthorized, message)
        error.headers[.wwwAuthenticate] = isInvalid ? "Bearer realm=\"earshot\", error=\"invalid_token\"" : "Bearer realm=\"earshot\""
        return error
    }
}
