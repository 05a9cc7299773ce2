package import Support

/// A change of a link. A value.
package struct LinkChange: Sendable, Equatable {
    package enum Kind: Sendable, Equatable { case started, connected, interrupted, stopped }

    package let linkID: Int64
    package let direction: Link.Direction
    package let path: StreamPath
    /// The other server's address, without a credential.
    package let target: String
    package let kind: Kind
    /// One word.
    package let reason: String?
    /// A sentence, without a credential.
    package let error: String?

    package init(
        linkID: Int64, direction: Link.Direction, path: StreamPath, target: String, kind: Kind, reason: String? = nil,
        error: String? = nil
    ) {
        self.linkID = linkID
        self.direction = direction
        self.path = path
        self.target = target
        self.kind = kind
        self.reason = reason
        self.error = error
    }

    init(_ kind: Kind, _ data: EventFields) throws(EventDataError) {
        let direction = try data.text("direction")
        self.init(
            linkID: try data.number("linkId"),
            // Links that only another version knows appear as pushes: the stream is here, the target there.
            direction: Link.Direction(rawValue: direction) ?? .push, path: try data.path(), target: try data.text("target"),
            kind: kind,
            reason: try data.optionalText("reason"), error: try data.optionalText("error"))
    }

    /// The members of the event's data; the event itself has the kind.
    package var members: [JSONValue.Member] {
        var data: [JSONValue.Member] = []
        data.add("app", self.path.app)
        data.add("name", self.path.name)
        data.add("linkId", self.linkID)
        data.add("direction", self.direction.rawValue)
        data.add("target", self.target)
        data.add("reason", self.reason)
        data.add("error", self.error)
        return data
    }
}
