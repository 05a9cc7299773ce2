import Rooms
import Support

/// Applies one input to a copy of a class and collects the effects. Lives for one `apply`; a refusal discards it.
struct ClassroomStep {
    var room: Classroom
    let nowMs: Int64
    private(set) var effects: [Gathering.Effect] = []

    // MARK: - Members

    /// Returns the acting member, which must have one of these roles; without roles, any member may act.
    @discardableResult
    func doer(_ id: String, _ roles: ClassroomRole...) throws(GatheringRefusal) -> Gathering.Member {
        guard let member = self.room.gathering.member(id), let role = self.room.role(of: id) else {
            throw ClassroomCode.authorization.refusal()
        }
        guard roles.isEmpty || roles.contains(role) else { throw ClassroomCode.role.refusal("This is not for the role \(role.rawValue).") }
        return member
    }

    func member(_ id: String) throws(GatheringRefusal) -> Gathering.Member {
        guard let member = self.room.gathering.member(id) else { throw ClassroomCode.noSuchMember.refusal() }
        return member
    }

    /// Returns a member other than the acting one.
    func other(_ id: String, than by: String) throws(GatheringRefusal) -> Gathering.Member {
        guard id != by else { throw ClassroomCode.oneself.refusal() }
        return try self.member(id)
    }

    func name(_ id: String) -> JSONValue { .string(self.room.gathering.member(id)?.name ?? "") }

    // MARK: - Receivers

    var all: [ConnectionID] { self.room.gathering.all }

    func others(than id: String) -> [ConnectionID] { self.room.gathering.others(than: id) }

    func connections(of id: String) -> [ConnectionID] { self.room.gathering.connections(of: id) }

    // MARK: - Effects

    mutating func add(_ effect: Gathering.Effect) { self.effects.append(effect) }

    /// Adds a message, unless there are no receivers.
    mutating func send(_ object: ClassroomMessage, _ content: JSONValue, from id: String, to receivers: [ConnectionID]) {
        guard !receivers.isEmpty else { return }
        self.add(.send(.notified(from: id, object: object.rawValue, content: content, atMs: self.nowMs), to: receivers))
    }

    mutating func event(_ kind: RoomEvent.Kind, _ data: KeyValuePairs<String, JSONValue>) {
        self.add(.event(kind, data.map { .init(name: $0.key, value: $0.value) }))
    }

    /// Adds the core's effects, except its signals about people and tickets: members of a class get the class's own messages instead.
    mutating func append(_ effects: [Gathering.Effect]) {
        for effect in effects {
            guard case .send(let signal, let receivers) = effect else {
                self.add(effect)
                continue
            }
            switch signal {
            case .hello, .said, .notified, .directed, .closed: self.add(effect)
            case .ticket(.expired, let ticket):
                self.send(
                    .expiry,
                    ["ticket": .string(ticket.id), "fromUserId": .string(ticket.from), "toUserId": .string(ticket.to)],
                    from: ticket.to, to: receivers)
            case .arrived, .away, .back, .departed, .commanded, .turn, .queue, .ticket: break
            }
        }
    }

    // MARK: - Time and end

    mutating func tick() {
        let room = self.room
        guard room.createdAtMs + room.limits.lifetimeMs > self.nowMs else { return self.end(Classroom.timeReason) }
        for ticket in room.gathering.tickets where ticket.expiresAtMs <= self.nowMs {
            self.append(self.room.gathering.close(ticket, .expired))
        }
        for member in room.gathering.members {
            guard let leaves = room.gathering.leavesMs(member), leaves <= self.nowMs else { continue }
            self.depart(member, .offline)
        }
    }

    mutating func end(_ reason: String) {
        self.append(self.room.gathering.end(reason))
        self.room.devices = [:]
        self.room.display = nil
        self.room.boards = []
    }
}
