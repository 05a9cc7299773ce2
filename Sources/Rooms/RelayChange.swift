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

extension RoomRegistry {
    /// Stores an event for a change of a link, in submission order. Any thread; does not wait.
    package nonisolated func relayChanged(_ change: RelayChange) {
        self.submit(trail: 2_048) { try $0.relayChanged(change) }
    }
}

extension RoomTransaction {
    /// Adds the event to the stream's room if there is one.
    func relayChanged(_ change: RelayChange) throws {
        var data = JSONText()
        data.add("app", change.path.app)
        data.add("name", change.path.name)
        data.add("taskId", change.task)
        data.add("direction", change.direction.rawValue)
        data.add("target", change.target)
        data.add("reason", change.reason)
        data.add("error", change.error)
        let kind: RoomEvent.Kind =
            switch change.kind {
            case .started: .relayStarted
            case .connected: .relayConnected
            case .interrupted: .relayInterrupted
            case .stopped: .relayStopped
            }
        guard var room = try self.store.room(ofStream: change.path) else { return try self.event(kind, of: change.path, data) }
        let old = room
        try self.event(kind, of: &room, data)
        try self.save(from: old, to: room)
    }
}
