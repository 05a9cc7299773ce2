package import Support

/// A change of a relay task's link. A value.
package struct RelayChange: Sendable, Equatable {
    package enum Kind: Sendable, Equatable { case started, connected, interrupted, stopped }

    package let task: Int64
    package let direction: RelayTask.Direction
    package let path: StreamPath
    /// The other server's address, without a credential.
    package let target: String
    package let kind: Kind
    /// One word.
    package let reason: String?
    /// A sentence, without a credential.
    package let error: String?

    package init(
        task: Int64, direction: RelayTask.Direction, path: StreamPath, target: String, kind: Kind, reason: String? = nil,
        error: String? = nil
    ) {
        self.task = task
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
            task: try data.number("taskId"),
            // Links that only another version knows appear as pushes: the stream is here, the target there.
            direction: RelayTask.Direction(rawValue: direction) ?? .push, path: try data.path(), target: try data.text("target"),
            kind: kind,
            reason: try data.optionalText("reason"), error: try data.optionalText("error"))
    }

    /// The members of the event's data; the event itself has the kind.
    package var members: [JSONValue.Member] {
        var data: [JSONValue.Member] = []
        data.add("app", self.path.app)
        data.add("name", self.path.name)
        data.add("taskId", self.task)
        data.add("direction", self.direction.rawValue)
        data.add("target", self.target)
        data.add("reason", self.reason)
        data.add("error", self.error)
        return data
    }
}
