/// An input to a room: a fact about its streams, a user's call, or time.
package enum RoomInput: Sendable, Equatable {
    /// A publisher was admitted; nothing has arrived yet.
    case pushAdmitted(slot: Int, sequence: Int64)
    /// First audio or video of the push, or the first after a silence or pause.
    case mediaArrived(slot: Int, sequence: Int64)
    /// No media for `mediaIdle`; the connection is still open.
    case mediaIdle(slot: Int, sequence: Int64)
    /// A pause announced by the publisher's client (its slot; the caller checks that the push is its newest) or the API (nil: all slots).
    case pauseAnnounced(slot: Int?)
    case pushEnded(slot: Int, sequence: Int64, PushEnd)
    /// The publisher says that its push, which has ended already, was its last.
    case finished(slot: Int)
    /// `sender` is a user or device; nil if not given.
    case heartbeat(sender: String?)
    case memberJoined(user: String)
    case memberLeft(user: String)
    case renew(byMs: Int64?)
    case close
    case expire
    case forbid(untilMs: Int64, reason: String)
    case resume
    /// Forbids one camera of several. The room continues with the others; it is forbidden when none is left.
    case forbidSlot(Int, untilMs: Int64, reason: String)
    case resumeSlot(Int)
    /// A valid push to an expired room's stream.
    case reopen
    /// The server starts; no stream is left.
    case serverStarted
    /// The clock: applies deadlines that have passed.
    case tick
    /// The same while nobody can call or push: without deadlines that a call or a push would have moved.
    case tickAlone
}

/// The effects that the caller of ``RoomRules/apply(_:to:now:)`` carries out, in order.
package enum RoomEffect: Sendable, Equatable {
    /// Store and publish an event with the room's new state; `from` is the former one.
    case event(RoomEvent.Kind, from: RoomState)
    /// Store and publish an event for a stream that was forbidden or freed. (The caller handles begin and end of pushes, and members' joins and
    /// leaves.)
    case streamEvent(RoomEvent.Kind, slot: Int)
    /// End this slot's push (nil: any, perhaps none) and give its publisher the reason. `endsViewers` also ends its viewers' stream.
    case cut(slot: Int, sequence: Int64?, PushEnd, endsViewers: Bool)
    /// Retention is over: delete the room.
    case delete
}

/// The reason why an input is invalid in the room's state.
package enum RoomRefusal: Error, Equatable, Sendable {
    /// `allowed` lists the states in which it is valid.
    case wrongState(RoomState, allowed: [RoomState])
    /// No slot with this number.
    case noSlot(Int)
    case slotForbidden(Int, untilMs: Int64, reason: String)
    case slotNotForbidden(Int)
}

/// The rooms' state machine, drawn in ``RoomState``. It has no clock: `now` is passed in as milliseconds since 1970. It may step back, which ends
/// nothing early.
///
/// Every change of ``Room/state`` goes through ``Room/enter(_:_:event:)``: one change, one transition event.
package enum RoomRules {
    /// Applies `input` to the room and returns the effects. Facts about pushes that have ended or been replaced do nothing.
    ///
    /// Only ``RoomInput/tick`` and ``RoomInput/tickAlone`` apply passed deadlines: tick first where it matters. If this throws, the room is unchanged.
    package static func apply(_ input: RoomInput, to room: inout Room, now: Int64) throws(RoomRefusal) -> [RoomEffect] {
        var changed = room
        let effects = try self.effects(of: input, on: &changed, now)
        room = changed
        return effects
    }

    private static func effects(of input: RoomInput, on room: inout Room, _ now: Int64) throws(RoomRefusal) -> [RoomEffect] {
        switch input {
        case .pushAdmitted(let slot, let sequence): try self.pushAdmitted(sequence, at: self.index(of: slot, in: room), &room)
        case .mediaArrived(let slot, let sequence): self.mediaArrived(sequence, at: try self.index(of: slot, in: room), &room, now)
        case .mediaIdle(let slot, let sequence): self.mediaIdle(sequence, at: try self.index(of: slot, in: room), &room, now)
        case .pauseAnnounced(.some(let slot)): self.pauseAnnounced(at: try self.index(of: slot, in: room), &room, now)
        case .pauseAnnounced(nil): try self.pause(&room, now)
        case .pushEnded(let slot, let sequence, let end): self.pushEnded(sequence, end, at: try self.index(of: slot, in: room), &room, now)
        case .finished(let slot): self.finished(at: try self.index(of: slot, in: room), &room, now)
        case .heartbeat(let sender): try self.heartbeat(from: sender, &room, now)
        case .memberJoined(let user): try self.memberJoined(user, &room, now)
        case .memberLeft(let user): self.memberLeft(user, &room, now)
        case .renew(let byMs): try self.renew(byMs: byMs, &room, now)
        case .close: self.close(&room, now)
        case .expire: try self.expire(&room, now)
        case .forbid(let untilMs, let reason): try self.forbid(untilMs: untilMs, reason: reason, &room, now)
        case .resume: try self.resume(&room, now)
        case .forbidSlot(let slot, let untilMs, let reason):
            self.forbidSlot(at: try self.index(of: slot, in: room), untilMs: untilMs, reason: reason, &room, now)
        case .resumeSlot(let slot): try self.resumeSlot(at: self.index(of: slot, in: room), &room, now)
        case .reopen: try self.reopen(&room, now)
        case .serverStarted: self.serverStarted(&room, now)
        case .tick: self.tick(&room, now)
        case .tickAlone: self.tick(&room, now, isAlone: true)
        }
    }

    private static func index(of number: Int, in room: Room) throws(RoomRefusal) -> Int {
        guard let index = room.slots.firstIndex(where: { $0.number == number }) else { throw .noSlot(number) }
        return index
    }

    /// Throws if the input is invalid in the room's state.
    static func require(_ allowed: [RoomState], _ room: Room) throws(RoomRefusal) {
        guard allowed.contains(room.state) else { throw .wrongState(room.state, allowed: allowed) }
    }

    /// The states in which streams may run.
    package static let open: [RoomState] = [.created, .live, .interrupted]
    package static let notEnded: [RoomState] = [.created, .live, .interrupted, .forbidden]
    /// The states in which a room may be forbidden. They include expired, as its device's URL would reopen the room.
    static let forbiddable = Self.notEnded + [.expired]
}

extension Room {
    /// The only way to another state; clears the fields of the former one.
    package mutating func enter(_ state: RoomState, _ reason: StateReason, event kind: RoomEvent.Kind) -> RoomEffect {
        let from = self.state
        self.state = state
        self.reason = reason
        if state != .interrupted {
            self.interruptedAt = nil
            self.interruptionEnds = nil
            self.keptUntil = nil
        }
        if state != .forbidden {
            self.forbiddenUntil = nil
            self.forbidReason = nil
        }
        return .event(kind, from: from)
    }

    /// Forgets the slot's pushes and returns the effects that end them. Their later reports are stale.
    mutating func cutPushes(at index: Int, _ end: PushEnd) -> [RoomEffect] {
        let slot = self.slots[index]
        self.slots[index].sequence = nil
        self.slots[index].earlier = []
        self.slots[index].isActive = false
        self.slots[index].awayReason = nil
        self.slots[index].awayUntil = nil
        return slot.earlier.map { .cut(slot: slot.number, sequence: $0, end, endsViewers: false) }
            + [.cut(slot: slot.number, sequence: slot.sequence, end, endsViewers: true)]
    }

    mutating func cutAllPushes(_ end: PushEnd) -> [RoomEffect] {
        var effects: [RoomEffect] = []
        for index in self.slots.indices { effects += self.cutPushes(at: index, end) }
        return effects
    }
}

extension Int64 {
    /// This instant plus `milliseconds`. Saturates at the ends of the range, which wire numbers may reach.
    package func later(by milliseconds: Int64) -> Int64 {
        let (sum, overflow) = self.addingReportingOverflow(milliseconds)
        return overflow ? (milliseconds < 0 ? .min : .max) : sum
    }
}
