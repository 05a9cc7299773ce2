package import Support

/// A class: an assistant, a teacher, students and audience, with devices, a display and whiteboards. A value without a clock.
///
/// Follows SealClass's rules. Members learn of changes from messages whose objects begin with `SC:`, never from the core's own signals.
/// The class ends when its time is over or its last member has left.
package struct Classroom: GatheringDialect, Equatable {
    package let limits: ClassroomLimits
    /// Milliseconds since 1970.
    package let createdAtMs: Int64
    package internal(set) var gathering: Gathering
    /// Nil when nothing is shown.
    package internal(set) var display: ClassroomDisplay?
    package internal(set) var boards: [Board] = []
    /// How many whiteboards were ever made; their names contain this number.
    var boardsMade: Int64 = 0
    var devices: [String: Devices] = [:]

    /// The sender of messages about what the server does on its own.
    package static let serverID = "server"
    static let emptyReason = "empty"
    static let timeReason = "timeOver"

    package init(limits: ClassroomLimits = ClassroomLimits(), createdAtMs: Int64) {
        self.limits = limits
        self.createdAtMs = createdAtMs
        self.gathering = Gathering(limits: limits.gathering)
    }

    // MARK: - Members

    /// Nil when no member has this id.
    package func role(of id: String) -> ClassroomRole? {
        self.gathering.member(id).flatMap { ClassroomRole(rawValue: $0.role) }
    }

    package func devices(of id: String) -> Devices { self.devices[id] ?? Devices(camera: true, microphone: true) }

    func member(as role: ClassroomRole) -> Gathering.Member? { self.gathering.members.first { $0.role == role.rawValue } }

    /// Members that are not audience.
    var activeMembers: Int { self.gathering.members.count { $0.role != ClassroomRole.audience.rawValue } }

    var isFull: Bool { self.activeMembers >= self.limits.activeMembers }

    package func board(_ id: String) -> Board? { self.boards.first { $0.id == id } }

    // MARK: - GatheringDialect

    package var nextDeadlineMs: Int64? {
        guard !self.gathering.hasEnded else { return nil }
        return min(self.createdAtMs + self.limits.lifetimeMs, self.gathering.nextDeadlineMs ?? Int64.max)
    }

    package var isIdle: Bool { self.gathering.members.isEmpty }

    package func greeting(for member: Gathering.Member) -> [JSONValue.Member] {
        [
            .init(
                name: "class",
                value: [
                    "display": .string(self.display?.text ?? ""), "whiteboards": ClassroomAnswer.boards(self),
                    "members": ClassroomAnswer.members(self),
                ])
        ]
    }

    /// Applies an input of the core. A class accepts its members' connections, messages and frames, and operators' actions. People join by
    /// ``Input/join(id:name:isAudience:disableCamera:)``, and tickets have inputs of their own.
    package mutating func apply(_ input: Gathering.Input, nowMs: Int64) throws(GatheringRefusal) -> [Gathering.Effect] {
        var step = ClassroomStep(room: self, nowMs: nowMs)
        guard !self.gathering.hasEnded else {
            step.append(try step.room.gathering.apply(input, nowMs: nowMs))
            return step.effects
        }
        switch input {
        case .connect(let id, _, _, let connection):
            guard let member = self.gathering.member(id) else { throw .notMember }
            step.append(
                try step.room.gathering.apply(.connect(id: id, name: member.name, role: member.role, connection), nowMs: nowMs))
        case .enter(let id, _, _):
            guard self.gathering.member(id) != nil else { throw .notMember }
        case .disconnect, .direct: step.append(try step.room.gathering.apply(input, nowMs: nowMs))
        case .say(_, _, let object, _):
            // Otherwise a member could speak as the server.
            guard !object.hasPrefix(ClassroomMessage.prefix) else {
                throw .invalid(FieldError("object", object, "expected another beginning than \(ClassroomMessage.prefix)"))
            }
            step.append(try step.room.gathering.apply(input, nowMs: nowMs))
        case .leave(let id):
            guard let member = self.gathering.member(id) else { throw .notMember }
            step.depart(member, .left)
        case .kick(let id):
            guard let member = self.gathering.member(id) else { throw .noSuchMember(id) }
            step.kick(member, by: Self.serverID)
        case .tick: step.tick()
        case .end(let reason): step.end(reason)
        case .remove(let key): throw .notQueued(key)
        case .command, .offer, .poll, .pause, .ask, .answer:
            throw .invalid(FieldError("type", "", "a class takes messages here; it has no queue, and tickets by its own calls"))
        }
        self = step.room
        return step.effects
    }
}
