/// The objects of the server's messages to a class. A value.
package enum ClassroomMessage: String, Sendable, CaseIterable {
    /// A member has joined, left, or was kicked.
    case member = "SC:RMCMsg"
    case roles = "SC:RCMsg"
    /// Another member is the assistant.
    case transfer = "SC:ATMsg"
    case display = "SC:DisplayMsg"
    /// A whiteboard was made or deleted.
    case board = "SC:WBMsg"
    case boardTurn = "SC:WBTPMsg"
    case device = "SC:DRMsg"
    /// An invitation to switch a device on, or its answer.
    case deviceTicket = "SC:CDNMsg"
    /// A member applies to speak.
    case speech = "SC:RSMsg"
    case speechAnswer = "SC:SRMsg"
    /// An invitation to another role, or its answer.
    case upgrade = "SC:IURMsg"
    case expiry = "SC:TEMsg"

    /// The prefix of all of them. Members cannot send objects that begin with it.
    package static let prefix = "SC:"
}
