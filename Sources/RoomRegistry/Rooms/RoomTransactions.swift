import Rooms
import Support

/// API calls on rooms.
extension RoomTransaction {
    /// Converts a refusal by the rules into the caller's error.
    func refused(_ refusal: RoomRefusal, _ room: Room, action: String) -> RegistryError {
        switch refusal {
        case .wrongState(let state, let allowed): .wrongState(room.id, state: state, action: action, allowed: allowed)
        case .noSlot(let number): .invalid(FieldError("slot", String(number), "expected 1 to \(room.slots.count)"))
        case .slotForbidden: .wrongState(room.id, state: .forbidden, action: action, allowed: RoomRules.open)
        case .slotNotForbidden: .wrongState(room.id, state: room.state, action: action, allowed: [.forbidden])
        }
    }

    func apply(_ input: RoomInput, to id: String, action: String, if condition: RoomCondition?, by actor: Actor) throws -> Room {
        try Self.check(input, now: self.now)
        var room = try self.room(id)
        try condition?.check(room)
        let old = room
        let activeBefore = room.slots.filter(\.isActive)
        if case .forbid = input, room.state == .expired { try self.leaveDevice(&room, by: actor) }
        do {
            try self.step(input, on: &room, by: actor)
        } catch let refusal as RoomRefusal {
            throw self.refused(refusal, room, action: action)
        }
        switch input {
        case .heartbeat(let sender?): try self.store.sawMember(sender, of: room.id, at: self.now)
        case .pauseAnnounced:
            for slot in activeBefore where room.slot(slot.path)?.isActive == false { self.notify(.pauseAnnounced(slot.path)) }
        default: break
        }
        self.change.room(from: old, to: room, standard: self.settings.policy)
        return room
    }

    /// Checks the limits of an input's values.
    private static func check(_ input: RoomInput, now: Int64) throws(FieldError) {
        switch input {
        case .forbid(let until, let reason), .forbidSlot(_, let until, let reason):
            try self.checkBan(until: until, reason: reason, now: now)
        case .renew(let byMs?):
            guard (1...30 * 86_400_000).contains(byMs) else {
                throw FieldError("seconds", String(Double(byMs) / 1_000), "expected more than 0 and at most 2592000")
            }
        case .heartbeat(let sender?): try RoomLimits.checkID(sender, "sender")
        default: break
        }
    }

    static func checkBan(until: Int64, reason: String, now: Int64) throws(FieldError) {
        guard until > now, until <= now.later(by: StreamBan.longestMs) else {
            throw FieldError(
                "forbiddenUntil", Instant.text(until), "expected a time from now to \(StreamBan.longestMs / 86_400_000) days ahead")
        }
        guard reason.unicodeScalars.count <= StreamBan.longestReason, RoomLimits.isPlain(reason) else {
            throw FieldError(
                "reason", reason, "expected at most \(StreamBan.longestReason) characters, and no control or invisible characters")
        }
    }

    // MARK: - Creation

    func create(_ new: NewRoom, by actor: Actor) throws -> Room {
        try new.check()
        if let shortage { throw RegistryError.diskFull(freeBytes: shortage, minFreeBytes: self.settings.disk.minFreeBytes) }
        var former: Room?
        if let device = new.deviceUid, var last = try self.store.room(ofDevice: device), try self.catchUp(&last) {
            guard last.state.isTerminal else { throw RegistryError.deviceTaken(device, by: last.id) }
            // The device's room keeps its id unless the caller names another.
            if new.id == nil { former = last }
        }
        if let former {
            let room = try self.renewInstance(of: former, as: new, by: actor)
            self.change.room(from: former, to: room, standard: self.settings.policy)
            return room
        }
        let id = try self.freeID(new.id)
        var room = Room(id: id, slots: Room.slots(of: id, app: new.app, count: new.slots), at: self.now)
        Self.settle(&room, new, by: actor)
        try self.checkStreams(of: room, field: new.id == nil ? "slots" : "roomId")
        let made = try self.insert(&room, by: actor)
        self.change.room(from: nil, to: made, standard: self.settings.policy)
        return made
    }

    private func freeID(_ wanted: RoomID?) throws -> RoomID {
        guard let wanted else {
            while true {
                let id = RoomID.random()
                if try self.store.room(id.rawValue) == nil { return id }
            }
        }
        guard var room = try self.store.room(wanted.rawValue), try self.catchUp(&room) else { return wanted }
        throw RegistryError.idTaken(wanted, state: room.state, freeAt: room.endedAt.map { _ in RoomRules.retentionEnd(of: room) })
    }

    /// Throws if a stream is another room's: slot 2 of room `a` is named like slot 1 of room `a-2`; or if another open room's device pushes by its
    /// name, which the stream would take from the device.
    private func checkStreams(of room: Room, field: String) throws {
        for slot in room.slots {
            let path: StreamPath = slot.path
            if let other = try self.store.roomID(ofStream: path), other.exact != room.id.rawValue.exact {
                throw FieldError(field, room.id.rawValue, "its stream \(path) already belongs to room \(other)")
            }
            if var other = try self.store.openRoom(ofDevice: path.name), other.id != room.id, other.devicePaths.contains(path),
                try self.catchUp(&other), !other.state.isTerminal
            {
                throw RegistryError.nameTaken(path, by: other.id, field: "roomId")
            }
        }
        try self.checkDevice(of: room)
    }

    /// Throws if a name by which the room's device would push is another room's stream, which wins.
    private func checkDevice(of room: Room) throws {
        for path in room.devicePaths {
            if let other = try self.store.roomID(ofStream: path), other.exact != room.id.rawValue.exact {
                throw RegistryError.nameTaken(path, by: RoomID(stored: other), field: "deviceUid")
            }
        }
    }

    private static func settle(_ room: inout Room, _ new: NewRoom, by actor: Actor) {
        room.creator = actor.name
        room.owner = new.owner
        room.title = new.title
        room.custom = new.custom
        room.isPublic = new.isPublic
        room.deviceUid = new.deviceUid
        room.policy = new.policy
    }

    /// Stores a new room, counting on from an earlier one with this id. Applies existing bans of its streams.
    func insert(_ room: inout Room, by actor: Actor) throws -> Room {
        if let last = try self.store.lastEvent(of: room.id) {
            room.lastEvent = last.number
            room.instance = last.instance + 1
        }
        try self.store.insert(room)
        self.gotDevice(room)
        let old = room
        try self.event(.roomCreated, of: &room, self.data(of: room, .roomCreated, from: .created, by: actor))
        try self.save(from: old, to: room)
        try self.applyBans(to: &room)
        return room
    }

    private func applyBans(to room: inout Room) throws {
        for slot in room.slots where !slot.isForbidden {
            guard let ban = try self.store.ban(of: slot.path) else { continue }
            if ban.resumeAt <= self.now {
                try self.lift(ban, by: .time)
            } else {
                try self.step(.forbidSlot(slot.number, untilMs: ban.resumeAt, reason: ban.reason), on: &room, by: .server)
            }
        }
    }

    /// A device's next room: same id, next instance, settings as given.
    private func renewInstance(of former: Room, as new: NewRoom, by actor: Actor) throws -> Room {
        var room = Room(id: former.id, slots: Room.slots(of: former.id, app: new.app, count: new.slots), at: self.now)
        Self.settle(&room, new, by: actor)
        try self.checkStreams(of: room, field: "slots")
        room.instance = former.instance + 1
        room.lastEvent = former.lastEvent
        try self.event(.roomCreated, of: &room, self.data(of: room, .roomCreated, from: former.state, by: actor))
        try self.store.update(from: former, to: room)
        if former.state == .closed { for slot in former.slots { self.playChange(.closed(slot.path, false)) } }
        try self.applyBans(to: &room)
        return room
    }

    // MARK: - Changes

    func update(_ id: String, _ patch: RoomPatch, if condition: RoomCondition?, by actor: Actor) throws -> Room {
        try patch.check()
        var room = try self.room(id)
        try condition?.check(room)
        guard !room.state.isTerminal else {
            throw RegistryError.wrongState(room.id, state: room.state, action: "update", allowed: RoomRules.notEnded)
        }
        let old = room
        if let owner = patch.owner { room.changeOwner(to: owner) }
        if let title = patch.title { room.title = title }
        if let custom = patch.custom { room.custom = custom }
        if let isPublic = patch.isPublic { room.isPublic = isPublic }
        if let device = patch.deviceUid, device != room.deviceUid {
            if let device, let other = try self.store.room(ofDevice: device), !other.state.isTerminal {
                throw RegistryError.deviceTaken(device, by: other.id)
            }
            room.deviceUid = device
            try self.checkDevice(of: room)
        }
        for field in RoomPolicy.fields { if let value = patch.policy[field.name] { field.set(&room.policy, value) } }
        self.change.room(from: old, to: room, standard: self.settings.policy)
        guard room != old else { return room }
        var data = self.data(of: room, by: actor)
        data.add("changed", Self.changes(from: old, to: room))
        try self.event(.roomUpdated, of: &room, data)
        try self.save(from: old, to: room)
        if room.policy != old.policy { self.notify(.policyChanged(room.id, room.slots.map(\.path), from: old.policy, to: room.policy)) }
        return room
    }

    private static func changes(from old: Room, to room: Room) -> [String] {
        var names: [String] = []
        if old.owner?.exact != room.owner?.exact { names.append("owner") }
        if old.title.exact != room.title.exact { names.append("title") }
        if old.custom != room.custom { names.append("custom") }
        if old.isPublic != room.isPublic { names.append("isPublic") }
        if old.deviceUid != room.deviceUid { names.append("deviceUid") }
        return names + RoomPolicy.fields.filter { $0.get(old.policy) != $0.get(room.policy) }.map { "policy.\($0.name)" }
    }

    func delete(_ id: String, if condition: RoomCondition?, by actor: Actor) throws {
        var room = try self.room(id)
        try condition?.check(room)
        self.change.room(from: room, to: nil, standard: self.settings.policy)
        if !room.state.isTerminal { try self.step(.close, on: &room, by: actor) }
        try self.forget(&room, by: actor)
    }

    func like(_ id: String, count: Int) throws -> Room {
        guard RoomLimits.likes.contains(count) else {
            throw FieldError("count", String(count), "expected \(RoomLimits.likes.lowerBound) to \(RoomLimits.likes.upperBound)")
        }
        var room = try self.openRoom(id, action: "like")
        let old = room
        room.likes += count
        try self.save(from: old, to: room)
        return room
    }

    private func openRoom(_ id: String, action: String) throws -> Room {
        let room = try self.room(id)
        guard !room.state.isTerminal else {
            throw RegistryError.wrongState(room.id, state: room.state, action: action, allowed: RoomRules.notEnded)
        }
        return room
    }

    // MARK: - Members

    func join(_ id: String, user: String, nick: String) throws -> Member {
        try RoomLimits.checkID(user, "userId")
        guard nick.unicodeScalars.count <= RoomLimits.nickLength, RoomLimits.isPlain(nick) else {
            throw FieldError("nick", nick, "expected at most \(RoomLimits.nickLength) characters, and no control or invisible characters")
        }
        var room = try self.openRoom(id, action: "join")
        if let until = try self.store.kick(of: user, from: room.id, now: self.now) {
            throw RegistryError.keptOut(user, of: room.id, forMs: until - self.now)
        }
        let known = try self.store.member(user, of: room.id)
        let member = Member(user: user, nick: nick, joinedAt: known?.joinedAt ?? self.now, seenAt: self.now)
        let old = room
        if known == nil {
            guard room.members < RoomLimits.members else { throw RegistryError.tooMany(what: "members", limit: RoomLimits.members) }
            room.members += 1
            room.peak = max(room.peak, room.members)
            var data = self.data(of: room, by: Actor(user))
            data.add("userId", user)
            data.add("nick", nick)
            try self.event(.memberJoined, of: &room, data)
            try self.save(from: old, to: room)
        }
        try self.store.setMember(member, of: room.id)
        try self.presence(.memberJoined(user: user), on: &room, action: "join", by: Actor(user))
        return member
    }

    /// Removes a member. `keepOutMs` is how long a kicked one may not return.
    func leave(_ id: String, user: String, as kind: RoomEvent.Kind, keepOutMs: Int64 = 0, by actor: Actor) throws {
        var room = try self.room(id)
        guard let member = try self.store.member(user, of: room.id), try self.store.removeMember(user, of: room.id) else {
            throw RegistryError.noSuchMember(user)
        }
        let old = room
        room.members = max(0, room.members - 1)
        var data = self.data(of: room, by: actor)
        data.add("userId", user)
        data.add("nick", member.nick)
        try self.event(kind, of: &room, data)
        try self.save(from: old, to: room)
        try self.presence(.memberLeft(user: user), on: &room, action: "leave", by: actor)
        guard kind == .memberKicked else { return }
        if keepOutMs > 0 {
            let kick = Kick(roomID: room.id, user: user, until: self.now.later(by: keepOutMs))
            try self.store.setKick(kick, now: self.now)
            self.kicks.append((kick, room.slots.map(\.path)))
        }
        self.notify(.kick(roomID: room.id, user: user, by: actor))
    }

    private func presence(_ input: RoomInput, on room: inout Room, action: String, by actor: Actor) throws {
        do {
            try self.step(input, on: &room, by: actor)
        } catch let refusal as RoomRefusal {
            throw self.refused(refusal, room, action: action)
        }
    }
}
