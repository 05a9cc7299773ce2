import Dispatch
package import Rooms
package import Store
import Support
import Synchronization

/// The rooms of this server: rules, store and one timer. All changes run on one queue, many operations per transaction (group commit). An
/// operation is answered, and its outcomes published, only once it is on disk.
///
/// Reads run concurrently on the store's readers. After start-up no method blocks its caller.
package actor RoomRegistry {
    package struct Settings: Sendable {
        package var policy = RoomPolicy()
        package var webhooks: [WebhookTarget] = []
        /// Whether a target is notified of events of this kind.
        package var notifies: @Sendable (WebhookTarget, RoomEvent.Kind) -> Bool = { _, _ in true }
        /// How long events, pushes and ended deliveries are kept.
        package var historyMs: Int64 = 7 * 86_400_000
        package var audit = AuditRetention()
        /// Rejects a directory that another registry uses. Tests that simulate a killed server turn it off.
        package var isExclusive = true
        /// Below this much free disk, no room is created and no push begins.
        package var disk = DiskFloor()
        /// Called with each transaction's duration in microseconds, and whether it is on disk. On the registry's queue; must not block.
        package var committed: @Sendable (_ micros: Int64, _ isStored: Bool) -> Void = { _, _ in }
        /// Whether anybody here reads the events of other nodes that share the store. Otherwise their marks are published alone, and the
        /// events are not fetched. Asked at each look with news, on any thread; must not block.
        package var readsEvents: @Sendable () -> Bool = { true }
        /// Limits of the queue in front of the store.
        var intake = SubmissionQueue.Limits()
        package init() {}
    }

    /// Counts since the start.
    package struct Counters: Sendable, Equatable {
        package var commits = 0
        package var operations = 0
        /// Commits that failed: disk full, file damaged, in use elsewhere.
        package var failedCommits = 0
        /// Facts and deadlines that failed on their own in a batch that was committed.
        package var lostFacts = 0
        /// The store's message at the last failure.
        package var lastFailure: String?
    }

    /// Maximum operations in one transaction.
    static let batch = 256
    /// The same where nodes share the store, and its time.
    static let sharedBatch = 64
    static let sharedTime = Duration.milliseconds(20)...Duration.milliseconds(200)
    /// A batch may last for so many times what its end costs: the others do not wait for long, and most of the time is work.
    static let endsPerBatch = 8
    /// Pause before facts are retried after a failed commit.
    static let retrySeconds = 1.0
    static let housekeepingMs: Int64 = 60_000

    nonisolated let store: any RoomStore
    package nonisolated let clock: RoomClock
    nonisolated let probe = StoreProbe()
    let shares = HistoryShares()
    private nonisolated let liveSettings: Live<Settings>
    nonisolated var settings: Settings { self.liveSettings.current }
    let executor = QueueExecutor(label: "earshot.rooms")
    nonisolated let intake: SubmissionQueue
    let playTable = PlayTable()
    let devices = DeviceNames()
    nonisolated let kickTable = KickTable()
    nonisolated let runningPushes = RunningPushes()
    /// In a struct of its own: a generic container that holds a closure directly wraps it once more at each read.
    struct Listener {
        var body: @Sendable ([RoomOutcome]) -> Void = { _ in }
    }

    let listener = Mutex(Listener())
    let counted = Mutex(Counters())
    private let problemAtEnd = Mutex<String?>(nil)
    /// Whether a report of viewers waits for the store; another would only repeat it a little later.
    let isReporting = Atomic<Bool>(false)
    /// Webhooks made by the API.
    let hookCount = Atomic<Int>(0)

    var isRunning = false
    var isStopping = false
    let failing = Atomic<Bool>(false)
    /// The error of the last failed commit.
    var failure = RegistryError.storeFailed("")
    var lost: LostBatch?
    /// How long operations may join the next batch, where nodes share the store.
    var batchTime = RoomRegistry.sharedTime.lowerBound
    var absence = StoreAbsence()
    /// The last failed commit said that another process has this server's membership.
    var wasFenced = false
    var isFailing: Bool { self.failing.load(ordering: .relaxed) }
    private var lock: StoreLock?
    /// The instant for which the timer is set.
    var armedFor: Int64?
    var housekeepingAt: Int64 = 0
    /// Where nodes share the store: the newest signal that this one has carried out, its own included, and the newest event published.
    var lastSignal: Int64 = 0
    var lastEvent: Int64 = 0
    /// Another process has this node's name.
    var isDisplaced = false
    /// When to try to get it back, by the steady clock.
    var rejoinsAt: Int64 = 0
    /// As ``NodeLease/returns``, when it was last carried out.
    var returns = 0
    /// Where other nodes reach this one.
    let address = Mutex<String?>(nil)
    /// Stored results that wait for earlier ones of other nodes.
    var unpublished: [WorkResults] = []
    var follower: Task<Void, Never>?
    /// When this node last knew all signals of the others, by the steady clock.
    nonisolated let polledAt = Atomic<Int64>(0)

    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Opens or creates the store. Blocks: for start-up. Throws ``StoreError``.
    package init(_ location: StoreLocation, settings: Settings, clock: RoomClock = RoomClock()) throws {
        (self.store, self.lock) = try location.open(as: settings.isExclusive ? .server : .second)
        let membership = self.store.membership
        try self.store.readNow { store in
            // The mark is another node's, perhaps; the database's clock is everybody's.
            if let offset = membership?.lease.clockMs { clock.follow(offsetMs: offset) }
            clock.resume(from: membership == nil ? try store.clockMark() : nil, newestMs: try store.newestInstant())
        }
        self.liveSettings = Live(settings)
        self.intake = SubmissionQueue(settings.intake)
        self.clock = clock
        let now = clock.now()
        let tables = try self.store.readNow { try RefusalTables($0, now: now) }
        self.playTable.apply(tables.plays)
        if membership == nil { try self.store.readNow { [devices = self.devices] in try $0.eachDevice { devices.add($0) } } }
        self.kickTable.apply(tables.kicks, now: now)
        (self.lastSignal, self.lastEvent) = (tables.lastSignal, tables.lastEvent)
        self.hookCount.store(try self.store.readNow { try $0.webhooks().count }, ordering: .relaxed)
    }

    /// Changes settings from the next operation on, except those fixed at creation: exclusiveness and the limits of its queue.
    package nonisolated func update(_ change: (inout Settings) -> Void) { self.liveSettings.update(change) }

    /// Sets the handler of each commit's outcomes; once, before `start`. It runs in order, on the registry's queue, and must not block.
    package nonisolated func onOutcome(_ body: @escaping @Sendable ([RoomOutcome]) -> Void) { self.listener.withLock { $0.body = body } }

    /// Problems with the store's files at the start and their remedies, one log line each.
    package nonisolated var notices: [String] { self.store.notices }

    /// The reason why the store's changes could not be moved into its own file at shutdown; nil if they were, or before shutdown.
    package nonisolated var endProblem: String? { self.problemAtEnd.withLock { $0 } }

    package nonisolated var counters: Counters { self.counted.withLock { $0 } }

    /// The store's current state. Queries the file system.
    package nonisolated var storeStatus: StoreStatus {
        var status = StoreStatus()
        status.isFailing = self.failing.load(ordering: .relaxed)
        status.failure = self.counters.lastFailure
        status.freeBytes = self.settings.disk.freeBytes()
        status.minFreeBytes = self.settings.disk.minFreeBytes
        (status.waitingFacts, status.waitingBytes, status.droppedFacts) = self.intake.facts
        return status
    }

    /// The reason why nobody may play this stream now (forbidden, room closed). Reads memory, for use at every join.
    package nonisolated func playRefusal(_ path: String) -> StateReason? { self.playTable.refusal(path) }

    /// Whether the name may be a device's; one that is not needs no look into the store. Reads memory. Devices that other nodes add are in the store alone.
    package nonisolated func mayBeDevice(_ name: String) -> Bool { self.store.membership != nil || self.devices.mayHave(name) }

    package nonisolated func playBan(_ path: String) -> BanTerms? { self.playTable.ban(path) }

    // MARK: - Start and stop

    /// Ends everything that the last run left running, applies overdue deadlines, then starts the timer. Throws ``StoreError``.
    package func start() throws {
        let now = self.clock.now()
        // Others may have come back from a failure of the store just now, and do this work.
        let isFirst = self.store.membership.map { $0.lastLeftPush != nil } ?? true
        if !isFirst { self.absence.wait(from: self.clock.steadyMs) }
        do {
            let mark = self.clock.mark()
            try self.store.insistently {
                try self.store.transaction { store in
                    try store.dropOrphanedStrokes()
                    try store.save(mark)
                }
            }
            try self.clearUpLastRun(now)
            if isFirst { try self.inBatches(now) { work, last in try work.runDue(limit: Self.batch) ? last : nil } }
        } catch {
            throw self.store.explain(error)
        }
        self.isRunning = true
        self.armTimer()
        self.followOthers()
    }

    /// Ends what the last run of this server left. Where several nodes share the store, the first of them ends what all have left.
    private func clearUpLastRun(_ now: Int64) throws {
        let membership = self.store.membership
        if let membership, membership.lastLeftPush == nil {
            return try self.inBatches(now) { work, _ in try work.endPushes(ofLost: membership.number, limit: Self.batch) ? 0 : nil }
        }
        if let membership { try self.store.insistently { try self.store.transaction { try $0.adoptRows(by: membership.number) } } }
        let last = membership?.lastLeftPush ?? .max
        try self.inBatches(now) { work, after in try work.endLeftPushes(after: after, upTo: last, limit: Self.batch) }
        try self.inBatches(now) { work, after in try work.restartRooms(after: after, limit: Self.batch) }
    }

    /// Runs `body` in transactions of its own until it returns nil.
    private func inBatches(_ now: Int64, _ body: (RoomTransaction, Int64) throws -> Int64?) throws {
        var last: Int64 = 0
        let holdsDeadlines = self.absence.holdsDeadlines(at: self.clock.steadyMs)
        while true {
            let (next, done) = try self.store.insistently {
                try self.store.transaction { store in
                    let work = RoomTransaction(store: store, now: now, settings: self.settings, holdsDeadlines: holdsDeadlines)
                    let next = try body(work, last)
                    var done = WorkResults()
                    done.add(work)
                    try store.announce(&done)
                    return (next, done)
                }
            }
            self.publish(done)
            guard let next else { return }
            last = next
        }
    }

    /// Stops the timer, waits for submitted operations and closes the store. Rooms keep their state; a restart interrupts them.
    package func stop() async {
        self.isRunning = false
        self.isStopping = true
        self.follower?.cancel()
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let last = Operation(
                kind: .call, now: self.clock.now(),
                run: { [clock = self.clock] work in
                    try work.store.save(clock.mark())
                    return { continuation.resume() }
                }, fail: { _ in continuation.resume() })
            let (isFirst, schedule) = self.intake.stop(last)
            if !isFirst { continuation.resume() }
            if schedule { self.scheduleDrain() }
        }
        self.problemAtEnd.withLock { $0 = self.store.close() }
        self.lock = nil
    }

    // MARK: - Submission

    /// Runs a call in its turn and returns its result once on disk. Stores `keeping` in the same transaction. Calls `stored` with the result once on
    /// disk, on the registry's queue and in its order; it must not block. `isChange`: also stores the audit line of the current task's call.
    nonisolated func call<T: Sendable>(
        keeping: KeptAnswer<T>? = nil, isChange: Bool = true, stored: @escaping @Sendable (T) -> Void = { _ in },
        _ body: @escaping @Sendable (RoomTransaction) throws -> T
    ) async throws(RegistryError) -> T {
        switch await self.result(keeping: keeping, call: isChange ? AuditedCall.current : nil, stored: stored, body) {
        case .success(let value): return value
        case .failure(let error): throw RegistryError(of: error)
        }
    }

    nonisolated func result<T: Sendable>(
        keeping: KeptAnswer<T>? = nil, call: AuditedCall? = nil, stored: @escaping @Sendable (T) -> Void = { _ in },
        _ body: @escaping @Sendable (RoomTransaction) throws -> T
    ) async -> Result<T, any Error> {
        await withCheckedContinuation { continuation in
            let answer = self.intake.submit(.call, clock: self.clock) { now in
                Operation(
                    kind: .call, now: now,
                    run: { work in
                        let value = try body(work)
                        if let keeping { try work.store.keep(try keeping.answer(value), for: keeping.key, now: work.now) }
                        let line = try call?.due.map { try work.store.insert($0.with(work.change), at: work.now) }
                        return {
                            if let line { call?.stored(as: line) }
                            stored(value)
                            continuation.resume(returning: .success(value))
                        }
                    },
                    fail: { continuation.resume(returning: .failure($0)) })
            }
            switch answer {
            case .accepted(let schedule): if schedule { self.scheduleDrain() }
            case .full:
                continuation.resume(returning: .failure(RegistryError.tooMany(what: "waiting calls", limit: self.settings.intake.calls)))
            case .stopped: continuation.resume(returning: .failure(RegistryError.storeFailed("the server is stopping")))
            }
        }
    }

    /// Queues a fact that `make` builds under the queue's lock.
    nonisolated func submitFact(_ make: (Int64) -> Operation) {
        if case .accepted(schedule: true) = self.intake.submit(.fact, clock: self.clock, make) { self.scheduleDrain() }
    }

    /// Queues a fact. Calls `done` when it is on disk, or never will be.
    nonisolated func submit(done: @escaping @Sendable () -> Void = {}, _ body: @escaping @Sendable (RoomTransaction) throws -> Void) {
        self.submit(done: { _ in done() }, body)
    }

    /// Queues a fact of an audit trail. `bytes` is its approximate memory use.
    nonisolated func submit(trail bytes: Int, _ body: @escaping @Sendable (RoomTransaction) throws -> Void) {
        self.submit(.trail, bytes: bytes, done: { _ in }, body)
    }

    /// Queues a fact. Calls `done` with true when it is on disk, with false if it never will be.
    nonisolated func submit(
        done: @escaping @Sendable (_ isStored: Bool) -> Void, _ body: @escaping @Sendable (RoomTransaction) throws -> Void
    ) {
        self.submit(.fact, bytes: 512, done: done, body)
    }

    private nonisolated func submit(
        _ kind: Operation.Kind, bytes: Int, done: @escaping @Sendable (_ isStored: Bool) -> Void,
        _ body: @escaping @Sendable (RoomTransaction) throws -> Void
    ) {
        let answer = self.intake.submit(kind, clock: self.clock) { now in
            Operation(
                kind: kind, bytes: bytes, now: now,
                run: { work in
                    try body(work)
                    return { done(true) }
                },
                fail: { _ in done(false) })
        }
        if case .accepted(schedule: true) = answer { self.scheduleDrain() }
    }

    nonisolated func scheduleDrain(after seconds: Double = 0) {
        let drain: @Sendable () -> Void = { [weak self] in self?.assumeIsolated { $0.drain() } }
        if seconds > 0 {
            self.executor.queue.asyncAfter(deadline: .now() + seconds, execute: drain)
        } else {
            self.executor.queue.async(execute: drain)
        }
    }
}
