import Support

/// Applications to speak, invitations to another role, and invitations to switch a device on.
///
/// | ticket's kind | from | to | payload |
/// |---|---|---|---|
/// | `speech` | audience | assistant | null |
/// | `invite` | assistant | the invited member | `{"role": 3}` |
/// | `camera`, `microphone` | assistant | the invited member | `{"device": "camera"}` |
///
/// A ticket takes one answer, from the member asked. Each device has its own kind: two members can have only one pending ticket of a kind.
extension ClassroomStep {
    private static let speech = "speech"
    private static let invite = "invite"

    /// Opens a ticket, or finds the pending one.
    private mutating func ask(
        _ kind: String, from by: String, to id: String, _ payload: JSONValue, _ newID: String
    ) throws(GatheringRefusal) -> Gathering.Ticket {
        self.append(
            try self.room.gathering.apply(.ask(from: by, to: id, kind: kind, payload: payload, newID: newID), nowMs: self.nowMs))
        guard let ticket = self.pending(kind, from: by, to: id) else { throw ClassroomCode.other.refusal() }
        return ticket
    }

    private func pending(_ kind: String, from by: String, to id: String) -> Gathering.Ticket? {
        self.room.gathering.tickets.first { $0.kind == kind && $0.from == by && $0.to == id }
    }

    /// The ticket that this member may answer now.
    private func ticket(_ id: String, _ kinds: [String], to by: String) throws(GatheringRefusal) -> Gathering.Ticket {
        guard let ticket = self.room.gathering.tickets.first(where: { $0.id == id }),
            kinds.contains(ticket.kind), ticket.to == by, ticket.expiresAtMs > self.nowMs
        else { throw ClassroomCode.ticket.refusal() }
        return ticket
    }

    private mutating func close(_ ticket: Gathering.Ticket, isApproved: Bool) {
        self.append(self.room.gathering.close(ticket, isApproved ? .approved : .rejected))
    }

    // MARK: - Speech

    mutating func speechApply(_ by: String, _ newID: String) throws(GatheringRefusal) {
        try self.doer(by, .audience)
        guard let assistant = self.room.member(as: .assistant) else { throw ClassroomCode.noAssistant.refusal() }
        let ticket = try self.ask(Self.speech, from: by, to: assistant.id, .null, newID)
        self.send(
            .speech, ["reqUserId": .string(by), "reqUserName": self.name(by), "ticket": .string(ticket.id)],
            from: by, to: self.connections(of: assistant.id))
    }

    mutating func speechAnswer(_ by: String, _ id: String, isApproved: Bool) throws(GatheringRefusal) {
        try self.doer(by, .assistant)
        let ticket = try self.ticket(id, [Self.speech], to: by)
        if isApproved {
            // The application is void once the member has another role.
            guard self.room.role(of: ticket.from) == .audience else { throw ClassroomCode.ticket.refusal() }
            guard !self.room.isFull else { throw ClassroomCode.full.refusal() }
        }
        self.close(ticket, isApproved: isApproved)
        if isApproved { self.setRole(ticket.from, .student) }
        self.send(
            .speechAnswer,
            [
                "action": isApproved ? 1 : 2, "opUserId": .string(by), "opUserName": self.name(by), "reqUserId": .string(ticket.from),
                "reqUserName": self.name(ticket.from), "role": .integer(ClassroomRole.student.number),
            ], from: by, to: self.connections(of: ticket.from))
        if isApproved { self.sendRoles([ticket.from], by: by) }
    }

    /// Ends the applications to a member that is no longer the assistant, so that they need not run out before they go to the new one. Tickets are
    /// bound to whom they ask.
    mutating func expireApplications(to id: String) {
        for ticket in self.room.gathering.tickets where ticket.kind == Self.speech && ticket.to == id {
            self.append(self.room.gathering.close(ticket, .expired))
        }
    }

    // MARK: - Invitations

    mutating func upgradeInvite(_ by: String, _ id: String, _ role: ClassroomRole, _ newID: String) throws(GatheringRefusal) {
        try self.doer(by, .assistant)
        let member = try self.other(id, than: by)
        let now = self.room.role(of: member.id) ?? .audience
        guard now == .audience || role.number < now.number else { throw ClassroomCode.lowerRole.refusal() }
        // A class has only one assistant, and nobody is invited to the audience.
        guard role == .teacher || role == .student else { throw ClassroomCode.parameter.refusal("role: expected 2 or 3") }
        guard now != .audience || !self.room.isFull else { throw ClassroomCode.full.refusal() }
        let payload: JSONValue = ["role": .integer(role.number)]
        // An invitation to another role replaces the pending one.
        if let former = self.pending(Self.invite, from: by, to: id), former.payload != payload {
            self.append(self.room.gathering.close(former, .expired))
        }
        let ticket = try self.ask(Self.invite, from: by, to: id, payload, newID)
        self.sendInvitation(ticket, role, action: 1, by: by, to: id)
    }

    mutating func upgradeApprove(_ by: String, _ id: String) throws(GatheringRefusal) {
        try self.doer(by, .audience, .student)
        let ticket = try self.ticket(id, [Self.invite], to: by)
        guard let role = self.role(of: ticket) else { throw ClassroomCode.ticket.refusal() }
        let former = self.room.role(of: by) ?? .audience
        // The member may have got this role, or a higher one, in the meantime.
        guard role.number < former.number else { throw ClassroomCode.lowerRole.refusal() }
        guard former != .audience || !self.room.isFull else { throw ClassroomCode.full.refusal() }
        self.close(ticket, isApproved: true)
        let replaced = role == .teacher ? self.replaceTeacher() : []
        self.setRole(by, role)
        self.sendInvitation(ticket, role, action: 3, by: by, to: ticket.from)
        if replaced.contains(where: self.shows) { self.show(nil, from: by, to: self.all) }
        self.sendRoles(replaced + [by], by: by)
    }

    mutating func upgradeReject(_ by: String, _ id: String) throws(GatheringRefusal) {
        try self.doer(by, .audience, .student)
        let ticket = try self.ticket(id, [Self.invite], to: by)
        guard let role = self.role(of: ticket) else { throw ClassroomCode.ticket.refusal() }
        self.close(ticket, isApproved: false)
        self.sendInvitation(ticket, role, action: 2, by: by, to: ticket.from)
    }

    private func role(of ticket: Gathering.Ticket) -> ClassroomRole? {
        guard case .integer(let number)? = ticket.payload["role"] else { return nil }
        return ClassroomRole(number: number)
    }

    /// SC:IURMsg; `action`: 1 invite, 2 reject, 3 approve.
    private mutating func sendInvitation(_ ticket: Gathering.Ticket, _ role: ClassroomRole, action: Int64, by: String, to id: String) {
        self.send(
            .upgrade,
            [
                "action": .integer(action), "ticket": .string(ticket.id), "role": .integer(role.number), "opUserId": .string(by),
                "opUserName": self.name(by),
            ], from: by, to: self.connections(of: id))
    }

    // MARK: - Devices

    mutating func deviceControl(
        _ by: String, _ id: String, _ device: ClassroomDevice, _ isOn: Bool, _ newID: String
    ) throws(GatheringRefusal) {
        try self.doer(by, .assistant)
        guard isOn else { return self.setDevice(try self.member(id), device, false, by: by) }
        // The assistant cannot answer its own invitation.
        let member = try self.other(id, than: by)
        let ticket = try self.ask(device.rawValue, from: by, to: member.id, ["device": .string(device.rawValue)], newID)
        self.sendDevice(ticket, device, action: 1, by: by, to: id)
    }

    mutating func deviceAnswer(_ by: String, _ id: String, isApproved: Bool) throws(GatheringRefusal) {
        let member = try self.doer(by, .teacher, .student)
        let ticket = try self.ticket(id, ClassroomDevice.allCases.map(\.rawValue), to: by)
        guard let device = ClassroomDevice(rawValue: ticket.kind) else { throw ClassroomCode.ticket.refusal() }
        self.close(ticket, isApproved: isApproved)
        self.sendDevice(ticket, device, action: isApproved ? 3 : 2, by: by, to: ticket.from)
        if isApproved { self.setDevice(member, device, true, by: by) }
    }

    /// SC:CDNMsg; `action`: 1 invite, 2 reject, 3 approve.
    private mutating func sendDevice(_ ticket: Gathering.Ticket, _ device: ClassroomDevice, action: Int64, by: String, to id: String) {
        self.send(
            .deviceTicket,
            [
                "action": .integer(action), "type": .integer(device.number), "ticket": .string(ticket.id), "opUserId": .string(by),
                "opUserName": self.name(by),
            ], from: by, to: self.connections(of: id))
    }
}
