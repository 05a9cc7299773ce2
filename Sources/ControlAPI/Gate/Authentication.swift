import Crypto
import HTTPServer
import HTTPTypes
import NIOCore
import RoomStore
import Rooms
import Support
import Synchronization

/// Looks up a request's bearer token by its hash in the store. Any thread.
final class Authentication: Sendable {
    private let registry: RoomRegistry
    private let limits: RateLimits
    /// Hashes of secrets that were valid once. The throttle on an address does not apply to them.
    private let known = Mutex<Set<[UInt8]>>([])

    private static let knownLimit = 1_000
    /// Bytes. Longer secrets are not looked up.
    private static let longestSecret = 256

    init(registry: RoomRegistry, limits: RateLimits) {
        self.registry = registry
        self.limits = limits
    }

    /// Returns the request's valid token. Throws 401, or 429 after too many failures from its address.
    func token(_ headers: HTTPFields, from remote: SocketAddress?) async throws -> APIToken {
        let address = HostKey.of(remote)
        guard let secret = Self.secret(headers) else {
            // Not a guess and no load on the store, so never throttled.
            throw Self.unauthorized("This call needs a token: Authorization: Bearer earshot_….", isInvalid: false)
        }
        let hash = Array(SHA256.hash(data: Array(secret.utf8)))
        if !self.known.withLock({ $0.contains(hash) }) { try self.checkFailures(address) }
        let token: APIToken?
        do { token = try await self.registry.token(secret: secret) } catch { throw APIError(error) }
        guard let token, token.revokedAt == nil else {
            self.limits.failed(address: address)
            _ = self.known.withLock { $0.remove(hash) }
            throw Self.unauthorized("This token is unknown or revoked.", isInvalid: true)
        }
        self.known.withLock { known in
            if known.count >= Self.knownLimit { known.removeAll() }
            known.insert(hash)
        }
        return token
    }

    private func checkFailures(_ address: String) throws(APIError) {
        guard let wait = self.limits.mayTry(address: address) else { return }
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
