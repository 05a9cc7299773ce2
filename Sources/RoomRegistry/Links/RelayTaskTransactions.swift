import Rooms

extension RoomTransaction {
    /// Adds the event to the stream's room if there is one.
    func relayChanged(_ change: RelayChange) throws {
        let kind: RoomEvent.Kind =
            switch change.kind {
            case .started: .relayStarted
            case .connected: .relayConnected
            case .interrupted: .relayInterrupted
            case .stopped: .relayStopped
            }
        guard var room = try self.store.room(ofStream: change.path) else { return try self.event(kind, of: change.path, change.members) }
        let old = room
        try self.event(kind, of: &room, change.members)
        try self.save(from: old, to: room)
    }
}
