import Rooms
import Store
import Support

/// Pushes to rooms, and bans of their streams.
extension RoomTransaction {
    /// Admits a push. `mayMakeRoom` is asked before a room is created; it returns the seconds to wait, nil to allow it.
    func admit(_ request: PushRequest, mayMakeRoom: () -> Double?) throws -> PushGrant {
        var (room, slot) = try self.target(of: request, mayMakeRoom)
        // A stream that runs or is briefly away may continue on a full disk.
        if room.state != .live, room.state != .interrupted { try self.checkDisk() }
        // The refusal undoes everything created or changed before.
        if let wanted = request.room, wanted.exact != room.id.rawValue.exact { throw PushRefusal.otherRoom }
        if room.state == .closed { throw PushRefusal.roomClosed }
        if let user = request.user, let until = try self.store.kick(of: user, from: room.id, now: self.now) {
            throw PushRefusal.keptOut(user, forMs: until - self.now)
        }
        let sequence: Int64
        let replaced = try self.takeOver(slot.path, for: request.claim)
        do {
            if room.state == .expired { try self.reopen(&room) }
            sequence = try self.store.insertPush(request, path: slot.path, room: room.id, slot: slot.number, now: self.now)
            try self.step(.pushAdmitted(slot: slot.number, sequence: sequence), on: &room, by: .publisher)
        } catch let refusal as RoomRefusal {
            switch refusal {
            case .slotForbidden(_, let until, let reason): throw PushRefusal.forbidden(untilMs: until, reason: reason)
            case .wrongState(.forbidden, _):
                slot = room.slot(slot.path) ?? slot
                throw PushRefusal.forbidden(
                    untilMs: slot.forbiddenUntil ?? room.forbiddenUntil ?? self.now, reason: slot.forbidReason ?? room.forbidReason ?? "")
            case .wrongState(.closed, _): throw PushRefusal.roomClosed
            case .wrongState, .noSlot, .slotNotForbidden: throw PushRefusal.noRoom
            }
        }
        if self.store.node != nil { try self.store.setClaim(sequence, request.claim) }
        for old in replaced {
            try self.pushEnded(old.sequence, .takenOver)
            self.notify(.cut(slot.path, sequence: PushSequence(old.sequence), .takenOver, endsViewers: false))
        }
        return PushGrant(sequence: PushSequence(sequence), roomID: room.id, slot: slot.number, path: slot.path, policy: room.policy)
    }

    private func checkDisk() throws(PushRefusal) {
        if let shortage { throw .diskFull(freeBytes: shortage, minFreeBytes: self.settings.disk.minFreeBytes) }
    }

    /// Begins the next life of an expired room.
    private func reopen(_ room: inout Room) throws {
        try self.leaveDevice(&room, by: .publisher)
        try self.step(.reopen, on: &room, by: .publisher)
    }

    /// Clears an ended room's device if another open room has it by now: a device has only one room. An event tells of it, before that of the room's
    /// next life, which names no device.
    func leaveDevice(_ room: inout Room, by actor: Actor) throws {
        guard let device = room.deviceUid, var holder = try self.store.room(ofDevice: device), holder.id != room.id,
            try self.catchUp(&holder), !holder.state.isTerminal
        else { return }
        let old = room
        room.deviceUid = nil
        var data = self.data(of: room, by: actor)
        data.add("changed", ["deviceUid"])
        try self.event(.roomUpdated, of: &room, data)
        try self.save(from: old, to: room)
    }

    /// The room and slot of a push: by stream name, else by device, else in a new room.
    private func target(of request: PushRequest, _ mayMakeRoom: () -> Double?) throws -> (Room, Room.Slot) {
        let path = request.path
        if let found = try self.slot(of: path) { return found }
        if let ban = try self.store.ban(of: path) {
            guard ban.resumeAt <= self.now else { throw PushRefusal.forbidden(untilMs: ban.resumeAt, reason: ban.reason) }
            try self.lift(ban, by: .time)
        }
        if let found = try self.slot(of: self.store.stream(named: path)) { return found }
        guard request.mayCreateRoom, path.app != "talk" else { throw PushRefusal.noRoom }
        try self.checkDisk()
        if let wait = mayMakeRoom() { throw PushRefusal.tooManyRooms(waitSeconds: wait) }
        let id =
            if RoomID.isID(path.name), try self.store.room(path.name) == nil { RoomID(stored: path.name) } else { RoomID.random() }
        var room = Room(id: id, slots: [Room.Slot(number: 1, app: path.app, name: path.name)], at: self.now)
        room.isAdHoc = true
        room.policy = self.settings.policy
        room = try self.insert(&room, by: .publisher)
        return (room, room.slots[0])
    }

    /// The stream's room and slot, with overdue deadlines applied; nil if no room has the stream.
    private func slot(of path: StreamPath) throws -> (Room, Room.Slot)? {
        guard var room = try self.store.room(ofStream: path), try self.catchUp(&room), let slot = room.slot(path) else { return nil }
        return (room, slot)
    }

    // MARK: - Facts

    func mediaArrived(_ sequence: Int64, _ media: MediaSummary) throws {
        guard var push = try self.store.push(sequence) else { return }
        if let end = push.end {
            // The push was admitted, but ended before it had claimed its stream: the cut came too early to find it.
            self.notify(.cut(push.path, sequence: PushSequence(sequence), end, endsViewers: false))
            return
        }
        guard var room = try self.store.room(push.roomID.rawValue), try self.catchUp(&room) else { return }
        let old = room
        let effects = try RoomRules.apply(.mediaArrived(slot: push.slot, sequence: sequence), to: &room, now: self.now)
        let isCut = effects.contains { if case .cut = $0 { true } else { false } }
        if push.mediaAt == nil, !isCut {
            push.mediaAt = self.now
            push.media = media
            try self.store.setMedia(push)
            try self.begin(push, in: &room, by: .publisher)
        }
        _ = try self.apply(effects, from: old, on: &room, by: .publisher)
    }

    /// Applies a push's silence, or its client's announcement of a pause.
    func streamWent(_ sequence: Int64, isPause: Bool) throws {
        guard let push = try self.store.push(sequence), push.end == nil else { return }
        guard var room = try self.store.room(push.roomID.rawValue), try self.catchUp(&room) else { return }
        if isPause {
            guard room.slots.contains(where: { $0.number == push.slot && $0.sequence == sequence }) else { return }
            try self.step(.pauseAnnounced(slot: push.slot), on: &room, by: .publisher)
        } else {
            try self.step(.mediaIdle(slot: push.slot, sequence: sequence), on: &room, by: .publisher)
        }
    }

    func pushEnded(_ sequence: Int64, _ end: PushEnd, by actor: Actor = .publisher) throws {
        guard let push = try self.store.push(sequence), push.end == nil else { return }
        guard let found = try self.store.room(push.roomID.rawValue) else { return try self.store.endPush(sequence, end, at: self.now) }
        var room = found
        guard try self.catchUp(&room) else { return try self.store.endPush(sequence, end, at: self.now) }
        // Applying a deadline may have ended it.
        if room != found, try self.store.push(sequence)?.end != nil { return }
        let old = room
        let effects = try RoomRules.apply(.pushEnded(slot: push.slot, sequence: sequence, end), to: &room, now: self.now)
        try self.end(push, end, in: &room, by: actor)
        _ = try self.apply(effects, from: old, on: &room, by: actor)
    }

    /// The push goes on over another connection.
    func pushReturned(_ sequence: Int64, _ request: PushRequest) throws {
        guard let push = try self.store.push(sequence), push.end == nil else { return }
        try self.store.setConnection(of: sequence, request)
        if self.store.node != nil { try self.store.setClaim(sequence, request.claim) }
    }

    func raisePeaks(_ peaks: [RoomID: Int]) throws {
        for (id, viewers) in peaks { try self.store.raisePeak(id, to: viewers) }
    }

    // MARK: - Bans

    func forbid(_ name: StreamPath, until: Int64, reason: String, by actor: Actor) throws -> StreamBan {
        try Self.checkBan(until: until, reason: reason, now: self.now)
        try Self.check(name)
        let path = try self.store.stream(named: name)
        let old = try self.store.ban(of: path)
        guard case (var room, let slot)? = try self.slot(of: path) else {
            try self.store.setBan(of: path, until: until, reason: reason, now: self.now)
            try self.event(.streamForbidden, of: path, Self.data(of: path, until: until, reason: reason, by: actor))
            self.playChange(.banned(path, BanTerms(untilMs: until, reason: reason)))
            self.notify(.cut(path, sequence: nil, .forbidden, endsViewers: true))
            let ban = try self.store.ban(of: path) ?? StreamBan(path: path, createdAt: self.now, resumeAt: until, reason: reason)
            self.change.ban(from: old, to: ban)
            return ban
        }
        self.change.roomID = room.id
        do {
            try self.step(.forbidSlot(slot.number, untilMs: until, reason: reason), on: &room, by: actor)
        } catch let refusal as RoomRefusal {
            throw self.refused(refusal, room, action: "forbid")
        }
        let ban = try self.store.ban(of: path) ?? StreamBan(path: path, createdAt: self.now, resumeAt: until, reason: reason)
        self.change.ban(from: old, to: ban)
        return ban
    }

    /// Lifts a stream's ban. Returns its room, if any.
    func resume(_ name: StreamPath, by actor: Actor) throws -> Room? {
        let path = try self.store.stream(named: name)
        self.change.ban(from: try self.store.ban(of: path), to: nil)
        if case (var room, let slot)? = try self.slot(of: path) {
            self.change.roomID = room.id
            do {
                try self.step(.resumeSlot(slot.number), on: &room, by: actor)
            } catch RoomRefusal.slotNotForbidden {
                throw RegistryError.notForbidden(path)
            } catch let refusal as RoomRefusal {
                throw self.refused(refusal, room, action: "resume")
            }
            return room
        }
        guard let ban = try self.store.ban(of: path) else { throw RegistryError.notForbidden(path) }
        try self.lift(ban, by: actor)
        return nil
    }

    /// Lifts the ban of a stream without a room.
    func lift(_ ban: StreamBan, by actor: Actor) throws {
        guard try self.store.removeBan(of: ban.path) else { return }
        try self.event(.streamResumed, of: ban.path, Self.data(of: ban.path, until: nil, reason: nil, by: actor))
        self.playChange(.banned(ban.path, nil))
    }

    private static func data(of path: StreamPath, until: Int64?, reason: String?, by actor: Actor) -> [JSONValue.Member] {
        var data: [JSONValue.Member] = []
        data.add("by", actor.name)
        data.add("app", path.app)
        data.add("name", path.name)
        data.add("forbiddenUntil", until.map(Instant.text))
        data.add("forbidReason", reason)
        return data
    }

    /// Throws for names that a publisher may not use.
    private static func check(_ path: StreamPath) throws(FieldError) {
        for (field, value) in [("app", path.app), ("name", path.name)] {
            try RoomLimits.checkName(value, field, longest: RoomLimits.streamNameLength)
        }
    }

    // MARK: - Time

    /// Applies due deadlines and bans, at most `limit` each. True if there may be more. While deadlines wait it applies none.
    func runDue(limit: Int) throws -> Bool {
        if self.holdsDeadlines { return false }
        let due = try self.store.dueRooms(now: self.now, limit: limit)
        for id in due {
            do {
                try self.undoingFailure { if var room = try self.store.room(id) { _ = try self.catchUp(&room) } }
            } catch let lost as StoreAccess.TransactionLost {
                throw lost
            } catch {
                // A room that cannot be read does not hold up the others.
                try self.store.postpone(id, to: self.now.later(by: 3_600_000))
                self.failures.append(error)
            }
        }
        if due.count == limit { return true }
        let bans = try self.store.dueBans(now: self.now, limit: limit)
        for ban in bans {
            // A slot's ban ended with its room's deadline, unless a rule failed to lift it.
            try self.lift(ban, by: .time)
        }
        return bans.count == limit
    }

    /// Restarts a batch of the rooms that the last run left in use. Returns the last one's row; nil if there are no more.
    func restartRooms(after row: Int64, limit: Int) throws -> Int64? {
        let rooms = try self.store.roomsToRestart(after: row, limit: limit)
        for (_, id) in rooms {
            guard var room = try self.store.room(id) else { continue }
            try self.closeFloor(of: &room)
            try self.step(.serverStarted, on: &room, by: .server)
        }
        return rooms.last?.row
    }

    /// Ends pushes that the last run left open. Returns the last one's sequence; nil when there are no more.
    func endLeftPushes(after sequence: Int64, upTo last: Int64, limit: Int) throws -> Int64? {
        let pushes = try self.store.openPushes(after: sequence, upTo: last, limit: limit)
        for push in pushes {
            guard var room = try self.store.room(push.roomID.rawValue) else {
                try self.store.endPush(push.sequence, .serverRestart, at: self.now)
                continue
            }
            let old = room
            try self.end(push, .serverRestart, in: &room, by: .server)
            try self.save(from: old, to: room)
            // A node that was taken for dead may only have lost the database.
            if self.store.node != nil {
                self.notify(.cut(push.path, sequence: PushSequence(push.sequence), .serverRestart, endsViewers: false))
            }
        }
        return pushes.last?.sequence
    }
}
