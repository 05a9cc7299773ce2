package import Support

/// A drain that one node asks of another, by a signal.
package struct DrainOrder: Sendable, Equatable {
    /// The number of the node that shall end.
    package let node: Int64
    /// Nil: the limit in that node's settings.
    package let timeoutMs: Int64?
    /// Where clients are asked to connect again. Nil: as in that node's settings.
    package let reconnectTo: String?
    package let restarts: Bool
    /// Room time when it was asked: a node that hears of it much later was away, and is not meant any more.
    package let askedAt: Int64
    /// The caller, for the log.
    package let by: Actor
    /// The call, for the audit trail.
    package let call: AuditLine

    package init(node: Int64, timeoutMs: Int64?, reconnectTo: String?, restarts: Bool, askedAt: Int64, by: Actor, call: AuditLine) {
        self.node = node
        self.timeoutMs = timeoutMs
        self.reconnectTo = reconnectTo
        self.restarts = restarts
        self.askedAt = askedAt
        self.by = by
        self.call = call
    }

    /// The audit line of the call that the node carries out by this: who asked is in it, and the request's id.
    private static func line(_ token: String?, _ tokenID: Int64?, _ address: String, _ via: String?, _ requestID: String) -> AuditLine {
        var line = AuditLine("drainServer")
        line.token = token
        line.tokenID = tokenID
        line.address = address
        line.via = via.flatMap(AuditTool.init(rawValue:))
        line.requestID = requestID
        return line
    }

    /// As an item of a node's signal.
    package var item: JSONValue {
        [
            "drain": .integer(self.node), "timeout": self.timeoutMs.map(JSONValue.integer) ?? .null,
            "reconnectTo": self.reconnectTo.map(JSONValue.string) ?? .null, "restarts": .bool(self.restarts),
            "askedAt": .integer(self.askedAt), "by": .string(self.by.name),
            "token": self.call.token.map(JSONValue.string) ?? .null, "tokenId": self.call.tokenID.map(JSONValue.integer) ?? .null,
            "address": .string(self.call.address), "via": self.call.via.map { .string($0.rawValue) } ?? .null,
            "requestId": .string(self.call.requestID),
        ]
    }

    /// Nil for an item of another kind.
    package init?(_ item: JSONValue) {
        guard let node = item.integer("drain"), let restarts = item.bool("restarts"), let askedAt = item.integer("askedAt"),
            let by = item.string("by")
        else { return nil }
        self.init(
            node: node, timeoutMs: item.integer("timeout"), reconnectTo: item.string("reconnectTo"), restarts: restarts, askedAt: askedAt,
            by: Actor(by),
            call: Self.line(
                item.string("token"), item.integer("tokenId"), item.string("address") ?? "", item.string("via"),
                item.string("requestId") ?? ""))
    }
}
