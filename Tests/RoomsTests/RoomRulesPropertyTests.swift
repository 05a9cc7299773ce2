import Rooms
import Testing

/// SplitMix64: the same sequences on every machine.
private struct Dice: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// Invariants of every room, checked in thousands of random lives.
@Suite struct RoomRulesPropertyTests {
    /// The state machine's transitions, and the event of each.
    private static let arrows: [String: RoomEvent.Kind] = [
        "created live": .roomLive, "created expired": .roomExpired, "created closed": .roomClosed, "created forbidden": .roomForbidden,
        "live interrupted": .roomInterrupted, "live expired": .roomExpired, "live closed": .roomClosed, "live forbidden": .roomForbidden,
        "interrupted live": .roomResumed, "interrupted expired": .roomExpired, "interrupted closed": .roomClosed,
        "interrupted forbidden": .roomForbidden, "forbidden created": .roomUnforbidden, "forbidden closed": .roomClosed,
        "expired created": .roomCreated, "expired closed": .roomClosed, "expired forbidden": .roomForbidden,
    ]

    /// One step. Its checks use no macro: there are millions, and only a failure is worth a description.
    private struct Trace {
        let input: RoomInput
        let now: Int64
        let before: Room
        let room: Room
        let effects: [RoomEffect]

        func check(_ holds: Bool, line: Int = #line) {
            guard !holds else { return }
            Issue.record("line \(line), \(self.input) at \(self.now): \(self.before) to \(self.room) with \(self.effects)")
        }
    }

    private struct Seen {
        var arrows: Set<String> = []
        var reasons: Set<StateReason> = []
        var refused = 0
        var deleted = 0
    }

    @Test func randomLives() throws {
        var seen = Seen()
        for seed in 0..<3_000 {
            var dice = Dice(state: UInt64(seed))
            try Self.live(&dice, &seen)
        }
        // The runs covered every transition and every reason.
        #expect(seen.arrows == Set(Self.arrows.keys))
        #expect(seen.reasons == Set(StateReason.allCases))
        #expect(seen.refused > 1_000 && seen.deleted > 100)
    }

    private static func live(_ dice: inout Dice, _ seen: inout Seen) throws {
        let id = try RoomID(checking: "r1")
        var now = RoomAtWork.origin
        var room = Room(id: id, slots: Room.slots(of: id, count: Int.random(in: 1...3, using: &dice)), at: now)
        room.owner = Bool.random(using: &dice) ? "olga" : nil
        room.policy = RoomAtWork.policy
        // Short enough that every deadline is met now and then.
        room.policy.maxDurationMs = Int64.random(in: 50_000...1_000_000, using: &dice)
        room.policy.ownerOfflineMs = Int64.random(in: 1_000...200_000, using: &dice)
        room.policy.heartbeatMisses = Int.random(in: 1...10, using: &dice)
        var sequence: Int64 = 0
        let stepsBack = Int.random(in: 0..<4, using: &dice) == 0
        seen.reasons.insert(room.reason)

        for _ in 0..<40 {
            switch Int.random(in: 0..<12, using: &dice) {
            case 0: now = RoomRules.nextDeadline(of: room) ?? now
            case 1 where stepsBack: now -= Int64.random(in: 0...500_000, using: &dice)
            case 2: now += Int64.random(in: 0...200_000, using: &dice)
            default: now += Int64.random(in: 0...5_000, using: &dice)
            }
            let input = Self.input(for: room, now, &sequence, &dice)
            let before = room
            let effects: [RoomEffect]
            do throws(RoomRefusal) {
                effects = try RoomRules.apply(input, to: &room, now: now)
            } catch {
                #expect(room == before, "a refusal changed the room")
                seen.refused += 1
                continue
            }
            let trace = Trace(input: input, now: now, before: before, room: room, effects: effects)
            Self.checkTransition(input, before, room, effects, now, &seen, trace)
            Self.checkRoom(room, trace)
            Self.checkDeadline(room, trace)
            if effects.contains(.delete) {
                seen.deleted += 1
                return
            }
        }
    }

    private static func input(for room: Room, _ now: Int64, _ sequence: inout Int64, _ dice: inout Dice) -> RoomInput {
        let slot = Int.random(in: 1...room.slots.count, using: &dice)
        let held = room.slots[slot - 1]
        let known = [held.sequence, held.sequence, held.earlier.first, sequence].compactMap(\.self)
        let push = known.randomElement(using: &dice) ?? 0
        let users = ["olga", "cam", nil]
        switch Int.random(in: 0..<34, using: &dice) {
        case 0..<5:
            sequence += 1
            return .pushAdmitted(slot: slot, sequence: sequence)
        case 5..<11: return .mediaArrived(slot: slot, sequence: push)
        case 11, 12: return .mediaIdle(slot: slot, sequence: push)
        case 13: return Bool.random(using: &dice) ? .pauseAnnounced(slot: slot) : .finished(slot: slot)
        case 14: return .pauseAnnounced(slot: nil)
        case 15..<18: return .pushEnded(slot: slot, sequence: push, PushEnd.allCases.randomElement(using: &dice) ?? .dropped)
        case 18, 19: return .heartbeat(sender: users.randomElement(using: &dice) ?? nil)
        case 20: return .memberJoined(user: "olga")
        case 21: return .memberLeft(user: "olga")
        case 22: return .renew(byMs: Bool.random(using: &dice) ? nil : Int64.random(in: -5_000...60_000, using: &dice))
        case 23: return Int.random(in: 0..<3, using: &dice) == 0 ? .close : .tick
        case 24: return Int.random(in: 0..<3, using: &dice) == 0 ? .expire : .tick
        case 25: return .forbid(untilMs: now + Int64.random(in: 0...300_000, using: &dice), reason: "r")
        case 26: return .resume
        case 27: return .forbidSlot(slot, untilMs: now + Int64.random(in: 0...300_000, using: &dice), reason: "s")
        case 28: return .resumeSlot(slot)
        case 29: return .reopen
        case 30: return .serverStarted
        default: return .tick
        }
    }

    private static func checkTransition(
        _ input: RoomInput, _ before: Room, _ room: Room, _ effects: [RoomEffect], _ now: Int64, _ seen: inout Seen, _ trace: Trace
    ) {
        var transitions: [RoomEvent.Kind] = []
        for case .event(let kind, let from) in effects {
            if kind.isTransition { transitions.append(kind) }
            trace.check(from == before.state || (!kind.isTransition && from == room.state))
        }
        if room.state == before.state {
            trace.check(transitions.isEmpty)
        } else {
            let arrow = "\(before.state) \(room.state)"
            trace.check(transitions == [Self.arrows[arrow]])
            seen.arrows.insert(arrow)
        }
        seen.reasons.insert(room.reason)
        let isForbidden = if case .forbid = input { true } else { false }
        if before.state == .expired { trace.check(room.state == .expired || input == .reopen || input == .close || isForbidden) }
        if before.state == .closed { trace.check(room.state == .closed) }
        let beginsLife = input == .reopen || (isForbidden && before.state == .expired)
        trace.check(room.instance == before.instance + (beginsLife ? 1 : 0))

        if input == .tick, room.state == .expired, before.state != .expired {
            trace.check(now >= Self.earliestEnd(of: before, for: room.reason))
            let absence = room.reason == .heartbeatLost || room.reason == .ownerOffline || room.reason == .graceOver
            if absence { trace.check(!before.hasActiveStream) }
        }
        if room.state != before.state, room.state.isTerminal || room.state == .forbidden {
            let pushes = before.slots.flatMap { $0.earlier + [$0.sequence].compactMap(\.self) }
            var cut: [Int64] = []
            var viewersEnded: Set<Int> = []
            for case .cut(let slot, let sequence, let end, let endsViewers) in effects {
                let away = before.slots.first { $0.number == slot }?.awayReason
                let isSilence = room.reason == .graceOver && (away == .mediaIdle || away == .paused)
                trace.check(end == (room.state == .forbidden ? .forbidden : isSilence ? .mediaIdle : .roomEnded))
                if let sequence { cut.append(sequence) }
                if endsViewers { viewersEnded.insert(slot) }
            }
            trace.check(cut.sorted() == pushes.sorted())
            let running = before.slots.filter { !$0.isForbidden }.map(\.number)
            trace.check(viewersEnded.isSuperset(of: running))
        }
        // A push ends when the room says so or its end is reported, never silently.
        if input == .tick, !effects.contains(where: { if case .cut = $0 { true } else { false } }), room.state != .created {
            trace.check(room.slots.map(\.sequence) == before.slots.map(\.sequence))
        }
    }

    /// The earliest end, derived from the design instead of the state machine.
    private static func earliestEnd(of room: Room, for reason: StateReason) -> Int64 {
        let policy = room.policy
        let grace = (room.interruptedAt ?? .min / 2) + policy.graceMs
        let silence = policy.heartbeatMs * Int64(policy.heartbeatMisses)
        switch reason {
        case .neverStarted: return room.waitingSince + policy.neverStartedMs
        case .maxDuration: return (room.durationFrom ?? .max / 2) + policy.maxDurationMs
        case .graceOver: return room.interruptionEnds ?? .max
        case .heartbeatLost: return max((room.heartbeatAt ?? .max / 2) + silence, grace)
        // The same tick may have detected that the owner's heartbeats stopped.
        case .ownerOffline:
            let away = room.ownerAwaySince ?? ((room.ownerSeenAt ?? .max / 2) + silence)
            return max(away + policy.ownerOfflineMs, grace)
        default: return .max
        }
    }

    private static func checkRoom(_ room: Room, _ trace: Trace) {
        trace.check((room.state == .live) == room.hasActiveStream)
        trace.check((room.state == .interrupted) == (room.interruptedAt != nil))
        trace.check((room.state == .interrupted) == (room.interruptionEnds != nil))
        trace.check(room.keptUntil == nil || room.state == .interrupted)
        trace.check(room.state.isTerminal == (room.endedAt != nil))
        trace.check(room.forbiddenUntil == (room.state == .forbidden ? room.slots.compactMap(\.forbiddenUntil).min() : nil))
        if RoomState.allCases.filter({ !$0.isTerminal && $0 != .forbidden }).contains(room.state) {
            trace.check(!room.slots.allSatisfy(\.isForbidden))
        }
        if room.state == .live || room.state == .interrupted { trace.check(room.durationFrom != nil && room.liveSince != nil) }
        for slot in room.slots {
            trace.check(!slot.isActive || slot.sequence != nil)
            trace.check(slot.earlier.isEmpty || slot.sequence != nil)
            trace.check(slot.earlier.count <= Room.Slot.mostEarlier)
            trace.check((slot.awayReason == nil) == (slot.awayUntil == nil))
            trace.check(!slot.isActive || slot.awayReason == nil)
            trace.check(!slot.isForbidden || (slot.sequence == nil && !slot.isActive))
        }
    }

    /// The next deadline is the first instant at which a tick has an effect. Ticking there comes to an end.
    private static func checkDeadline(_ room: Room, _ trace: Trace) {
        guard let deadline = RoomRules.nextDeadline(of: room) else {
            trace.check(false)
            return
        }
        do throws(RoomRefusal) {
            var early = room
            trace.check(try RoomRules.apply(.tick, to: &early, now: deadline - 1).isEmpty)
            trace.check(early == room)
            var ticked = room
            var ticks = 0
            var effects: [RoomEffect] = []
            repeat {
                let state = ticked.state
                effects = try RoomRules.apply(.tick, to: &ticked, now: deadline)
                trace.check(ticks > 0 || !effects.isEmpty)
                ticks += 1
                if effects.isEmpty || effects.contains(.delete) { break }
                if ticked.state == state {
                    let next = RoomRules.nextDeadline(of: ticked) ?? .max
                    trace.check(next > deadline)
                }
            } while ticks < 20
            trace.check(ticks < 20)
        } catch {
            trace.check(false)
        }
    }
}
