import Rooms
import Support

extension RoomTransaction {
    /// Releases floors that the last run left granted. Each grant in the trail gets its end.
    func closeFloor(of room: inout Room) throws {
        let holders = try self.store.floorHolders(of: room.id)
        guard !holders.isEmpty else { return }
        let old = room
        for holder in holders {
            var data: [JSONValue.Member] = []
            data.add("userId", holder.user)
            data.add("reason", "serverRestart")
            data.add("mode", holder.mode)
            data.add("heldMs", max(0, self.now - holder.sinceMs))
            data.add("by", Actor.server.name)
            try self.event(.floorReleased, of: &room, data)
        }
        try self.save(from: old, to: room)
    }

    func floorChanged(_ roomID: RoomID, _ records: [FloorRecord]) throws {
        guard var room = try self.store.room(roomID.rawValue) else { return }
        let old = room
        for record in records {
            var data: [JSONValue.Member] = []
            data.add("userId", record.user)
            data.add("reason", record.reason)
            data.add("mode", record.mode)
            data.add("heldMs", record.heldMs)
            data.add("by", record.by)
            data.add("caller", record.caller)
            try self.event(record.kind.event, of: &room, data)
        }
        try self.save(from: old, to: room)
    }
}
