import Support

/// The bounds of a class. A value.
package struct ClassroomLimits: Sendable, Equatable {
    /// Members that are not audience.
    package var activeMembers = 16
    /// All members. The audience may take only those that ``activeMembers`` leaves.
    package var members = 1_000
    package var ticketMs: Int64 = 30_000
    /// How long a class lasts, from its creation.
    package var lifetimeMs: Int64 = 2 * 3_600_000
    /// How long a member may be away.
    package var offlineMs: Int64 = 5 * 60_000
    package var boards = 50

    package init() {}

    /// `curPg` of a whiteboard; 0 is the first page.
    package static let pages = 0...1_000
    /// Bytes of a whiteboard's id, which is a URL.
    package static let boardIDBytes = 1_024
    /// Members named in one call.
    static let users = 1_000

    var gathering: GatheringLimits {
        var limits = GatheringLimits(members: self.members, offlineMs: max(1, self.offlineMs))
        limits.ticketMs = self.ticketMs
        // For each member one application and three kinds of invitation: role, camera, microphone.
        limits.tickets = 4 * self.members
        // The assistant may invite everybody.
        limits.ticketsOfOne = limits.tickets
        limits.queue = 0
        return limits
    }
}

/// A member's role: a name here, a number from 1 to 4 on the wire.
package enum ClassroomRole: String, Sendable, CaseIterable {
    case assistant, teacher, student, audience

    package var number: Int64 {
        switch self {
        case .assistant: 1
        case .teacher: 2
        case .student: 3
        case .audience: 4
        }
    }

    package init?(number: Int64) {
        guard let role = Self.allCases.first(where: { $0.number == number }) else { return nil }
        self = role
    }
}

/// A member's device.
package enum ClassroomDevice: String, Sendable, CaseIterable {
    case camera, microphone

    /// `type` in messages.
    var number: Int64 { self == .microphone ? 0 : 1 }
}

/// The content shown to a class. A value.
package struct ClassroomDisplay: Sendable, Equatable {
    package enum Kind: Int64, Sendable, CaseIterable { case assistant = 0, teacher, board, screen }

    package let kind: Kind
    /// The member shown; for a whiteboard its creator, or empty.
    package let userID: String
    /// The whiteboard's id; empty for people.
    package let uri: String

    /// The form that clients parse. Question marks separate the fields.
    package var text: String { "display://type=\(self.kind.rawValue)?userId=\(self.userID)?uri=\(self.uri)" }

    /// Whether this member is shown, by camera or screen.
    func shows(_ id: String) -> Bool { self.kind != .board && self.userID.exact == id.exact }
}

extension Classroom {
    package struct Devices: Sendable, Equatable {
        package internal(set) var camera: Bool
        package internal(set) var microphone: Bool

        subscript(device: ClassroomDevice) -> Bool {
            get { device == .camera ? self.camera : self.microphone }
            set { if device == .camera { self.camera = newValue } else { self.microphone = newValue } }
        }
    }

    package struct Board: Sendable, Equatable {
        package let id: String
        package let name: String
        /// `curPg`: the current page, from 0.
        package internal(set) var page: Int64
        /// The member that made it.
        package let creator: String
        /// The board's name on the other server that keeps it (``ExternalBoardCall``); nil when this server does.
        package var service: String?
    }

    /// A member and its new role.
    package struct RoleChange: Sendable, Equatable {
        package let userID: String
        package let role: ClassroomRole
    }
}
