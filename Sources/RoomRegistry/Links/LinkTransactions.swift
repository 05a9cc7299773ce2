import Rooms

extension RoomTransaction {
    /// Adds the event to the stream's room if there is one.
    func linkChanged(_ change: LinkChange) throws {
        let kind: RoomEvent.Kind =
            switch change.kind {
            case .started: .linkStarted
            case .connected: .linkConnected
            case .interrupted: .linkInterrupted
            case .stopped: .linkStopped
            }
        guard var room = try self.store.room(ofStream: change.path) else { return try self.event(kind, of: change.path, change.members) }
        let old = room
        try self.event(kind, of: &room, change.members)
        try self.save(from: old, to: room)
    }
}
