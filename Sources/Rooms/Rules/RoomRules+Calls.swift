/// API calls, and the same changes made by time.
extension RoomRules {
    /// Restarts the countdown of the state, or extends it by `byMs`; negative lengths count as none.
    package static func renew(byMs: Int64?, _ room: inout Room, _ now: Int64) throws(RoomRefusal) -> [RoomEffect] {
        try self.require(self.open, room)
        let longer = byMs.map { max(0, $0) }
        func moved(_ from: Int64) -> Int64 { longer.map(from.later(by:)) ?? now }
        switch room.state {
        case .created: room.waitingSince = moved(room.waitingSince)
        case .interrupted:
            let ends = room.interruptionEnds ?? now
            let fresh = now.later(by: max(room.policy.waitMs(for: .publisherLost), room.policy.waitMs(for: room.reason)))
            let promise = longer.map(ends.later(by:)) ?? max(ends, fresh)
            room.keptUntil = promise
            room.interruptionEnds = promise
            room.durationFrom = room.durationFrom.map(moved)
        case .live, .forbidden, .expired, .closed: room.durationFrom = room.durationFrom.map(moved)
        }
        return [.event(.roomRenewed, from: room.state)]
    }

    /// Nothing happens to a closed room: whoever closes it has what they want, the second of two callers too.
    package static func close(_ room: inout Room, _ now: Int64) -> [RoomEffect] {
        room.state == .closed ? [] : self.end(&room, .closed, .closed, now)
    }

    package static func expire(_ room: inout Room, _ now: Int64) throws(RoomRefusal) -> [RoomEffect] {
        try self.require(self.open, room)
        return self.end(&room, .expired, .expired, now)
    }

    /// Ends the room, its pushes and its viewers' streams. Bans stay; the caller keeps them when it deletes the room.
    package static func end(_ room: inout Room, _ state: RoomState, _ reason: StateReason, _ now: Int64) -> [RoomEffect] {
        let event = room.enter(state, reason, event: state == .closed ? .roomClosed : .roomExpired)
        room.endedAt = now
        var effects = [event]
        for (index, slot) in room.slots.enumerated() {
            // A room that waited in vain for a connected publisher ends because of its silence.
            let isSilent = reason == .graceOver && (slot.awayReason == .mediaIdle || slot.awayReason == .paused)
            effects += room.cutPushes(at: index, isSilent ? .mediaIdle : .roomEnded)
        }
        return effects
    }

    /// Forbids all streams; a longer ban of one of them is kept. An expired room begins its next life as forbidden; the ban of a forbidden one changes.
    package static func forbid(untilMs: Int64, reason: String, _ room: inout Room, _ now: Int64) throws(RoomRefusal) -> [RoomEffect] {
        try self.require(self.forbiddable, room)
        if room.state == .forbidden { return self.changeBan(untilMs, reason, &room) }
        if room.state == .expired { self.beginNextLife(&room, now) }
        var effects: [RoomEffect] = []
        for index in room.slots.indices {
            if !room.slots[index].isForbidden { effects.append(.streamEvent(.streamForbidden, slot: room.slots[index].number)) }
            if untilMs > room.slots[index].forbiddenUntil ?? .min {
                room.slots[index].forbiddenUntil = untilMs
                room.slots[index].forbidReason = reason
            }
        }
        effects.append(self.becomeForbidden(reason, &room))
        return effects + room.cutAllPushes(.forbidden)
    }

    /// Gives a forbidden room's ban another end and reason. Streams that are forbidden for longer than both keep their own.
    private static func changeBan(_ untilMs: Int64, _ reason: String, _ room: inout Room) -> [RoomEffect] {
        let old = room
        let former = room.forbiddenUntil ?? .min
        for index in room.slots.indices where room.slots[index].forbiddenUntil ?? .min <= max(untilMs, former) {
            room.slots[index].forbiddenUntil = untilMs
            room.slots[index].forbidReason = reason
        }
        room.forbiddenUntil = untilMs
        room.forbidReason = reason
        guard room != old else { return [] }
        return room.slots.filter { $0.forbiddenUntil == untilMs }.map { .streamEvent(.streamForbidden, slot: $0.number) }
    }

    /// Forbids a stream, or updates the time and reason of its ban.
    package static func forbidSlot(at index: Int, untilMs: Int64, reason: String, _ room: inout Room, _ now: Int64) -> [RoomEffect] {
        // Also for ended rooms: a push would reopen an expired one, and a closed one's name becomes free.
        let slot = room.slots[index]
        room.slots[index].forbiddenUntil = untilMs
        room.slots[index].forbidReason = reason
        if slot.isForbidden {
            guard slot != room.slots[index] else { return [] }
            if room.state == .forbidden {
                room.forbiddenUntil = room.slots.compactMap(\.forbiddenUntil).min()
                if room.forbidReason == slot.forbidReason { room.forbidReason = reason }
            }
            return [.streamEvent(.streamForbidden, slot: slot.number)]
        }
        let cuts = room.cutPushes(at: index, .forbidden)
        var effects: [RoomEffect] = [.streamEvent(.streamForbidden, slot: slot.number)]
        if room.state.isTerminal { return effects }
        if room.slots.allSatisfy(\.isForbidden) {
            effects.append(self.becomeForbidden(reason, &room))
        } else if room.state == .live {
            effects += self.interruptAfterCut(&room, now)
        }
        return effects + cuts
    }

    /// The other cameras get at least as long as after a drop.
    private static func interruptAfterCut(_ room: inout Room, _ now: Int64) -> [RoomEffect] {
        let effects = self.interrupt(.dropped, &room, now)
        if let ends = room.interruptionEnds {
            let kept = now.later(by: room.policy.waitMs(for: .dropped))
            room.keptUntil = kept
            room.interruptionEnds = max(ends, kept)
        }
        return effects
    }

    private static func becomeForbidden(_ reason: String, _ room: inout Room) -> RoomEffect {
        let event = room.enter(.forbidden, .forbidden, event: .roomForbidden)
        room.forbiddenUntil = room.slots.compactMap(\.forbiddenUntil).min()
        room.forbidReason = reason
        return event
    }

    package static func resume(_ room: inout Room, _ now: Int64) throws(RoomRefusal) -> [RoomEffect] {
        try self.require([.forbidden], room)
        return self.free(Array(room.slots.indices), .resumed, &room, now)
    }

    package static func resumeSlot(at index: Int, _ room: inout Room, _ now: Int64) throws(RoomRefusal) -> [RoomEffect] {
        guard room.slots[index].isForbidden else { throw .slotNotForbidden(room.slots[index].number) }
        return self.free([index], .resumed, &room, now)
    }

    /// Lifts these slots' bans. A forbidden room then waits for a push as if it were new.
    package static func free(_ indices: [Int], _ reason: StateReason, _ room: inout Room, _ now: Int64) -> [RoomEffect] {
        var effects: [RoomEffect] = []
        for index in indices where room.slots[index].isForbidden {
            room.slots[index].forbiddenUntil = nil
            room.slots[index].forbidReason = nil
            effects.append(.streamEvent(.streamResumed, slot: room.slots[index].number))
        }
        guard room.state == .forbidden else { return effects }
        effects.append(room.enter(.created, reason, event: .roomUnforbidden))
        self.beginWaiting(&room, now)
        // An owner who left long ago gets as much time as one who leaves now.
        if room.ownerAwaySince != nil { room.ownerAwaySince = now }
        return effects
    }

    package static func reopen(_ room: inout Room, _ now: Int64) throws(RoomRefusal) -> [RoomEffect] {
        try self.require([.expired], room)
        if let slot = room.slots.first, let until = slot.forbiddenUntil, room.slots.allSatisfy(\.isForbidden) {
            throw .slotForbidden(slot.number, untilMs: until, reason: slot.forbidReason ?? "")
        }
        let event = room.enter(.created, .reopened, event: .roomCreated)
        self.beginNextLife(&room, now)
        return [event]
    }

    /// Begins an expired room's next life without remains of the last.
    private static func beginNextLife(_ room: inout Room, _ now: Int64) {
        room.instance += 1
        self.beginWaiting(&room, now)
        room.endedAt = nil
        room.ownerSeenAt = nil
        room.ownerAwaySince = nil
        room.peak = 0
        room.likes = 0
    }

    /// Resets the room to one that has never been live.
    private static func beginWaiting(_ room: inout Room, _ now: Int64) {
        room.waitingSince = now
        room.durationFrom = nil
        room.liveSince = nil
        room.heartbeatAt = nil
        for index in room.slots.indices {
            room.slots[index].sequence = nil
            room.slots[index].earlier = []
            room.slots[index].isActive = false
            room.slots[index].awayReason = nil
            room.slots[index].awayUntil = nil
        }
    }
}
