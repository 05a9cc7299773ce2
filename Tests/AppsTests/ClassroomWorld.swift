@testable import Apps
@testable import Rooms
@testable import Support

/// A class with a random life, and its inputs. Most come from members with the right to make them.
struct ClassroomWorld {
    static let limits: ClassroomLimits = {
        var limits = ClassroomLimits()
        limits.activeMembers = 4
        limits.members = 7
        limits.boards = 3
        limits.lifetimeMs = 8 * 60_000
        limits.offlineMs = 60_000
        return limits
    }()

    static let people = ["a", "b", "c", "d", "e", "f", "g", "h"]

    var dice: SeededDice
    var room: Classroom
    var nowMs: Int64 = 0
    var number: UInt64 = 0
    private var isLeaving = false
    /// Tickets that are used, rejected or expired.
    var endedTickets: Set<String> = []

    init(_ seed: UInt64) {
        self.dice = SeededDice(seed)
        self.room = Classroom(limits: Self.limits, createdAtMs: 0)
    }

    mutating func pick() -> String { Self.people.randomElement(using: &self.dice) ?? "a" }

    mutating func ticket() -> String { self.room.gathering.tickets.randomElement(using: &self.dice)?.id ?? "none" }

    mutating func newID() -> String {
        self.number += 1
        return "n\(self.number)"
    }

    /// A member in the role, so that most inputs are not refused for it.
    mutating func mostly(_ roles: ClassroomRole...) -> String {
        guard Int.random(in: 0..<6, using: &self.dice) > 0 else { return self.pick() }
        let room = self.room
        let able = room.gathering.members.filter { member in roles.contains { $0.rawValue == member.role } }
        return able.randomElement(using: &self.dice)?.id ?? self.pick()
    }

    mutating func addressee() -> (id: String, by: String) {
        guard let ticket = self.room.gathering.tickets.randomElement(using: &self.dice), Int.random(in: 0..<5, using: &self.dice) > 0
        else { return (self.ticket(), self.pick()) }
        return (ticket.id, ticket.to)
    }

    mutating func board() -> String { self.room.boards.randomElement(using: &self.dice)?.id ?? "none" }

    /// Now and then all go, one after the other.
    private mutating func leaving() -> Classroom.Input? {
        if Int.random(in: 0..<200, using: &self.dice) == 0 { self.isLeaving = true }
        guard self.isLeaving, let member = self.room.gathering.members.first else {
            self.isLeaving = false
            return nil
        }
        return .leave(by: member.id)
    }

    mutating func input() -> Classroom.Input {
        if let leave = self.leaving() { return leave }
        let device: ClassroomDevice = Bool.random(using: &self.dice) ? .camera : .microphone
        let (flag, role) = (Bool.random(using: &self.dice), ClassroomRole.allCases.randomElement(using: &self.dice) ?? .student)
        switch Int.random(in: 0..<24, using: &self.dice) {
        case 0...4:
            return .join(id: self.pick(), name: "N", isAudience: Int.random(in: 0..<3, using: &self.dice) == 0, disableCamera: flag)
        case 5: return .leave(by: self.pick())
        case 6: return .kick(by: self.mostly(.assistant), userID: self.pick())
        case 7:
            return .downgrade(
                by: self.mostly(.assistant),
                users: [.init(userID: self.pick(), role: .audience), .init(userID: self.pick(), role: role)])
        case 8: return .changeRole(by: self.mostly(.assistant), userID: self.mostly(.student), role: .teacher)
        case 9: return .transfer(by: self.mostly(.assistant), userID: self.pick())
        case 10: return .speechApply(by: self.mostly(.audience), newID: self.newID())
        case 11:
            return .upgradeInvite(
                by: self.mostly(.assistant), userID: self.mostly(.audience), role: flag ? .student : role, newID: self.newID())
        case 12, 13:
            let (id, by) = self.addressee()
            return flag ? .speechApprove(by: by, ticket: id) : .speechReject(by: by, ticket: id)
        case 14, 15:
            let (id, by) = self.addressee()
            return flag || role == .teacher ? .upgradeApprove(by: by, ticket: id) : .upgradeReject(by: by, ticket: id)
        case 16:
            let (id, by) = self.addressee()
            return flag ? .deviceApprove(by: by, ticket: id) : .deviceReject(by: by, ticket: id)
        case 17, 18:
            return .deviceControl(
                by: self.mostly(.assistant), userID: self.mostly(.student, .teacher), device: device, isOn: flag, newID: self.newID())
        case 19: return .deviceSync(by: self.mostly(.student, .teacher), device: device, isOn: flag)
        case 20, 21:
            let kind = ClassroomDisplay.Kind.allCases.randomElement(using: &self.dice)
            return .display(by: self.mostly(.assistant, .teacher), kind: kind, userID: self.pick(), uri: self.board())
        case 22:
            return flag
                ? .boardCreate(
                    by: self.mostly(.assistant, .teacher), boardID: self.newID(),
                    service: Bool.random(using: &self.dice) ? self.newID() : nil)
                : .boardDelete(by: self.mostly(.assistant, .teacher), boardID: self.board())
        default:
            return .boardTurn(
                by: self.mostly(.assistant, .teacher), boardID: self.board(), page: Int64.random(in: -1...1_001, using: &self.dice))
        }
    }

    mutating func coreInput() -> Gathering.Input {
        self.number += 1
        switch Int.random(in: 0..<12, using: &self.dice) {
        case 0...4: return .connect(id: self.pick(), name: "x", role: "host", ConnectionID(self.number))
        case 5, 6: return .disconnect(self.room.gathering.members.randomElement(using: &self.dice)?.connection ?? ConnectionID(0))
        case 7: return .say(from: self.pick(), to: nil, object: "RC:TxtMsg", content: 1)
        case 8: return Int.random(in: 0..<4, using: &self.dice) == 0 ? .kick(id: self.pick()) : .leave(id: self.pick())
        case 9: return .direct(from: self.pick(), to: self.pick(), name: "offer", data: [])
        case 10 where Int.random(in: 0..<40, using: &self.dice) == 0: return .end(reason: "over")
        default: return .tick
        }
    }
}
