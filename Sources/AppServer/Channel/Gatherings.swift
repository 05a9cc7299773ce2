package import Apps
import Listening
import Logging
import RoomRegistry
package import Rooms
import ServerConfiguration
import ServiceLifecycle
import Support
import Synchronization

/// The gatherings that the store keeps: one for each kind and room in use. Any thread.
package final class Gatherings: Sendable {
    private let rooms: RoomRegistry
    private let kinds: GatheringKinds
    private let most: Int
    private let limits: LimitHits
    private let log: Logger
    /// Mutes or unmutes a member in its room's talk.
    private let mute: @Sendable (RoomID, String, Bool) async -> Void
    private let observe: GatheringRunner.Observer?
    /// Rooms of ended classes that are being closed.
    private let endings = Mutex<[RoomID: Task<Void, Never>]>([:])
    private let running = Mutex<[String: GatheringRunner]>([:])
    private struct Follower {
        var body: (@Sendable (GatheringRunner) -> Void)?
    }

    private let follower = Mutex(Follower())

    /// How late a deadline may be noticed.
    private static let tick = Duration.milliseconds(40)

    /// `observe` is called for all changes.
    init(
        _ rooms: RoomRegistry, kinds: GatheringKinds, most: Int, limits: LimitHits, log: Logger,
        mute: @escaping @Sendable (RoomID, String, Bool) async -> Void, observe: GatheringRunner.Observer? = nil
    ) {
        self.mute = mute
        self.observe = observe
        self.rooms = rooms
        self.kinds = kinds
        self.most = most
        self.limits = limits
        self.log = log
    }

    /// Classes and machines have rooms of their own, whose ids contain the kind.
    package static func id(kind: String, room: String) -> String {
        GatheringKinds.ownsRoom(kind) ? room : "\(kind)-\(room)"
    }

    /// Restores the gatherings from the store, with all members away. Returns the time, in milliseconds since 1970, from which those who were
    /// connected count as away. Call before the ports open.
    func start() async throws -> Int64 {
        let nowMs = self.rooms.now
        for stored in try await self.rooms.gatherings() {
            do {
                let gathering = try self.kinds.read(stored.kind, stored.state, nowMs: nowMs)
                let runner = self.runner(stored.id, stored.kind, stored.roomID, gathering, isStored: true, createdAtMs: stored.createdAt)
                self.running.withLock { $0[stored.id] = runner }
            } catch {
                self.log.error(
                    "A stored gathering cannot be read; it stays as it is", metadata: ["gathering": "\(stored.id)", "error": "\(error)"])
            }
        }
        return nowMs
    }

    private func runner(
        _ id: String, _ kind: String, _ room: RoomID, _ gathering: any GatheringDialect, isStored: Bool, createdAtMs: Int64
    ) -> GatheringRunner {
        GatheringRunner(
            id: id, kind: kind, room: room, gathering, isStored: isStored, createdAtMs: createdAtMs, rooms: self.rooms, limits: self.limits,
            mute: self.mute, observe: self.observe,
            whenChanged: { [weak self] changed in self?.follower.withLock { $0.body }?(changed) },
            whenOver: { [weak self] over in
                over.stop()
                // First, because callers that find the gathering gone wait for this.
                self?.release(over)
                self?.running.withLock { running in if running[over.id] === over { running[over.id] = nil } }
            })
    }

    /// Sets the follower of the gatherings' stored changes, ends included. Called in a gathering's turn; must not block.
    func whenChanged(_ body: @escaping @Sendable (GatheringRunner) -> Void) { self.follower.withLock { $0.body = body } }

    /// The room's gathering of this kind. If there is none, or only `over`, the result of `make`. Nil when there are too many, or `make` returns nil.
    func open(
        _ kind: String, _ room: RoomID, after over: GatheringRunner? = nil, _ make: () -> (any GatheringDialect)?
    ) -> GatheringRunner? {
        let id = Self.id(kind: kind, room: room.rawValue)
        return self.running.withLock { running in
            if let known = running[id], known !== over { return known }
            guard running.count < self.most else {
                self.limits.hit(.gatherings)
                return nil
            }
            guard let new = make() else { return nil }
            let made = self.runner(id, kind, room, new, isStored: false, createdAtMs: self.rooms.now)
            running[id] = made
            return made
        }
    }

    /// Whether the limit of gatherings is reached. Callers that must first make a room check this, so that a refusal leaves no room behind.
    func isFull() -> Bool {
        let isFull = self.running.withLock { $0.count >= self.most }
        if isFull { self.limits.hit(.gatherings) }
        return isFull
    }

    /// For a connecting member, who can open only a plain gathering.
    func open(_ kind: String, _ room: RoomID, after over: GatheringRunner? = nil) -> GatheringRunner? {
        self.open(kind, room, after: over) { kind == GatheringKinds.plain ? Gathering(limits: self.kinds.limits) : nil }
    }

    /// The gatherings of a kind.
    func of(_ kind: String) -> [GatheringRunner] { self.running.withLock { $0.values.filter { $0.kind == kind } } }

    var machineLimits: MachineLimits { self.kinds.machine }
    var classroomLimits: ClassroomLimits { self.kinds.classroom }

    func find(_ id: String) -> GatheringRunner? { self.running.withLock { $0[id] } }

    /// Closes the room of a class that has ended. If the server does not get to this, the room ends by itself.
    private func release(_ over: GatheringRunner) {
        guard over.kind == GatheringKinds.classroom, over.gathering.hasEnded else { return }
        let room = over.room
        self.endings.withLock { endings in
            endings[room] = Task { [weak self] in
                // Another class may have begun in the room in the meantime.
                guard let self else { return }
                if self.find(over.id).map({ $0 === over }) ?? true {
                    _ = try? await self.rooms.apply(.expire, to: room.rawValue, action: "expire", by: Actor("classes"))
                }
                self.endings.withLock { $0[room] = nil }
            }
        }
    }

    /// Returns when the room of a class that has just ended is closed as well.
    func roomHasEnded(_ room: RoomID) async { await self.endings.withLock { $0[room] }?.value }

    // MARK: - For the API

    /// A gathering as lists show it.
    package struct Snapshot: Sendable {
        package let id: String
        package let kind: String
        package let room: String
        /// Milliseconds since 1970; nil for gatherings kept in memory only.
        package let createdAtMs: Int64?
        package let gathering: Gathering
    }

    /// By kind, without those kept in memory only.
    package var counts: [String: Int] { self.running.withLock { $0.values.reduce(into: [:]) { $0[$1.kind, default: 0] += 1 } } }

    package var count: Int { self.running.withLock { $0.count } }

    package var all: [Snapshot] { self.running.withLock { Array($0.values) }.map(Self.snapshot) }

    package func snapshot(_ id: String) -> Snapshot? { self.find(id).map(Self.snapshot) }

    private static func snapshot(_ runner: GatheringRunner) -> Snapshot {
        Snapshot(
            id: runner.id, kind: runner.kind, room: runner.room.rawValue, createdAtMs: runner.createdAtMs, gathering: runner.gathering)
    }

    /// Applies an operator's input. Nil when there is no such gathering.
    package func apply(_ input: Gathering.Input, to id: String) async throws(GatheringRefusal) -> Snapshot? {
        guard let runner = self.find(id) else { return nil }
        switch await runner.outcome(of: .init(input: input), isUrgent: true) {
        case .success(let gathering):
            return Snapshot(
                id: runner.id, kind: runner.kind, room: runner.room.rawValue, createdAtMs: runner.createdAtMs,
                gathering: gathering.gathering)
        case .failure(.refused(let refusal)): throw refusal
        case .failure(let failure): throw .invalid(FieldError("gathering", id, failure.message))
        }
    }

    // MARK: - Decisions of rooms

    /// Removes a user that was kicked out of a room.
    package func kick(_ user: String, from room: RoomID) {
        for runner in self.of(room) { runner.submit(.init(input: .kick(id: user)), isUrgent: true) }
    }

    /// Ends the gatherings of a room that has ended.
    package func handle(_ events: [EventMark]) {
        for event in events where [.roomClosed, .roomExpired, .roomDeleted].contains(event.kind) {
            guard let room = event.roomID else { continue }
            for runner in self.of(room) where event.kind != .roomExpired || runner.kind != GatheringKinds.machine {
                // A machine that has not pushed for a day still exists: its next push opens the room again.
                runner.submit(.init(input: .end(reason: event.kind.rawValue)), isUrgent: true)
            }
        }
    }

    private func of(_ room: RoomID) -> [GatheringRunner] { self.running.withLock { $0.values.filter { $0.room == room } } }

    // MARK: - Time

    /// Applies deadlines as they pass.
    func run() async {
        while !Task.isCancelled {
            try? await Task.sleep(for: Self.tick)
            let nowMs = self.rooms.now
            for runner in self.running.withLock({ Array($0.values) }) { runner.tick(nowMs) }
        }
    }
}

/// Runs the gatherings' deadlines until the group shuts down.
package struct GatheringService: Service {
    private let gatherings: Gatherings

    package init(_ gatherings: Gatherings) { self.gatherings = gatherings }

    package func run() async throws { await cancelWhenGracefulShutdown { await self.gatherings.run() } }
}
