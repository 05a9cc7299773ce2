extension Classroom {
    /// A member's call. `by`: the member that the call's token names. New ids are 128 random bits in hex.
    package enum Input: Sendable, Equatable {
        /// `id`: a new id, or the token's if the token has the same name and class.
        case join(id: String, name: String, isAudience: Bool, disableCamera: Bool)
        case leave(by: String)
        case kick(by: String, userID: String)
        /// Only changes to the role audience are applied; others are ignored.
        case downgrade(by: String, users: [RoleChange])
        case changeRole(by: String, userID: String, role: ClassroomRole)
        case transfer(by: String, userID: String)
        case speechApply(by: String, newID: String)
        case speechApprove(by: String, ticket: String)
        case speechReject(by: String, ticket: String)
        case upgradeInvite(by: String, userID: String, role: ClassroomRole, newID: String)
        case upgradeApprove(by: String, ticket: String)
        case upgradeReject(by: String, ticket: String)
        /// Switching on asks the member first; switching off takes effect at once.
        case deviceControl(by: String, userID: String, device: ClassroomDevice, isOn: Bool, newID: String)
        case deviceApprove(by: String, ticket: String)
        case deviceReject(by: String, ticket: String)
        case deviceSync(by: String, device: ClassroomDevice, isOn: Bool)
        /// A nil `kind` clears the display.
        case display(by: String, kind: ClassroomDisplay.Kind?, userID: String?, uri: String?)
        /// `boardID`: the URL that clients open. `service`: the board's name on the other server that keeps it; nil when this server does.
        case boardCreate(by: String, boardID: String, service: String? = nil)
        case boardDelete(by: String, boardID: String)
        /// `page`: `curPg`, from 0.
        case boardTurn(by: String, boardID: String, page: Int64)
    }

    /// Applies an input. Throws ``GatheringRefusal/dialect(code:message:)`` with a ``ClassroomCode``; a refusal changes nothing.
    package mutating func apply(_ input: Input, nowMs: Int64) throws(GatheringRefusal) -> [Gathering.Effect] {
        guard !self.gathering.hasEnded else { throw ClassroomCode.noSuchClass.refusal() }
        var step = ClassroomStep(room: self, nowMs: nowMs)
        do throws(GatheringRefusal) {
            try step.apply(input)
        } catch {
            if case .dialect = error { throw error }
            throw ClassroomCode(error).refusal("\(error)")
        }
        self = step.room
        return step.effects
    }
}

extension ClassroomStep {
    mutating func apply(_ input: Classroom.Input) throws(GatheringRefusal) {
        switch input {
        case .join(let id, let name, let isAudience, let disableCamera): try self.join(id, name, isAudience, disableCamera)
        case .leave(let by): self.depart(try self.doer(by), .left)
        case .kick(let by, let id):
            try self.doer(by, .assistant)
            let member = try self.other(id, than: by)
            self.kick(member, by: by)
        case .downgrade(let by, let users): try self.downgrade(by, users)
        case .changeRole(let by, let id, let role): try self.changeRole(by, id, role)
        case .transfer(let by, let id): try self.transfer(by, id)
        case .speechApply(let by, let newID): try self.speechApply(by, newID)
        case .speechApprove(let by, let ticket): try self.speechAnswer(by, ticket, isApproved: true)
        case .speechReject(let by, let ticket): try self.speechAnswer(by, ticket, isApproved: false)
        case .upgradeInvite(let by, let id, let role, let newID): try self.upgradeInvite(by, id, role, newID)
        case .upgradeApprove(let by, let ticket): try self.upgradeApprove(by, ticket)
        case .upgradeReject(let by, let ticket): try self.upgradeReject(by, ticket)
        case .deviceControl(let by, let id, let device, let isOn, let newID): try self.deviceControl(by, id, device, isOn, newID)
        case .deviceApprove(let by, let ticket): try self.deviceAnswer(by, ticket, isApproved: true)
        case .deviceReject(let by, let ticket): try self.deviceAnswer(by, ticket, isApproved: false)
        case .deviceSync(let by, let device, let isOn):
            let member = try self.doer(by, .assistant, .teacher, .student)
            self.setDevice(member, device, isOn, by: by)
        case .display(let by, let kind, let id, let uri): try self.display(by, kind, id, uri)
        case .boardCreate(let by, let id, let service): try self.boardCreate(by, id, service)
        case .boardDelete(let by, let id): try self.boardDelete(by, id)
        case .boardTurn(let by, let id, let page): try self.boardTurn(by, id, page)
        }
    }
}
