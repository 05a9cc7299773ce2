import HTTPTypes

extension APIRoute {
    /// Whether a call leaves a line in the audit trail: changes do, and reads whose answer is a credential to push or to speak.
    var isAudited: Bool {
        self.method == .get ? Self.handingOut.contains(self.name) : self.role != nil && !Self.signsOfLife.contains(self.name)
    }

    /// Reads whose answer is a credential to push.
    private static let handingOut: Set<String> = ["drawPushUrl", "paintPushUrl"]

    /// Frequent calls from every room, which decide nothing; their lines would displace all others. A ticket grants for a minute only what its token
    /// allows anyway.
    private static let signsOfLife: Set<String> = ["sendHeartbeat", "likeRoom", "makeEventTicket"]
}
