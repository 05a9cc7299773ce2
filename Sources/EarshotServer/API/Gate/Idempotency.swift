import Crypto
import HTTPTypes
import Hummingbird
import NIOCore
import Rooms
import Synchronization

/// Requests with an Idempotency-Key: each is carried out once, and a repetition gets the first one's answer. Any thread.
///
/// Only what succeeded is kept: a call that was refused changed nothing, and its repetition is judged anew. The registry stores the key in
/// the transaction of the call's effect; what the call answers follows after it.
final class Idempotency: Sendable {
    static let header = HTTPField.Name("Idempotency-Key")

    private let registry: RoomRegistry
    private struct Running: Hashable {
        let token: Int64
        let key: String
    }
    /// Being carried out now.
    private let running = Mutex<Set<Running>>([])

    init(registry: RoomRegistry) { self.registry = registry }

    /// The request's key, if it has one.
    static func key(_ request: Request, _ body: ByteBuffer, _ token: APIToken) throws(APIError) -> IdempotencyKey? {
        guard let name = Self.header, let text = request.headers[name] else { return nil }
        guard (1...128).contains(text.utf8.count), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw APIError(FieldError("Idempotency-Key", text, "expected 1 to 128 visible ASCII characters"))
        }
        var hash = SHA256()
        hash.update(data: Array("\(request.method.rawValue) \(request.uri.string)\n".utf8))
        body.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
        let fingerprint = hash.finalize().map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
        return IdempotencyKey(tokenID: token.id, key: text, fingerprint: fingerprint)
    }

    enum Answer: Sendable {
        case fresh(JSONValue)
        case stored(StoredAnswer)
    }

    /// The stored answer, or the call's own, which is stored then.
    func answer(_ key: IdempotencyKey, _ route: APIRoute, _ call: APICall, requestID: String) async throws -> Answer {
        let mine = Running(token: key.tokenID, key: key.key)
        guard self.running.withLock({ $0.insert(mine).inserted }) else { throw RegistryError.keyBusy(key.key) }
        defer { self.running.withLock { _ = $0.remove(mine) } }
        if let stored = try await self.registry.storedAnswer(key) { return .stored(stored) }
        let reply = try await IdempotencyKey.$current.withValue(key) { try await route.handle(call) }
        guard case .data(let data) = reply else { throw APIError(.internalServerError, .internal, "The call has no JSON answer.") }
        let kept = route.success.secret.map { data.replacing($0, with: .null) } ?? data
        let body = APIRoute.envelope(kept, requestID: requestID).text
        let answer = StoredAnswer(status: route.success.status.code, body: body)
        do {
            try await self.registry.store(answer, for: key)
        } catch {
            // What was asked for is done and on disk, and this answer is true. A repetition gets it as soon as the store takes it.
            self.registry.storeLater(answer, for: key)
        }
        return .fresh(data)
    }
}
