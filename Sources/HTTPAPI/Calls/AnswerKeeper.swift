import HTTPTypes
package import Rooms
import Support
import Synchronization

/// One call with an Idempotency-Key. Any thread.
final class KeyedCall: Sendable {
    package let key: IdempotencyKey
    private let requestID: String
    private let success: APISuccess
    private let kept = Mutex(false)

    package init(key: IdempotencyKey, requestID: String, success: APISuccess) {
        self.key = key
        self.requestID = requestID
        self.success = success
    }

    /// True once the effect's transaction has the answer. If that transaction fails, so does the call.
    package var isKept: Bool { self.kept.withLock { $0 } }

    /// The whole answer, in the form for the store: a secret that is shown once is null in it.
    package func stored(_ data: JSONValue) -> StoredAnswer {
        let shown = self.success.secret.map { data.replacing($0, with: .null) } ?? data
        return StoredAnswer(status: self.success.status.code, body: APIRoute.envelope(shown, requestID: self.requestID).text)
    }

    package func markKept() { self.kept.withLock { $0 = true } }
}

/// Stores the answer of a call with an Idempotency-Key in its effect's transaction. A value, made for each call.
package struct AnswerKeeper<Output: Sendable>: Sendable {
    /// Nil when the call has no key.
    let keyed: KeyedCall?
    package let outputType: OutputType<Output>

    /// Whether the call has a key, so that its answer is stored.
    package var isKeyed: Bool { self.keyed != nil }

    /// Runs an operation of the registry and returns the call's answer. With a key, `make` runs inside the operation's transaction, on the
    /// registry's queue: it must not block. When it throws, the operation is undone.
    package func callAsFunction<Value: Sendable>(
        _ make: @escaping @Sendable (Value) throws -> Output,
        of operation: (KeptAnswer<Value>?) async throws -> Value
    ) async throws -> Output {
        guard let keyed else { return try make(try await operation(nil)) }
        let made = Made<Output>()
        let outputType = self.outputType
        let keeping = KeptAnswer<Value>(key: keyed.key) { value in
            let result = Result { try make(value) }
            made.result.withLock { $0 = result }
            let output = try result.get()
            keyed.markKept()
            return keyed.stored(outputType.write(output))
        }
        do {
            let value = try await operation(keeping)
            return try made.result.withLock { $0 }?.get() ?? make(value)
        } catch {
            // The registry cannot carry an error of `make`: rethrows the original.
            if case .failure(let failure)? = made.result.withLock({ $0 }) { throw failure }
            throw error
        }
    }

    private final class Made<Answer: Sendable>: Sendable {
        package let result = Mutex<Result<Answer, any Error>?>(nil)
    }
}
