package import Rooms
import Store
import Synchronization

/// Calls that change the registry. Any thread.
extension RoomRegistry {
    // MARK: - Rooms

    package nonisolated func create(
        _ new: NewRoom, by actor: Actor, keeping: KeptAnswer<Room>? = nil
    ) async throws(RegistryError) -> Room {
        try await self.call(keeping: keeping) { try $0.create(new, by: actor) }
    }

    package nonisolated func update(
        _ id: String, _ patch: RoomPatch, if condition: RoomCondition? = nil, by actor: Actor
    ) async throws(RegistryError) -> Room {
        try await self.call { try $0.update(id, patch, if: condition, by: actor) }
    }

    /// Applies close, expire, forbid, resume, renew, heartbeat, finished or pauseAnnounced. `action` names it in errors.
    package nonisolated func apply(
        _ input: RoomInput, to id: String, action: String, if condition: RoomCondition? = nil, by actor: Actor,
        keeping: KeptAnswer<Room>? = nil
    ) async throws(RegistryError) -> Room {
        try await self.call(keeping: keeping) { try $0.apply(input, to: id, action: action, if: condition, by: actor) }
    }

    /// Closes the room if it is open, then forgets it.
    package nonisolated func delete(_ id: String, if condition: RoomCondition? = nil, by actor: Actor) async throws(RegistryError) {
        try await self.call { try $0.delete(id, if: condition, by: actor) }
    }

    package nonisolated func like(_ id: String, count: Int, keeping: KeptAnswer<Room>? = nil) async throws(RegistryError) -> Room {
        try await self.call(keeping: keeping) { try $0.like(id, count: count) }
    }

    /// Adds a member, or updates the one that joins again.
    package nonisolated func join(
        _ id: String, user: String, nick: String, keeping: KeptAnswer<Member>? = nil
    ) async throws(RegistryError) -> Member {
        try await self.call(keeping: keeping) { try $0.join(id, user: user, nick: nick) }
    }

    package nonisolated func leave(_ id: String, user: String, keeping: KeptAnswer<Void>? = nil) async throws(RegistryError) {
        try await self.call(keeping: keeping) { try $0.leave(id, user: user, as: .memberLeft, by: Actor(user)) }
    }

    /// Ends the user's sessions and bars the user for `forMs`.
    package nonisolated func kick(
        _ id: String, user: String, forMs: Int64 = Kick.defaultMs, by actor: Actor, keeping: KeptAnswer<Void>? = nil
    ) async throws(RegistryError) {
        try await self.call(keeping: keeping) { try $0.leave(id, user: user, as: .memberKicked, keepOutMs: forMs, by: actor) }
    }

    /// Reports peak viewers since the last call, by room. False if the last report still waits for the store.
    @discardableResult
    package nonisolated func reportViewers(_ peaks: [RoomID: Int]) -> Bool {
        guard !peaks.isEmpty else { return true }
        guard !self.isReporting.exchange(true, ordering: .relaxed) else { return false }
        self.submit(done: { [weak self] in self?.isReporting.store(false, ordering: .relaxed) }) { try $0.raisePeaks(peaks) }
        return true
    }

    // MARK: - Streams

    /// Forbids a stream, with or without a room. A device's name stands for slot 1 of its room.
    package nonisolated func forbid(
        _ path: StreamPath, untilMs: Int64, reason: String, by actor: Actor, keeping: KeptAnswer<StreamBan>? = nil
    ) async throws(RegistryError) -> StreamBan {
        try await self.call(keeping: keeping) { try $0.forbid(path, until: untilMs, reason: reason, by: actor) }
    }

    /// Lifts a stream's ban. Returns its room, if any.
    @discardableResult
    package nonisolated func resume(
        _ path: StreamPath, by actor: Actor, keeping: KeptAnswer<Room?>? = nil
    ) async throws(RegistryError) -> Room? {
        try await self.call(keeping: keeping) { try $0.resume(path, by: actor) }
    }

    // MARK: - Tokens

    /// A secret for ``createToken(name:role:scope:secret:keeping:)``.
    package static func randomTokenSecret() -> String { TokenSecret.random() }

    /// Creates a token with `secret` or a random one. Only the hash is stored; only the caller knows the secret.
    package nonisolated func createToken(
        name: String, role: TokenRole, scope: TokenScope = .all, secret: String? = nil, keeping: KeptAnswer<APIToken>? = nil
    ) async throws(RegistryError) -> (token: APIToken, secret: String) {
        let secret = secret ?? TokenSecret.random()
        let token = try await self.call(keeping: keeping) { work in
            let token = try TokenSecret.create(secret, name: name, role: role, scope: scope, in: work.store, now: work.now)
            work.change.token(from: nil, to: token)
            return token
        }
        return (token, secret)
    }

    /// Revokes a token and returns it; nil if there is none with this id.
    package nonisolated func revokeToken(_ id: Int64) async throws(RegistryError) -> APIToken? {
        try await self.call { work in
            let old = try work.store.token(id)
            let token = try work.store.revokeToken(id, now: work.now)
            if let token { work.change.token(from: old, to: token) }
            return token
        }
    }

    // MARK: - Idempotency

    /// Stores the answer to a request whose effect is outside the store.
    package nonisolated func keep(_ answer: StoredAnswer, for key: IdempotencyKey) async throws(RegistryError) {
        try await self.call { try $0.store.keep(answer, for: key, now: $0.now) }
    }

    // MARK: - Deliveries

    /// Records an attempt. Without a 2xx the delivery is retried at `retryAt`, or given up if that is nil.
    package nonisolated func recordAttempt(_ id: Int64, status: Int?, error: String?, durationMs: Int64, retryAt: Int64?)
        async throws(RegistryError)
    {
        _ = try await self.result {
            try $0.store.recordAttempt(id, status: status, error: error, durationMs: durationMs, retryAt: retryAt, now: $0.now)
        }.asRegistryResult.get()
    }

    /// Queues a copy of a delivery, or makes one that still waits due now; nil if there is none with this id.
    package nonisolated func redeliver(
        _ id: Int64, keeping: KeptAnswer<WebhookDelivery?>? = nil
    ) async throws(RegistryError) -> WebhookDelivery? {
        try await self.call(keeping: keeping) { try $0.store.redeliver(id, now: $0.now) }
    }
}

extension Result {
    var asRegistryResult: Result<Success, RegistryError> { self.mapError { RegistryError(of: $0) } }
}
