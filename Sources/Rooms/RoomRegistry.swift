// STUB: signatures to build against.
package actor RoomRegistry {
    package struct Settings: Sendable {
        package var policy = RoomPolicy()
        package var webhooks: [WebhookTarget] = []
        /// How long events, pushes and delivered notices are kept.
        package var historyMs: Int64 = 7 * 86_400_000
        package init() {}
    }
    /// What others must do or hear of, after the commit and in its order.
    package enum Outcome: Sendable {
        case event(RoomEvent)
        /// End the push with this sequence (nil: whatever is there) on this path.
        case cut(StreamPath, sequence: PushSequence?, PushEnd, endsViewers: Bool)
        /// The paused push counts as resumed only by media that comes later than now.
        case pauseAnnounced(StreamPath)
        /// A member was thrown out: end its sessions.
        case kick(roomID: RoomID, user: String)
    }
    /// Opens (or makes) the store in this folder and applies what became due while the server was away. Blocks: for start-up.
    package init(directory: String, settings: Settings, clock: RoomClock = RoomClock()) throws { fatalError() }
    /// Called with the outcomes of each commit, in order, on the registry's queue; must not block. Set once, before `start`.
    package nonisolated func onOutcome(_ body: @escaping @Sendable ([Outcome]) -> Void) { fatalError() }
    /// Applies `serverStarted` and overdue deadlines, then starts the timer.
    package func start() throws { fatalError() }
    /// Ends the timer and waits for what was submitted. Rooms stay as they are: a restart interrupts them.
    package func stop() async { fatalError() }

    // Rooms
    package nonisolated func create(_ new: NewRoom, by actor: Actor) async throws(RegistryError) -> Room { fatalError() }
    package nonisolated func update(_ id: String, _ patch: RoomPatch, by actor: Actor) async throws(RegistryError) -> Room { fatalError() }
    /// close, expire, forbid, resume, renew, heartbeat, pauseAnnounced. `action` names it in errors.
    package nonisolated func apply(_ input: RoomInput, to id: String, action: String, by actor: Actor) async throws(RegistryError) -> Room {
        fatalError()
    }
    /// Closes the room if it is open, then forgets it.
    package nonisolated func delete(_ id: String, by actor: Actor) async throws(RegistryError) { fatalError() }
    package nonisolated func like(_ id: String, count: Int) async throws(RegistryError) -> Room { fatalError() }
    package nonisolated func join(_ id: String, user: String, nick: String) async throws(RegistryError) -> Member { fatalError() }
    package nonisolated func leave(_ id: String, user: String) async throws(RegistryError) { fatalError() }
    package nonisolated func kick(_ id: String, user: String, by actor: Actor) async throws(RegistryError) { fatalError() }
    /// The largest number of viewers seen since the last call, by room.
    package nonisolated func reportViewers(_ peaks: [RoomID: Int]) { fatalError() }

    // Reads: any thread, concurrent with writes.
    package nonisolated func room(_ id: String) async throws(RegistryError) -> Room { fatalError() }
    package nonisolated func room(ofDevice uid: String) async throws(RegistryError) -> Room? { fatalError() }
    package nonisolated func room(ofStream path: StreamPath) async throws(RegistryError) -> Room? { fatalError() }
    package nonisolated func rooms(_ query: RoomQuery) async throws(RegistryError) -> RoomPage { fatalError() }
    /// Of each state, from maintained counters.
    package nonisolated func roomCounts() async throws(RegistryError) -> [RoomState: Int] { fatalError() }
    package nonisolated func members(_ id: String, after: String?, limit: Int) async throws(RegistryError) -> (total: Int, list: [Member]) {
        fatalError()
    }
    /// Events after this id (of one room or all), oldest first.
    package nonisolated func events(after id: Int64, room: String?, limit: Int) async throws(RegistryError) -> [RoomEvent] { fatalError() }
    package nonisolated func lastEventID() async throws(RegistryError) -> Int64 { fatalError() }

    // Streams
    package nonisolated func admitPush(_ request: PushRequest) async -> Result<PushGrant, PushRefusal> { fatalError() }
    // Facts: ordered as called, from any thread, never waiting.
    package nonisolated func mediaArrived(_ sequence: PushSequence, _ media: PushMedia) { fatalError() }
    package nonisolated func mediaIdle(_ sequence: PushSequence) { fatalError() }
    package nonisolated func pauseAnnounced(_ sequence: PushSequence) { fatalError() }
    package nonisolated func pushEnded(_ sequence: PushSequence, _ end: PushEnd) { fatalError() }
    package nonisolated func forbid(_ path: StreamPath, untilMs: Int64, reason: String, by actor: Actor) async throws(RegistryError)
        -> StreamBan
    { fatalError() }
    package nonisolated func resume(_ path: StreamPath, by actor: Actor) async throws(RegistryError) { fatalError() }
    package nonisolated func ban(of path: StreamPath) async throws(RegistryError) -> StreamBan? { fatalError() }
    package nonisolated func bans(after: String?, limit: Int) async throws(RegistryError) -> (total: Int, list: [StreamBan], next: String?)
    { fatalError() }
    /// Newest first; `before` is a sequence.
    package nonisolated func published(path: StreamPath?, fromMs: Int64?, toMs: Int64?, before: Int64?, limit: Int)
        async throws(RegistryError) -> [PublishedPush]
    { fatalError() }
    /// Why nobody may play this stream now (forbidden, room closed); from memory, for every join.
    package nonisolated func playRefusal(_ path: String) -> StateReason? { fatalError() }

    // Tokens
    package nonisolated func createToken(name: String, role: TokenRole) async throws(RegistryError) -> (token: APIToken, secret: String) {
        fatalError()
    }
    package nonisolated func tokens() async throws(RegistryError) -> [APIToken] { fatalError() }
    package nonisolated func revokeToken(_ id: Int64) async throws(RegistryError) -> APIToken? { fatalError() }
    package nonisolated func token(secret: String) async throws(RegistryError) -> APIToken? { fatalError() }

    // Idempotency: nil when the key is new.
    package nonisolated func storedAnswer(_ key: IdempotencyKey) async throws(RegistryError) -> StoredAnswer? { fatalError() }
    package nonisolated func store(_ answer: StoredAnswer, for key: IdempotencyKey) async throws(RegistryError) { fatalError() }

    // Outbox
    /// For each target and room, its oldest pending notice, if due by now; at most `limit` per target. And when the next is due.
    package nonisolated func dueNotices(limit: Int) async throws(RegistryError) -> (due: [OutboxEntry], nextAt: Int64?) { fatalError() }
    /// Records an attempt. `retryAt` nil: delivered when the status is 200, otherwise given up.
    package nonisolated func recordAttempt(_ id: Int64, status: Int?, error: String?, durationMs: Int64, retryAt: Int64?)
        async throws(RegistryError)
    { fatalError() }
    /// The delivery log, newest first.
    package nonisolated func notices(state: OutboxEntry.State?, room: String?, before: Int64?, limit: Int) async throws(RegistryError)
        -> [OutboxEntry]
    { fatalError() }
    package nonisolated func redeliver(_ id: Int64) async throws(RegistryError) -> OutboxEntry? { fatalError() }
}

/// Milliseconds since 1970 that never step: the wall clock at start, then the monotonic one.
package struct RoomClock: Sendable {
    package let now: @Sendable () -> Int64
    package init() { fatalError() }
    package init(now: @escaping @Sendable () -> Int64) { self.now = now }
}
