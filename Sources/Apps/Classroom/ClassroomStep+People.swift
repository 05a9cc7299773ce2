import Rooms
import Support

/// Joining, leaving and roles.
extension ClassroomStep {
    mutating func join(_ id: String, _ name: String, _ isAudience: Bool, _ disableCamera: Bool) throws(GatheringRefusal) {
        let role: ClassroomRole
        if let known = self.room.role(of: id) {
            role = known
            self.rejoin(id, camera: !disableCamera)
        } else {
            role = try self.newRole(isAudience)
            if let problem = GatheringLimits.problem(ofName: name) { throw ClassroomCode.parameter.refusal("userName: \(problem)") }
            self.append(try self.room.gathering.apply(.enter(id: id, name: name, role: role.rawValue), nowMs: self.nowMs))
            self.room.devices[id] = Classroom.Devices(camera: !disableCamera, microphone: true)
        }
        self.sendMember(try self.member(id), action: 1, from: id, to: self.others(than: id))
        switch role {
        case .teacher: self.show(ClassroomDisplay(kind: .teacher, userID: id, uri: ""), from: id, to: self.others(than: id))
        case .assistant where self.room.display == nil:
            self.show(ClassroomDisplay(kind: .assistant, userID: id, uri: ""), from: id, to: self.others(than: id))
        case .assistant, .student, .audience: break
        }
    }

    private func newRole(_ isAudience: Bool) throws(GatheringRefusal) -> ClassroomRole {
        let (room, people) = (self.room, self.room.gathering.members.count)
        if isAudience {
            let most = room.limits.members - room.limits.activeMembers
            guard people - room.activeMembers < most else { throw .full(limit: most) }
            return .audience
        }
        guard !room.isFull else { throw ClassroomCode.full.refusal() }
        guard room.member(as: .assistant) != nil else { return .assistant }
        return room.activeMembers == 1 ? .teacher : .student
    }

    /// Gives a member that joins again the whole time to connect once more.
    private mutating func rejoin(_ id: String, camera: Bool) {
        if let index = self.room.gathering.members.firstIndex(where: { $0.id == id }),
            self.room.gathering.members[index].awaySinceMs != nil
        {
            self.room.gathering.members[index].awaySinceMs = self.nowMs
        }
        self.setDevice(id, .camera, camera)
    }

    /// SC:RMCMsg; `action`: 1 join, 2 leave, 3 kick.
    private mutating func sendMember(_ member: Gathering.Member, action: Int64, from: String, to receivers: [ConnectionID]) {
        let devices = self.room.devices(of: member.id)
        self.send(
            .member,
            [
                "action": .integer(action), "userId": .string(member.id), "userName": .string(member.name),
                "role": .integer(ClassroomRole(rawValue: member.role)?.number ?? 0), "camera": .bool(devices.camera),
                "microphone": .bool(devices.microphone), "timestamp": .integer(self.nowMs),
            ], from: from, to: receivers)
    }

    /// Removes a member that left or was away too long. The class ends with its last member.
    mutating func depart(_ member: Gathering.Member, _ departure: Gathering.Departure) {
        if self.shows(member.id) { self.show(nil, from: member.id, to: self.others(than: member.id)) }
        self.append(self.room.gathering.remove(member, departure))
        if let connection = member.connection { self.add(.close(connection, .ended(reason: "left"))) }
        self.sendMember(member, action: 2, from: member.id, to: self.all)
        self.forget(member)
    }

    /// Notifies all members, then removes the kicked one, which thus gets the message too.
    mutating func kick(_ member: Gathering.Member, by: String) {
        self.sendMember(member, action: 3, from: by, to: self.all)
        if self.shows(member.id) { self.show(nil, from: by, to: self.all) }
        self.append(self.room.gathering.remove(member, .kicked))
        self.forget(member)
    }

    private mutating func forget(_ member: Gathering.Member) {
        // A member that comes back starts with the microphone on.
        if !self.room.devices(of: member.id).microphone { self.add(.mute(member.id, false)) }
        self.room.devices[member.id] = nil
        if self.room.gathering.members.isEmpty { self.end(Classroom.emptyReason) }
    }

    // MARK: - Roles

    mutating func setRole(_ id: String, _ role: ClassroomRole) {
        guard let index = self.room.gathering.members.firstIndex(where: { $0.id == id }) else { return }
        self.room.gathering.members[index].role = role.rawValue
        self.event(.memberRole, ["userId": .string(id), "role": .string(role.rawValue)])
    }

    /// SC:RCMsg: the members whose roles have changed, with their roles now.
    mutating func sendRoles(_ ids: [String], by: String) {
        let users = ids.map { id -> JSONValue in
            ["userId": .string(id), "userName": self.name(id), "role": .integer(self.room.role(of: id)?.number ?? 0)]
        }
        self.send(.roles, ["opUserId": .string(by), "users": .array(users)], from: by, to: self.all)
    }

    mutating func downgrade(_ by: String, _ users: [Classroom.RoleChange]) throws(GatheringRefusal) {
        try self.doer(by, .assistant)
        guard !users.isEmpty else { throw ClassroomCode.parameter.refusal("users: expected one at least") }
        var changed: [String] = []
        for user in users {
            let member = try self.other(user.userID, than: by)
            guard user.role == .audience, self.room.role(of: member.id) != .audience else { continue }
            self.setRole(member.id, .audience)
            if self.shows(member.id) { self.show(nil, from: by, to: self.all) }
            changed.append(member.id)
        }
        if !changed.isEmpty { self.sendRoles(changed, by: by) }
    }

    /// Makes a student the teacher, and the former teacher a student.
    mutating func changeRole(_ by: String, _ id: String, _ role: ClassroomRole) throws(GatheringRefusal) {
        try self.doer(by, .assistant)
        guard role == .teacher else { throw ClassroomCode.parameter.refusal("role: expected 2") }
        let member = try self.other(id, than: by)
        guard self.room.role(of: member.id) == .student else { throw ClassroomCode.notStudent.refusal() }
        let former = self.replaceTeacher()
        self.setRole(id, .teacher)
        self.sendRoles(former + [id], by: by)
        self.show(ClassroomDisplay(kind: .teacher, userID: id, uri: ""), from: by, to: self.all)
    }

    /// Makes the teacher a student. Returns its id in an array, empty when there is no teacher.
    mutating func replaceTeacher() -> [String] {
        guard let former = self.room.member(as: .teacher) else { return [] }
        self.setRole(former.id, .student)
        return [former.id]
    }

    mutating func transfer(_ by: String, _ id: String) throws(GatheringRefusal) {
        try self.doer(by, .assistant)
        let member = try self.other(id, than: by)
        // A member of the audience that becomes the assistant takes one more seat.
        guard self.room.role(of: member.id) != .audience || !self.room.isFull else { throw ClassroomCode.full.refusal() }
        if self.shows(by) || self.shows(id) { self.show(nil, from: by, to: self.all) }
        self.setRole(by, .student)
        self.setRole(id, .assistant)
        self.event(.assistantTransferred, ["from": .string(by), "to": .string(id)])
        self.send(.transfer, ["opUserId": .string(by), "toUserId": .string(id)], from: by, to: self.all)
        self.expireApplications(to: by)
    }
}
