import Testing

@testable import Apps
@testable import Rooms
@testable import Support

/// Random lives of classes: after any input the invariants hold.
@Suite struct ClassroomLivesTests {
    /// The last step's result, in one value.
    private struct Step {
        let before: Classroom
        let room: Classroom
        let effects: [Gathering.Effect]
        let nowMs: Int64
    }

    @Test(arguments: 1...50 as ClosedRange<UInt64>) func randomLives(_ seed: UInt64) throws { _ = try self.live(seed) }

    /// The lives are full: each message, event and way to leave occurs in a few of them.
    @Test func fullLives() throws {
        var seen: Set<String> = []
        for seed in UInt64(51)...58 { seen.formUnion(try self.live(seed)) }
        let expected: Set<String> = [
            "SC:RMCMsg", "SC:RCMsg", "SC:ATMsg", "SC:DisplayMsg", "SC:WBMsg", "SC:WBTPMsg", "SC:DRMsg", "SC:CDNMsg", "SC:RSMsg", "SC:SRMsg",
            "SC:IURMsg", "SC:TEMsg", "opened speech", "approved speech", "rejected speech", "expired speech", "opened invite",
            "approved invite", "rejected invite", "expired invite", "opened camera", "approved camera", "rejected microphone",
            "expired microphone", "member.role", "assistant.transferred", "device.changed", "display.changed", "board.created",
            "board.deleted", "board.turned", "left", "kicked", "offline", "ended timeOver", "ended empty", "ended over",
        ]
        #expect(expected.subtracting(seen) == [])
    }

    private static func word(_ effect: Gathering.Effect) -> String {
        switch effect {
        case .send(.notified(_, let object, _, _), _): object
        case .ticketChanged(let change, let ticket): "\(change) \(ticket.kind)"
        case .event(let kind, _): kind.rawValue
        case .left(_, let why): why.rawValue
        case .ended(let reason): "ended \(reason)"
        default: ""
        }
    }

    /// Plays one life; what occurred in it.
    private func live(_ seed: UInt64) throws -> Set<String> {
        var seen: Set<String> = []
        var world = ClassroomWorld(seed)
        var refusals: Set<String> = []
        for _ in 0..<500 {
            world.nowMs += Int64.random(in: 0...4_000, using: &world.dice)
            let before = world.room
            let isOwn = Int.random(in: 0..<4, using: &world.dice) > 0
            let (own, core) = (world.input(), world.coreInput())
            do throws(GatheringRefusal) {
                let effects =
                    isOwn ? try world.room.apply(own, nowMs: world.nowMs) : try world.room.apply(core, nowMs: world.nowMs)
                let step = Step(before: before, room: world.room, effects: effects, nowMs: world.nowMs)
                seen.formUnion(effects.map(Self.word))
                self.check(step)
                self.checkEvents(step)
                for case .ticketChanged(let change, let ticket) in effects where change != .opened {
                    #expect(world.endedTickets.insert(ticket.id).inserted, "\(ticket.id) ends twice")
                }
            } catch {
                #expect(world.room == before, "a refusal changes nothing: \(own), \(core)")
                #expect(!isOwn || Int(error.code) != nil, "\(error.code) is no code of a class")
                refusals.insert(error.code)
            }
            try self.checkStore(world)
            if world.room.gathering.hasEnded {
                let life = world
                world = ClassroomWorld(seed &+ 1_000)
                (world.dice, world.number) = (life.dice, life.number)
            }
        }
        #expect(refusals.count > 5, "a life in which hardly anything goes wrong tests little: \(refusals)")
        return seen
    }

    // MARK: - What always holds

    private func check(_ step: Step) {
        let (room, members) = (step.room, step.room.gathering.members)
        let limits = ClassroomWorld.limits
        func count(_ role: ClassroomRole) -> Int { members.count { $0.role == role.rawValue } }
        #expect(members.allSatisfy { ClassroomRole(rawValue: $0.role) != nil })
        #expect(count(.assistant) <= 1 && count(.teacher) <= 1)
        #expect(room.activeMembers <= limits.activeMembers && members.count <= limits.members && room.boards.count <= limits.boards)
        #expect(Set(members.map(\.id)) == Set(room.devices.keys), "everybody has devices, nobody else")
        #expect(Set(room.boards.map(\.id)).count == room.boards.count)
        #expect(room.boards.allSatisfy { (0...1_000).contains($0.page) })
        switch room.display {
        case nil: break
        case let shown? where shown.kind == .assistant: #expect(room.role(of: shown.userID) == .assistant)
        case let shown? where shown.kind == .teacher: #expect(room.role(of: shown.userID) == .teacher)
        case let shown? where shown.kind == .screen: #expect(room.gathering.member(shown.userID) != nil)
        case let shown?: #expect(room.board(shown.uri) != nil)
        }
        let tickets = room.gathering.tickets
        #expect(tickets.allSatisfy { room.gathering.member($0.from) != nil && room.gathering.member($0.to) != nil })
        #expect(Set(tickets.map { "\($0.kind) \($0.from) \($0.to)" }).count == tickets.count, "one of a kind waits between two")
        #expect(tickets.allSatisfy { ["speech", "invite", "camera", "microphone"].contains($0.kind) })
        #expect(room.gathering.queue.isEmpty)
        #expect(
            room.isIdle == members.isEmpty && (!members.isEmpty || room.gathering.hasEnded || room.gathering.joins == 0),
            "once left by all it has ended")
        if !room.gathering.hasEnded, let deadline = room.nextDeadlineMs {
            var later = room
            let effects = try? later.apply(.tick, nowMs: deadline)
            #expect(effects?.isEmpty == false, "something is due at the deadline")
        }
    }

    /// Receivers of messages were members; a change that members are notified of is stored; and back ends can follow by events alone.
    private func checkEvents(_ step: Step) {
        let (before, room) = (step.before, step.room)
        let there = Set(before.gathering.all + room.gathering.all)
        var (roles, display, pages, devices) = (Self.roles(before), before.display?.text ?? "", Self.pages(before), before.devices)
        for effect in step.effects {
            switch effect {
            case .send(let signal, let receivers):
                #expect(Set(receivers).isSubset(of: there) && Set(receivers).count == receivers.count)
                switch signal {
                case .notified(_, let object, _, let atMs): #expect(object.hasPrefix("SC:") && atMs == step.nowMs && !receivers.isEmpty)
                case .hello, .said, .directed, .closed: break
                default: Issue.record("members of a class hear nothing of \(signal)")
                }
            case .joined(let member):
                roles[member.id] = member.role
                devices[member.id] = room.devices[member.id]
            case .left(let member, _):
                roles[member.id] = nil
                devices[member.id] = nil
            case .event(let kind, let data):
                let value = JSONValue.object(data)
                let id = (try? value.text("userId")) ?? (try? value.text("boardId")) ?? ""
                switch kind {
                case .memberRole: roles[id] = try? value.text("role")
                case .displayChanged: display = (try? value.text("display")) ?? "?"
                case .deviceChanged:
                    if let device = ClassroomDevice(rawValue: (try? value.text("track")) ?? "") {
                        devices[id]?[device] = value["isOn"] == .bool(true)
                    }
                case .boardCreated, .boardTurned: pages[id] = try? value.number("page")
                case .boardDeleted: pages[id] = nil
                default: #expect(kind == .assistantTransferred)
                }
            case .mute(let id, let isMuted): #expect(room.devices(of: id).microphone != isMuted)
            case .ticketChanged, .close: break
            case .ended: (display, pages) = ("", [:])
            case .queueChanged: Issue.record("a class has no queue")
            }
        }
        #expect(roles == Self.roles(room) && display == room.display?.text ?? "" && pages == Self.pages(room) && devices == room.devices)
        if !Gathering.isKept(step.effects) {
            var (old, new) = (before, room)
            old.gathering.restart(nowMs: 0)
            new.gathering.restart(nowMs: 0)
            for index in old.gathering.members.indices { old.gathering.members[index].awaySinceMs = 0 }
            for index in new.gathering.members.indices { new.gathering.members[index].awaySinceMs = 0 }
            #expect(old == new, "what is not stored changes nothing but who is away")
        }
    }

    private static func roles(_ room: Classroom) -> [String: String] {
        Dictionary(uniqueKeysWithValues: room.gathering.members.map { ($0.id, $0.role) })
    }

    private static func pages(_ room: Classroom) -> [String: Int64] {
        Dictionary(uniqueKeysWithValues: room.boards.map { ($0.id, $0.page + 1) })
    }

    /// Read back, it is the same but for connections.
    private func checkStore(_ world: ClassroomWorld) throws {
        guard !world.room.gathering.hasEnded else { return }
        let text = world.room.state.text
        let read = try Classroom(state: text, limits: ClassroomWorld.limits, nowMs: world.nowMs)
        var expected = world.room
        expected.gathering.restart(nowMs: world.nowMs)
        #expect(read == expected)
        var again = read
        again.gathering.restart(nowMs: world.nowMs)
        #expect(again.state == read.state)
    }

    @Test func strangeStates() {
        var lab = ClassroomLab.full()
        _ = lab.act(.boardCreate(by: "a", boardID: "w"))
        let text = lab.room.state.text
        let spoilt = [
            "", "{}", "[]", text.replacing(#""role":"teacher""#, with: #""role":"king""#), text.replacing(#""type":2"#, with: #""type":4"#),
            text.replacing(#""creator":"a""#, with: #""creator":1"#), text.replacing("createdAt", with: "made"),
            text.replacing(#""createdAt":0"#, with: #""createdAt":9223372036854775807"#),
            text.replacing(#""page":0"#, with: #""page":-1"#), text.replacing(#""boardsMade":1"#, with: #""boardsMade":9007199254740993"#),
            text.replacing(#""devices":["#, with: #""devices":[1,"#),
        ]
        for other in spoilt {
            #expect(other != text)
            #expect(throws: (any Error).self) { try Classroom(state: other, nowMs: 0) }
        }
    }
}
