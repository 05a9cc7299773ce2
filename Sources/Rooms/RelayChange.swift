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
}
