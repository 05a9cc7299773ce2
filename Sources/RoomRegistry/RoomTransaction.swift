import Rooms
import Store
import Support

/// The work that a batch leaves for the time after its commit, in order. A value.
struct WorkResults {
    private(set) var outcomes: [RoomOutcome] = []
    private(set) var playChanges: [PlayTable.Change] = []
    /// Names that devices have got.
    private(set) var devices: [String] = []
    private(set) var kicks: [(kick: Kick, paths: [StreamPath])] = []
    private(set) var gone: [RoomID] = []
    private(set) var failures: [any Error] = []
    /// The number of the batch's ``NodeSignal``, if there is one.
    var signal: Int64?

    /// The id of its last event.
    var lastEvent: Int64? {
        for outcome in self.outcomes.reversed() {
            switch outcome {
            case .event(let event), .eventElsewhere(let event): return event.id
            case .eventMark(let mark): return mark.id
            default: continue
            }
        }
        return nil
    }

    mutating func add(_ outcome: RoomOutcome) { self.outcomes.append(outcome) }
    mutating func add(_ change: PlayTable.Change) { self.playChanges.append(change) }
    mutating func add(_ kick: Kick, _ paths: [StreamPath]) { self.kicks.append((kick, paths)) }
    mutating func add(gone: [RoomID]) { self.gone += gone }

    mutating func add(_ work: RoomTransaction) {
        self.outcomes += work.outcomes
        self.playChanges += work.playChanges
        self.devices += work.devices
        self.kicks += work.kicks
        self.gone += work.gone
        self.failures += work.failures
    }
}

/// One operation of a batch, which applies the rules to stored rooms. Lives inside the batch's transaction, on the registry's queue.
///
/// Events of one operation have a fixed order: a stream's begin or end before the change of its room that it causes, and an ended room's
/// streams end before the room.
final class RoomTransaction {
    let store: StoreAccess
    /// When the operation was submitted.
    let now: Int64
    let settings: RoomRegistry.Settings
    private(set) var outcomes: [RoomOutcome] = []
    /// For the registry's ``PlayTable``.
    private(set) var playChanges: [PlayTable.Change] = []
    /// Names that devices have got.
    private(set) var devices: [String] = []
    /// For the registry's ``KickTable``.
    var kicks: [(kick: Kick, paths: [StreamPath])] = []
    /// Deleted rooms, for the ``KickTable``.
    private(set) var gone: [RoomID] = []
    /// Rooms whose overdue deadlines the operation has applied.
    private(set) var caughtUp: [String] = []
    /// Errors that did not fail the operation.
    var failures: [any Error] = []
    /// The changed fields, for the audit trail.
    var change = AuditChange()
    /// Free disk bytes if there are too few to begin anything new; nil otherwise.
    let shortage: Int64?
    /// Deadlines wait because nobody could call or push: see ``StoreAbsence``.
    let holdsDeadlines: Bool

    init(store: StoreAccess, now: Int64, settings: RoomRegistry.Settings, shortage: Int64? = nil, holdsDeadlines: Bool = false) {
        self.shortage = shortage
        self.holdsDeadlines = holdsDeadlines
        self.store = store
        self.now = now
        self.settings = settings
    }

    func notify(_ outcome: RoomOutcome) { self.outcomes.append(outcome) }

    /// Runs a part of the operation and undoes it if it throws.
    func undoingFailure(_ body: () throws -> Void) throws {
        let (outcomes, changes, gone) = (self.outcomes.count, self.playChanges.count, self.gone.count)
        do {
            try self.store.savepoint(body)
        } catch {
            self.outcomes.removeSubrange(outcomes...)
            self.playChanges.removeSubrange(changes...)
            self.gone.removeSubrange(gone...)
            throw error
        }
    }

    /// The room with its overdue deadlines applied.
    func room(_ id: String) throws -> Room {
        guard var room = try self.store.room(id), try self.catchUp(&room) else { throw RegistryError.noSuchRoom(id) }
        return room
    }

    /// Applies deadlines that have passed. False if that deleted the room.
    func catchUp(_ room: inout Room) throws -> Bool {
        // A tick normally moves the deadline; the bound guards against a rule that does not.
        for _ in 0..<16 {
            guard let deadline = RoomRules.nextDeadline(of: room, isAlone: self.holdsDeadlines), deadline <= self.now else { return true }
            if self.caughtUp.last?.exact != room.id.rawValue.exact { self.caughtUp.append(room.id.rawValue) }
            guard try self.step(self.holdsDeadlines ? .tickAlone : .tick, on: &room, by: .time) else { return false }
        }
        try self.store.postpone(room.id.rawValue, to: self.now.later(by: 60_000))
        return true
    }

    /// Reapplies the deadlines that this refused operation applied before it was undone; nil if there are none. The refusal depends on them: a caller
    /// whose call was refused because a room has expired, or is gone, must not find it in its former state.
    func keepingDeadlines() throws -> RoomTransaction? {
        guard !self.caughtUp.isEmpty else { return nil }
        let work = RoomTransaction(
            store: self.store, now: self.now, settings: self.settings, shortage: self.shortage, holdsDeadlines: self.holdsDeadlines)
        do {
            try self.store.savepoint {
                for id in self.caughtUp { if var room = try self.store.room(id) { _ = try work.catchUp(&room) } }
            }
            return work
        } catch let lost as StoreAccess.TransactionLost {
            throw lost.cause
        } catch {
            // A room that cannot be read; the timer records that and postpones it.
            return nil
        }
    }

    // MARK: - One input

    /// Applies an input, then stores and publishes the effects. False if the room was deleted. Throws ``RoomRefusal``.
    @discardableResult
    func step(_ input: RoomInput, on room: inout Room, by actor: Actor) throws -> Bool {
        let old = room
        let effects = try RoomRules.apply(input, to: &room, now: self.now)
        return try self.apply(effects, from: old, on: &room, by: actor)
    }

    func apply(_ effects: [RoomEffect], from old: Room, on room: inout Room, by actor: Actor) throws -> Bool {
        for case .cut(_, let sequence?, let end, _) in effects {
            if let push = try self.store.push(sequence) { try self.end(push, end, in: &room, by: actor) }
        }
        if room.state.isTerminal, !old.state.isTerminal, room.members > 0 {
            try self.store.removeMembers(of: room.id)
            room.members = 0
        }
        for effect in effects {
            switch effect {
            case .event(let kind, let from): try self.event(kind, of: &room, self.data(of: room, kind, from: from, by: actor))
            case .streamEvent(let kind, let number):
                guard let slot = room.slots.first(where: { $0.number == number }) else { continue }
                try self.event(kind, of: &room, self.data(of: room, slot, by: actor))
            case .cut(let number, let sequence, let end, let endsViewers):
                guard let slot = room.slots.first(where: { $0.number == number }) else { continue }
                self.notify(.cut(slot.path, sequence: sequence.map(PushSequence.init), end, endsViewers: endsViewers))
            case .delete:
                try self.save(from: old, to: room)
                try self.forget(&room, by: actor)
                return false
            }
        }
        try self.save(from: old, to: room)
        self.notifyWaits(from: old, to: room)
        return true
    }

    /// Publishes changed waits: how long viewers' streams continue without their publisher.
    private func notifyWaits(from old: Room, to room: Room) {
        for slot in room.slots {
            guard let wait = room.wait(for: slot), old.slot(slot.path).flatMap(old.wait(for:)) != wait else { continue }
            self.notify(.waits(slot.path, wait))
        }
    }

    /// Stores the room, its slots' bans, and changes for the play table.
    func save(from old: Room, to room: Room) throws {
        try self.store.update(from: old, to: room)
        if room.deviceUid?.exact != old.deviceUid?.exact { self.gotDevice(room) }
        for (old, slot) in zip(old.slots, room.slots)
        where old.forbiddenUntil != slot.forbiddenUntil || old.forbidReason != slot.forbidReason {
            if let until = slot.forbiddenUntil {
                try self.store.setBan(of: slot.path, until: until, reason: slot.forbidReason ?? "", now: self.now)
            } else {
                _ = try self.store.removeBan(of: slot.path)
            }
            self.playChanges.append(.banned(slot.path, slot.forbiddenUntil.map { BanTerms(untilMs: $0, reason: slot.forbidReason ?? "") }))
        }
        if (old.state == .closed) != (room.state == .closed) {
            for slot in room.slots { self.playChanges.append(.closed(slot.path, room.state == .closed)) }
        }
    }

    func gotDevice(_ room: Room) { if let device = room.deviceUid { self.devices.append(device) } }

    func playChange(_ change: PlayTable.Change) { self.playChanges.append(change) }

    /// Publishes `roomDeleted` and deletes the room. Bans of its streams stay.
    func forget(_ room: inout Room, by actor: Actor) throws {
        try self.event(.roomDeleted, of: &room, self.data(of: room, .roomDeleted, from: room.state, by: actor))
        try self.store.delete(room)
        self.gone.append(room.id)
        if room.state == .closed { for slot in room.slots { self.playChanges.append(.closed(slot.path, false)) } }
    }

    // MARK: - Pushes

    /// Ends a push unless it has already ended.
    func end(_ push: StoredPush, _ end: PushEnd, in room: inout Room, by actor: Actor) throws {
        guard push.endedAt == nil else { return }
        // Refused after it was admitted to a room: repeated attempts leave no rows behind.
        guard end != .refused || push.mediaAt != nil else { return try self.store.deletePush(push.sequence) }
        try self.store.endPush(push.sequence, end, at: self.now)
        guard let mediaAt = push.mediaAt else { return }
        let details = push.details(PushDetails.End(end, durationMs: max(0, self.now - mediaAt)))
        try self.event(.streamEnd, of: &room, self.data(of: room, by: actor) + details.members)
    }

    func begin(_ push: StoredPush, in room: inout Room, by actor: Actor) throws {
        try self.event(.streamBegin, of: &room, self.data(of: room, by: actor) + push.details().members)
        self.notify(.streamBegan(push.path, roomID: room.id, slot: push.slot))
    }

    // MARK: - Events

    /// Numbers, stores and queues an event. The caller saves the room.
    func event(_ kind: RoomEvent.Kind, of room: inout Room, _ data: [JSONValue.Member]) throws {
        room.lastEvent += 1
        try self.event(
            kind, number: room.lastEvent, roomID: room.id, instance: room.instance, orderingKey: room.id.rawValue,
            app: room.slots.first?.app,
            subject: room.id.rawValue, data)
    }

    /// Adds an event of a stream without a room.
    func event(_ kind: RoomEvent.Kind, of path: StreamPath, _ data: [JSONValue.Member]) throws {
        try self.event(
            kind, number: 0, roomID: nil, instance: 0, orderingKey: path.description, app: path.app, subject: path.name, data)
    }

    /// Adds an event of the server itself.
    func event(_ kind: RoomEvent.Kind, _ data: [JSONValue.Member]) throws {
        try self.event(kind, number: 0, roomID: nil, instance: 0, orderingKey: "server", app: nil, subject: nil, data)
    }

    private func event(
        _ kind: RoomEvent.Kind, number: Int64, roomID: RoomID?, instance: Int, orderingKey: String, app: String?, subject: String?,
        _ data: [JSONValue.Member]
    ) throws {
        let event = try self.store.insertEvent(
            kind, number: number, roomID: roomID, instance: instance, at: self.now, data: data.text, app: app, subject: subject)
        for target in self.settings.webhooks where self.settings.notifies(target, kind) {
            try self.store.addDelivery(of: event, orderingKey: orderingKey, to: target, now: self.now)
        }
        for hook in try self.store.knownWebhooks() where hook.accepts(event) && self.settings.notifies(hook.target, kind) {
            try self.store.addDelivery(of: event, orderingKey: orderingKey, to: hook.target, now: self.now)
        }
        self.notify(.event(event))
    }

    /// The members that the data of every room event has.
    func data(of room: Room, by actor: Actor) -> [JSONValue.Member] {
        var data: [JSONValue.Member] = []
        data.add("state", room.state.rawValue)
        data.add("reason", room.reason.rawValue)
        data.add("instance", room.instance)
        data.add("by", actor.name)
        return data
    }

    func data(of room: Room, _ kind: RoomEvent.Kind, from: RoomState, by actor: Actor) -> [JSONValue.Member] {
        var data = self.data(of: room, by: actor)
        if kind.isTransition { data.add("from", from.rawValue) }
        switch kind {
        case .roomCreated:
            data.add("title", room.title)
            data.add("owner", room.owner)
            data.add("deviceUid", room.deviceUid)
        case .roomForbidden:
            data.add("forbiddenUntil", room.forbiddenUntil.map(Instant.text))
            data.add("forbidReason", room.forbidReason)
        case .roomRenewed:
            data.add("renewedUntil", RoomRules.countdownEnd(of: room).map(Instant.text))
            let deadline = RoomRules.deadline(of: room)
            data.add("expiresAt", deadline.map { Instant.text($0.at) })
            data.add("expiresReason", deadline?.reason.rawValue)
        case .ownerOffline, .ownerOnline: data.add("owner", room.owner)
        default: break
        }
        return data
    }

    private func data(of room: Room, _ slot: Room.Slot, by actor: Actor) -> [JSONValue.Member] {
        var data = self.data(of: room, by: actor)
        data.add("app", slot.app)
        data.add("name", slot.name)
        data.add("slot", slot.number)
        data.add("forbiddenUntil", slot.forbiddenUntil.map(Instant.text))
        data.add("forbidReason", slot.forbidReason)
        return data
    }
}
