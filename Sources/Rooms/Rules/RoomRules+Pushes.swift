/// Inputs from the room's streams.
extension RoomRules {
    /// Admits a push. A push that it takes over continues until one of the two ends.
    package static func pushAdmitted(_ sequence: Int64, at index: Int, _ room: inout Room) throws(RoomRefusal) -> [RoomEffect] {
        try self.require(self.open, room)
        let slot = room.slots[index]
        if let until = slot.forbiddenUntil { throw .slotForbidden(slot.number, untilMs: until, reason: slot.forbidReason ?? "") }
        if let holder = slot.sequence, holder != sequence {
            room.slots[index].earlier.append(holder)
            // The oldest most likely holds the stream; repeated attempts only displace each other.
            if room.slots[index].earlier.count > Room.Slot.mostEarlier { room.slots[index].earlier.remove(at: 1) }
        }
        room.slots[index].sequence = sequence
        return []
    }

    package static func mediaArrived(_ sequence: Int64, at index: Int, _ room: inout Room, _ now: Int64) -> [RoomEffect] {
        let slot = room.slots[index]
        // The push slipped past its cut (admitted before, attached after).
        if room.state.isTerminal { return [.cut(slot: slot.number, sequence: sequence, .roomEnded, endsViewers: false)] }
        if room.state == .forbidden || slot.isForbidden {
            return [.cut(slot: slot.number, sequence: sequence, .forbidden, endsViewers: false)]
        }
        guard slot.holds(sequence) else { return [] }
        if sequence == slot.sequence { room.slots[index].earlier = [] }
        room.slots[index].isActive = true
        room.slots[index].awayReason = nil
        room.slots[index].awayUntil = nil
        switch room.state {
        case .created:
            room.liveSince = now
            room.durationFrom = now
            return [room.enter(.live, .media, event: .roomLive)]
        case .interrupted: return [room.enter(.live, .media, event: .roomResumed)]
        case .live, .forbidden, .expired, .closed: return []
        }
    }

    package static func mediaIdle(_ sequence: Int64, at index: Int, _ room: inout Room, _ now: Int64) -> [RoomEffect] {
        guard room.slots[index].holds(sequence), room.slots[index].isActive else { return [] }
        return self.streamWent(.mediaIdle, until: now.later(by: room.policy.waitMs(for: .mediaIdle)), at: index, &room, now)
    }

    /// The publisher's client announces a pause.
    package static func pauseAnnounced(at index: Int, _ room: inout Room, _ now: Int64) -> [RoomEffect] {
        let slot = room.slots[index]
        guard slot.sequence != nil, slot.isActive || slot.awayReason == .mediaIdle else { return [] }
        return self.streamWent(.paused, until: self.pauseEnd(of: slot, room, now), at: index, &room, now)
    }

    /// The API announces a pause. Also valid right after the connection broke: the call may arrive later, over another connection.
    package static func pause(_ room: inout Room, _ now: Int64) throws(RoomRefusal) -> [RoomEffect] {
        try self.require([.live, .interrupted], room)
        var effects: [RoomEffect] = []
        var paused = false
        let wasInterrupted = room.state == .interrupted
        for (index, slot) in room.slots.enumerated() where slot.isActive || (slot.awayReason != nil && slot.awayReason != .paused) {
            // The pause does not concern a stream that left while others ran on.
            guard slot.isActive || wasInterrupted || slot.awayReason == .mediaIdle else { continue }
            effects += self.streamWent(.paused, until: self.pauseEnd(of: slot, room, now), at: index, &room, now)
            paused = true
        }
        guard paused else { throw .wrongState(room.state, allowed: [.live]) }
        return effects
    }

    private static func pauseEnd(of slot: Room.Slot, _ room: Room, _ now: Int64) -> Int64 {
        max(now.later(by: room.policy.waitMs(for: .paused)), slot.awayUntil ?? now)
    }

    package static func pushEnded(_ sequence: Int64, _ end: PushEnd, at index: Int, _ room: inout Room, _ now: Int64) -> [RoomEffect] {
        if let ghost = room.slots[index].earlier.firstIndex(of: sequence) {
            room.slots[index].earlier.remove(at: ghost)
            return []
        }
        guard room.slots[index].sequence == sequence else { return [] }
        // This push never had media, which would have cleared `earlier`: the relay rejected it, or it left before taking over.
        if let holder = room.slots[index].earlier.popLast() {
            room.slots[index].sequence = holder
            return []
        }
        room.slots[index].sequence = nil
        let reason = StateReason(after: end)
        let until = now.later(by: room.policy.waitMs(for: reason))
        let slot = room.slots[index]
        if slot.isActive { return self.streamWent(reason, until: until, at: index, &room, now) }
        switch slot.awayReason {
        case .mediaIdle: return self.streamWent(reason, until: until, at: index, &room, now)
        case .paused where reason == .stopped || reason == .dropped: return self.streamWent(reason, until: until, at: index, &room, now)
        case .paused: return self.streamWent(.paused, until: max(slot.awayUntil ?? until, until), at: index, &room, now)
        // A push that returned without media does not keep a room from ending.
        default: return []
        }
    }

    /// Waits for the publisher no longer than after a clean stop: its connection was lost, and now it says that it will not come back.
    package static func finished(at index: Int, _ room: inout Room, _ now: Int64) -> [RoomEffect] {
        let slot = room.slots[index]
        guard [.live, .interrupted].contains(room.state), slot.sequence == nil, slot.awayReason != nil, slot.awayReason != .stopped
        else { return [] }
        let until = min(slot.awayUntil ?? .max, now.later(by: room.policy.waitMs(for: .stopped)))
        return self.streamWent(.stopped, until: until, at: index, &room, now)
    }

    /// Marks the slot's stream as away, or changes the reason. Interrupts the room if no other stream runs.
    package static func streamWent(_ reason: StateReason, until: Int64, at index: Int, _ room: inout Room, _ now: Int64) -> [RoomEffect] {
        room.slots[index].isActive = false
        room.slots[index].awayReason = reason
        room.slots[index].awayUntil = until
        return self.interrupt(reason, &room, now)
    }

    /// Interrupts a live room without an active stream, or updates an interruption's reason and end.
    package static func interrupt(_ reason: StateReason, _ room: inout Room, _ now: Int64) -> [RoomEffect] {
        guard !room.hasActiveStream else { return [] }
        var effects: [RoomEffect] = []
        switch room.state {
        case .live:
            effects = [room.enter(.interrupted, reason, event: .roomInterrupted)]
            room.interruptedAt = now
        case .interrupted: room.reason = reason
        case .created, .forbidden, .expired, .closed: return []
        }
        // Each stream has its own wait; the room waits for the one that may take longest.
        let ends = room.slots.compactMap(\.awayUntil).max() ?? room.interruptionEnds ?? now.later(by: room.policy.waitMs(for: reason))
        room.interruptionEnds = max(ends, room.keptUntil ?? ends)
        return effects
    }

    /// The server starts. Publishers lost their connections through no fault of their own and get time to return.
    package static func serverStarted(_ room: inout Room, _ now: Int64) -> [RoomEffect] {
        let fresh = now.later(by: room.policy.waitMs(for: .serverRestart))
        // Nobody could send heartbeats meanwhile.
        if room.heartbeatAt != nil { room.heartbeatAt = now }
        if room.ownerSeenAt != nil { room.ownerSeenAt = now }
        var restarted = false
        for index in room.slots.indices {
            let slot = room.slots[index]
            room.slots[index].sequence = nil
            room.slots[index].earlier = []
            room.slots[index].isActive = false
            if slot.isActive || (room.reason.isServersEnd && slot.awayReason?.isServersEnd == true) {
                room.slots[index].awayReason = .serverRestart
                room.slots[index].awayUntil = fresh
                restarted = true
            } else if slot.sequence != nil, let until = slot.awayUntil, until > now {
                // Silent, but connected until the restart. A wait that is over stays over.
                room.slots[index].awayUntil = max(until, fresh)
            }
        }
        guard room.state == .live || room.state == .interrupted else { return [] }
        let effects = self.interrupt(restarted ? .serverRestart : room.reason, &room, now)
        if restarted { room.interruptedAt = now }
        return effects
    }
}

extension Room.Slot {
    /// Whether this is the newest push, or one it may still fall back to.
    package func holds(_ sequence: Int64) -> Bool { self.sequence == sequence || self.earlier.contains(sequence) }
}
