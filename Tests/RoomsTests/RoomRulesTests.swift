import Rooms
import Testing

/// A room with a clock in seconds from its creation. Every timer of its policy has a different length.
struct RoomAtWork {
    /// Milliseconds since 1970 at which the room was made.
    static let origin: Int64 = 1_790_000_000_000
    var room: Room
    var effects: [RoomEffect] = []

    static var policy: RoomPolicy {
        var policy = RoomPolicy()
        policy.neverStartedMs = 300_000
        policy.graceMs = 30_000
        policy.cleanStopMs = 3_000
        policy.idleGraceMs = 100_000
        policy.pauseGraceMs = 120_000
        policy.heartbeatMs = 15_000
        policy.heartbeatMisses = 3
        policy.ownerOfflineMs = 200_000
        policy.maxDurationMs = 3_600_000
        policy.retentionMs = 1_000_000
        return policy
    }

    init(slots: Int = 1) throws {
        let id = try RoomID(checking: "r1")
        self.room = Room(id: id, slots: Room.slots(of: id, count: slots), at: Self.origin)
        self.room.owner = "olga"
        self.room.policy = Self.policy
    }

    static func at(_ second: Int64) -> Int64 { Self.origin + second * 1_000 }

    /// Applies an input that must not be refused, and keeps its effects.
    mutating func at(_ second: Int64, _ input: RoomInput) throws(RoomRefusal) {
        self.effects = try RoomRules.apply(input, to: &self.room, now: Self.at(second))
    }

    func refusal(at second: Int64, _ input: RoomInput) -> RoomRefusal? {
        var copy = self.room
        do throws(RoomRefusal) {
            _ = try RoomRules.apply(input, to: &copy, now: Self.at(second))
            return nil
        } catch {
            return copy == self.room ? error : nil
        }
    }

    /// Admits a push, with media at once.
    mutating func push(_ sequence: Int64, slot: Int = 1, at second: Int64) throws {
        try self.at(second, .pushAdmitted(slot: slot, sequence: sequence))
        try self.at(second, .mediaArrived(slot: slot, sequence: sequence))
    }

    /// Ticks until nothing is due any more. Returns all events of the room on the way.
    mutating func settle(at second: Int64) throws -> [RoomEvent.Kind] {
        var kinds: [RoomEvent.Kind] = []
        for _ in 0..<10 {
            try self.at(second, .tick)
            kinds += self.events
            if self.effects.isEmpty { return kinds }
        }
        Issue.record("there is always something due at \(second)")
        return kinds
    }

    var deadline: Int64? { RoomRules.nextDeadline(of: self.room).map { ($0 - Self.origin) / 1_000 } }
    /// The events of the last input.
    var events: [RoomEvent.Kind] { self.effects.compactMap { if case .event(let kind, _) = $0 { kind } else { nil } } }
    var cuts: [RoomEffect] { self.effects.filter { if case .cut = $0 { true } else { false } } }

    /// "live/media [5 9*] room.live cut:5:roomEnded+viewers 3610": state and reason; the slots' pushes, earlier first, a star where the
    /// stream runs; effects; the next deadline.
    var description: String {
        let slots = self.room.slots.map { slot in
            let pushes = (slot.earlier + [slot.sequence].compactMap(\.self)).map(String.init).joined(separator: " ")
            return "[\(pushes.isEmpty ? "-" : pushes)\(slot.isActive ? "*" : "")]"
        }
        let effects = self.effects.map { effect in
            switch effect {
            case .event(let kind, _): kind.rawValue
            case .streamEvent(let kind, let slot): "\(kind.rawValue):\(slot)"
            case .cut(_, let sequence, let end, let viewers):
                "cut:\(sequence.map(String.init) ?? "-"):\(end.rawValue)\(viewers ? "+viewers" : "")"
            case .delete: "delete"
            }
        }
        let parts =
            ["\(self.room.state.rawValue)/\(self.room.reason.rawValue)"] + slots + effects + [self.deadline.map(String.init) ?? "never"]
        return parts.joined(separator: " ")
    }
}

@Suite struct RoomRulesTests {
    @Test func inputsForSlotsThatARoomDoesNotHaveAreRefused() throws {
        let work = try RoomAtWork()
        let inputs: [RoomInput] = [
            .pushAdmitted(slot: 2, sequence: 1), .mediaArrived(slot: 0, sequence: 1), .mediaIdle(slot: -1, sequence: 1),
            .pauseAnnounced(slot: 2), .pushEnded(slot: 2, sequence: 1, .clientStopped), .forbidSlot(9, untilMs: 1, reason: ""),
            .resumeSlot(.max),
        ]
        let slots = inputs.map { work.refusal(at: 1, $0) }
        #expect(slots == [.noSlot(2), .noSlot(0), .noSlot(-1), .noSlot(2), .noSlot(2), .noSlot(9), .noSlot(.max)])
    }

    @Test func aRefusalLeavesTheRoomAsItWas() throws {
        var work = try RoomAtWork()
        try work.at(5, .close)
        let closed = work.room
        for input: RoomInput in [.renew(byMs: 5), .heartbeat(sender: "olga"), .forbid(untilMs: 9, reason: "x"), .reopen, .expire] {
            #expect(throws: RoomRefusal.self) { try work.at(6, input) }
            #expect(work.room == closed)
        }
        // Whoever closes it again has what they want.
        try work.at(6, .close)
        #expect(work.room == closed)
    }

    @Test func firstMediaStartsDurationAndLiveTime() throws {
        var work = try RoomAtWork()
        try work.at(4, .pushAdmitted(slot: 1, sequence: 5))
        #expect(work.room.state == .created && work.room.liveSince == nil && work.room.durationFrom == nil)
        try work.at(7, .mediaArrived(slot: 1, sequence: 5))
        #expect(work.room.liveSince == RoomAtWork.at(7) && work.room.durationFrom == RoomAtWork.at(7))
        try work.at(20, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        try work.push(6, at: 30)
        // The same broadcast, interrupted once.
        #expect(work.room.liveSince == RoomAtWork.at(7) && work.room.durationFrom == RoomAtWork.at(7))
    }

    @Test func reopeningBeginsAnotherInstanceWithTheSameSettings() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        work.room.peak = 12
        work.room.likes = 90
        work.room.title = "Harbour"
        work.room.custom = "{\"a\":1}"
        try work.at(2, .heartbeat(sender: "olga"))
        try work.at(3, .memberLeft(user: "olga"))
        try work.at(4, .expire)
        try work.at(50, .reopen)
        #expect(work.description == "created/reopened [-] room.created 350")
        #expect(work.room.instance == 2)
        #expect(work.room.peak == 0 && work.room.likes == 0)
        #expect(work.room.title == "Harbour" && work.room.custom == "{\"a\":1}" && work.room.owner == "olga")
        #expect(work.room.endedAt == nil && work.room.liveSince == nil && work.room.durationFrom == nil)
        #expect(work.room.heartbeatAt == nil && work.room.ownerAwaySince == nil && work.room.ownerSeenAt == nil)
        // Reports of the former instance's push are stale.
        try work.at(51, .mediaArrived(slot: 1, sequence: 5))
        #expect(work.description == "created/reopened [-] 350")
    }

    @Test func eventsCarryTheStateBefore() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        #expect(work.effects == [.event(.roomLive, from: .created)])
        try work.at(2, .forbid(untilMs: RoomAtWork.at(90), reason: "spam"))
        #expect(
            work.effects == [
                .streamEvent(.streamForbidden, slot: 1), .event(.roomForbidden, from: .live),
                .cut(slot: 1, sequence: 5, .forbidden, endsViewers: true),
            ])
        #expect(work.room.forbidReason == "spam" && work.room.slots[0].forbidReason == "spam")
        try work.at(3, .close)
        #expect(work.effects.first == .event(.roomClosed, from: .forbidden))
        #expect(work.room.forbiddenUntil == nil && work.room.forbidReason == nil)
    }

    @Test func anotherOwnerIsNotAwayBecauseTheLastOneWas() throws {
        var work = try RoomAtWork()
        try work.at(3, .memberLeft(user: "olga"))
        work.room.changeOwner(to: "olga")
        #expect(work.deadline == 203)
        work.room.changeOwner(to: "pia")
        #expect(work.deadline == 300)
        try work.at(4, .heartbeat(sender: "olga"))
        #expect(work.room.ownerSeenAt == nil)
    }
}
