package import Rooms
import Store
import Support

/// Reads, from any thread and concurrent with writes. They see everything answered before.
extension RoomRegistry {
    /// Room time in milliseconds since 1970. It steps only to follow a leap of the wall clock that has held.
    package nonisolated var now: Int64 { self.clock.now() }

    package nonisolated func room(_ id: String) async throws(RegistryError) -> Room {
        guard let room = try await self.store.read({ try $0.room(id) }) else { throw .noSuchRoom(id) }
        return room
    }

    /// The room with this id, else the one of the device with this name: a device's name stands for its room's talk as for its stream.
    package nonisolated func room(named name: String) async throws(RegistryError) -> Room {
        guard let room = try await self.store.read({ try $0.room(named: name) }) else { throw .noSuchRoom(name) }
        return room
    }

    /// The device's open room, otherwise the one that ended last.
    package nonisolated func room(ofDevice uid: String) async throws(RegistryError) -> Room? {
        try await self.store.read { try $0.room(ofDevice: uid) }
    }

    package nonisolated func room(ofStream path: StreamPath) async throws(RegistryError) -> Room? {
        try await self.store.read { try $0.room(ofStream: path) }
    }

    /// The stream that a name stands for: a device's name stands for slot 1 of its room, unless a room has a stream of that very name. While the
    /// store cannot be read, a name stands for itself, because who plays or drops a running stream needs no store.
    package nonisolated func stream(named path: StreamPath) async -> StreamPath {
        guard RoomID.isID(path.name), self.mayBeDevice(path.name) else { return path }
        do { return try await self.store.readSeparately { try $0.stream(named: path) } } catch { return path }
    }

    package nonisolated func rooms(_ query: RoomQuery) async throws(RegistryError) -> RoomPage {
        try await self.store.read { try $0.rooms(query) }
    }

    /// Rooms per state, from maintained counters.
    package nonisolated func roomCounts() async throws(RegistryError) -> [RoomState: Int] {
        try await self.store.read { try $0.roomCounts() }
    }

    /// Members ordered by user. `after` is the previous page's last user.
    package nonisolated func members(_ id: String, after: String?, limit: Int) async throws(RegistryError) -> (total: Int, list: [Member]) {
        try await self.store.read { store in
            guard let room = try store.room(id) else { throw RegistryError.noSuchRoom(id) }
            return (room.members, try store.members(of: id, after: after, limit: Self.pageLimit(limit)))
        }
    }

    /// Events after this id (of one room or all), oldest first.
    package nonisolated func events(
        after id: Int64, room: String?, kinds: Set<RoomEvent.Kind> = [], scope: TokenScope = .all, limit: Int
    ) async throws(RegistryError) -> [RoomEvent] {
        try await self.store.read { try $0.events(after: id, room: room, kinds: kinds, scope: scope, limit: Self.pageLimit(limit)) }
    }

    /// A room's events before this id, newest first.
    package nonisolated func events(
        before id: Int64, room: String, kinds: Set<RoomEvent.Kind> = [], scope: TokenScope = .all, limit: Int
    ) async throws(RegistryError) -> [RoomEvent] {
        try await self.store.read { try $0.events(before: id, room: room, kinds: kinds, scope: scope, limit: Self.pageLimit(limit)) }
    }

    /// The newest event's id, forgotten ones included; 0 before the first.
    package nonisolated func lastEventID() async throws(RegistryError) -> Int64 { try await self.store.read { try $0.lastEventID() } }

    package nonisolated func ban(of path: StreamPath) async throws(RegistryError) -> StreamBan? {
        try await self.store.read { try $0.ban(of: path) }
    }

    /// Bans ordered by app and name. `after` is the previous page's `next`.
    package nonisolated func bans(
        after: String?, scope: TokenScope = .all, limit: Int
    ) async throws(RegistryError) -> (total: Int, list: [StreamBan], next: String?) {
        var path: StreamPath?
        if let after {
            let text =
                after.utf8.count <= StreamBan.longestCursor ? Base64URL.bytes(after).flatMap { String(validating: $0, as: UTF8.self) } : nil
            path = text.flatMap(StreamPath.init)
            guard path != nil else { throw .invalid(FieldError("after", after, "expected the previous page's `next`")) }
        }
        return try await self.store.read { [path] store in
            let limit = Self.pageLimit(limit)
            let bans = try store.bans(after: path, scope: scope, limit: limit + 1)
            let next = bans.count > limit ? Base64URL.text(bans[limit - 1].path.description) : nil
            return (try store.banCount(scope: scope), Array(bans.prefix(limit)), next)
        }
    }

    /// Pushes before sequence `before`, newest first.
    package nonisolated func published(
        path: StreamPath?, scope: TokenScope = .all, fromMs: Int64?, toMs: Int64?, before: Int64?, limit: Int
    ) async throws(RegistryError) -> [StoredPush] {
        try await self.store.read {
            try $0.pushes(path: path, scope: scope, fromMs: fromMs, toMs: toMs, before: before, limit: Self.pageLimit(limit))
        }
    }

    /// The running pushes, in the order in which they began.
    package nonisolated func runningPushes(of path: StreamPath? = nil) async throws(RegistryError) -> [StoredPush] {
        try await self.store.read { try $0.runningPushes(of: path) }
    }

    /// Pushes that have ended, a page of them, and how many there are in all.
    package nonisolated func endedPushes(_ query: EndedPushQuery) async throws(RegistryError) -> (total: Int, list: [StoredPush]) {
        try await self.store.read { try $0.endedPushes(query) }
    }

    /// All bans of streams with this name; nil: of all streams.
    package nonisolated func bans(ofName name: String?) async throws(RegistryError) -> [StreamBan] {
        try await self.store.read { try $0.bans(ofName: name) }
    }

    package nonisolated func tokens() async throws(RegistryError) -> [APIToken] { try await self.store.read { try $0.tokens() } }

    /// The valid token with this secret.
    package nonisolated func token(secret: String) async throws(RegistryError) -> APIToken? {
        let hash = TokenSecret.hash(secret)
        return try await self.store.readSeparately { try $0.token(hash: hash) }
    }

    /// The valid token with this id.
    package nonisolated func token(id: Int64) async throws(RegistryError) -> APIToken? {
        try await self.store.read { try $0.token(id) }.flatMap { $0.revokedAt == nil ? $0 : nil }
    }

    /// The answer stored under the key; nil if the key is new. Throws `keyReused` if another request used it.
    package nonisolated func storedAnswer(_ key: IdempotencyKey) async throws(RegistryError) -> StoredAnswer? {
        try await self.store.read { try $0.answer(to: key) }
    }

    /// The oldest pending delivery per target and room if due, and the next due time. Returns at most `limit` per target. A delivery stays due
    /// until ``recordAttempt(_:status:error:durationMs:retryAt:)``.
    package nonisolated func dueDeliveries(limit: Int) async throws(RegistryError) -> (due: [WebhookDelivery], nextAt: Int64?) {
        // One node sends for all, so that each room's deliveries stay in order.
        guard self.isKeeper else { return ([], nil) }
        let now = self.clock.now()
        return try await self.store.read { try $0.dueDeliveries(now: now, limit: Self.pageLimit(limit)) }
    }

    package nonisolated func delivery(_ id: Int64) async throws(RegistryError) -> WebhookDelivery? {
        try await self.store.read { try $0.delivery(id) }
    }

    /// The delivery log, newest first.
    package nonisolated func deliveries(
        state: WebhookDelivery.State?, room: String?, target: WebhookTarget? = nil, scope: TokenScope = .all, before: Int64?, limit: Int
    ) async throws(RegistryError) -> [WebhookDelivery] {
        try await self.store.read {
            try $0.deliveries(state: state, room: room, target: target, scope: scope, before: before, limit: Self.pageLimit(limit))
        }
    }

    /// Clamps page sizes to 1...10,000.
    private static func pageLimit(_ limit: Int) -> Int { min(max(1, limit), 10_000) }
}
