import Rooms
import Support

extension RoomTransaction {
    /// Adds the event to the stream's room if there is one.
    func relayChanged(_ change: RelayChange) throws {
        var data: [JSONValue.Member] = []
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
