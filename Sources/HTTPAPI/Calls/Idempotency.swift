import Crypto
import HTTPServer
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import RoomRegistry
import Rooms
import Support
import Synchronization

/// Runs each request with an Idempotency-Key once; a repetition gets the first answer. Any thread.
///
/// Only successes are stored: a refused call changed nothing, and its repetition is judged anew. The answer is stored in the
/// transaction of the call's effect, so that a crash leaves both or neither. A call whose effect is outside the store
/// (``APIEffect/live``) has its answer stored afterwards; such effects end with the process, and a repetition that finds no answer
/// runs again.
final class Idempotency: Sendable {
    static let header = HTTPField.Name("Idempotency-Key")

    private let registry: RoomRegistry
    private let log: Logger
    private struct Running: Hashable {
        let token: Int64
        let key: String
    }
    /// Keys whose calls are running now.
    private let running = Mutex<Set<Running>>([])

    init(registry: RoomRegistry, log: Logger) {
        self.registry = registry
        self.log = log
    }

    /// The request's key, if it has one.
    static func key(_ request: Request, _ body: ByteBuffer, _ token: APIToken) throws(APIError) -> IdempotencyKey? {
        guard let name = Self.header, let text = request.headers[name] else { return nil }
        guard (1...128).contains(text.utf8.count), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw APIError(FieldError("Idempotency-Key", text, "expected 1 to 128 visible ASCII characters"))
        }
        var hash = SHA256()
        hash.update(data: Array("\(request.method.rawValue) \(request.uri.string)\n".utf8))
        body.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
        let fingerprint = SecretText.hex(hash.finalize())
        return IdempotencyKey(tokenID: token.id, key: text, fingerprint: fingerprint)
    }

    enum Answer: Sendable {
        case fresh(JSONValue)
        case stored(StoredAnswer)
    }

    /// Returns the stored answer, or runs the call and stores its answer. Throws ``RegistryError/keyBusy(_:)`` while another request
    /// with the key is running.
    func answer(_ key: IdempotencyKey, _ served: ServedRoute, _ call: Call<Void>, requestID: String) async throws -> Answer {
        let mine = Running(token: key.tokenID, key: key.key)
        guard self.running.withLock({ $0.insert(mine).inserted }) else { throw RegistryError.keyBusy(key.key) }
        defer { self.running.withLock { _ = $0.remove(mine) } }
        if let stored = try await self.registry.storedAnswer(key) { return .stored(stored) }
        let keyed = KeyedCall(key: key, requestID: requestID, success: served.route.success)
        var call = call
        call.keyed = keyed
        guard case .data(let data) = try await served.handle(call) else {
            throw APIError(.internalServerError, .internal, "The call has no JSON answer.")
        }
        guard !keyed.isKept else { return .fresh(data) }
        do {
            try await self.registry.keep(keyed.stored(data), for: key)
        } catch {
            // The effect cannot be undone: the caller gets its answer, and a repetition runs again.
            self.log.warning(
                "An answer was not stored for its Idempotency-Key",
                metadata: ["call": "\(served.route.name)", "error": "\(error)", "request": "\(requestID)"])
        }
        return .fresh(data)
    }
}
