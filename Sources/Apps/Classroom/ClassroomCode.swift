/// The `errCode` of an answer, as SealClass's clients know it. Its `errMsg` is ``message``. A value.
///
/// SealClass's 28 (user exists) and 32 (teacher exists) are missing: who joins again is the same member, and a new teacher replaces the former.
package enum ClassroomCode: Int, Sendable, CaseIterable {
    case ok = 0
    /// A field is missing or wrong.
    case parameter = 1
    /// The token is missing, invalid, or of somebody who is no longer in the class.
    case authorization = 2
    /// The member's role does not allow it.
    case role = 3
    /// The body is not JSON.
    case body = 4
    case imToken = 10
    case createRoom = 11
    case joinRoom = 12
    case message = 13
    case noSuchClass = 20
    case noSuchMember = 21
    case leaveRoom = 22
    case noTeacher = 23
    case noAssistant = 24
    case createBoard = 25
    case noSuchBoard = 26
    case deleteBoard = 27
    /// Members cannot do this to themselves.
    case oneself = 29
    /// The ticket is used, expired, unknown, or for somebody else.
    case ticket = 30
    case full = 31
    /// An invitation cannot lower a role.
    case lowerRole = 33
    /// Only a student can be made the teacher.
    case notStudent = 34
    case other = 255

    package var message: String {
        switch self {
        case .ok: "OK"
        case .parameter: "Missing or invalid parameter"
        case .authorization: "Invalid or expired authorization"
        case .role: "Access denied"
        case .body: "Bad request"
        case .imToken: "IM token error"
        case .createRoom: "Create room error"
        case .joinRoom: "Join room error"
        case .message: "IM Message send error"
        case .noSuchClass: "Room not exist"
        case .noSuchMember: "User not exist in room"
        case .leaveRoom: "Exit room error"
        case .noTeacher: "Teacher not exist in room"
        case .noAssistant: "Assistant not exist in room"
        case .createBoard: "Create whiteboard error"
        case .noSuchBoard: "Whiteboard not exist"
        case .deleteBoard: "Delete whiteboard error"
        case .oneself: "Can not change self role"
        case .ticket: "Apply ticket invalid"
        case .full: "Over max count"
        case .lowerRole: "Can't downgrade role"
        case .notStudent: "Only change student to teacher"
        case .other: "Error"
        }
    }

    /// The refusal with this code. `detail` goes out as `errDetail`.
    package func refusal(_ detail: String? = nil) -> GatheringRefusal {
        .dialect(code: "\(self.rawValue)", message: detail ?? self.message)
    }

    /// The code that stands for a refusal.
    package init(_ refusal: GatheringRefusal) {
        switch refusal {
        case .dialect(let code, _): self = Int(code).flatMap(ClassroomCode.init(rawValue:)) ?? ClassroomCode.other
        case .full: self = .full
        case .notMember: self = .authorization
        case .noSuchMember: self = .noSuchMember
        case .noSuchTicket: self = .ticket
        case .notYours: self = .role
        case .ended: self = .noSuchClass
        case .invalid: self = .parameter
        case .queueFull, .queuePaused, .notQueued, .tooManyTickets: self = .other
        }
    }
}
