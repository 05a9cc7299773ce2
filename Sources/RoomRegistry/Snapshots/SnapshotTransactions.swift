import Rooms

extension RoomTransaction {
    /// Records a picture that is in its file. Returns the pictures dropped for it.
    func snapshotTaken(_ snapshot: SnapshotRecord, _ bounds: SnapshotBounds) throws -> [SnapshotRecord] {
        try self.store.insert(snapshot)
        let data = SnapshotDetails(snapshot).members
        if var room = try self.store.room(snapshot.roomID.rawValue) {
            let old = room
            try self.event(.snapshotTaken, of: &room, data)
            try self.save(from: old, to: room)
        } else {
            try self.event(.snapshotTaken, of: snapshot.path, data)
        }
        var gone = try self.store.snapshots(of: snapshot.path, behind: bounds.perStream)
        for old in gone { try self.store.deleteSnapshot(old.id) }
        if bounds.bytes > 0 {
            var over = try self.store.snapshotBytes() - bounds.bytes
            // Drops the oldest of all streams, but not the one just taken.
            while over > 0 {
                let oldest = try self.store.snapshots(takenBefore: .max, limit: 64).filter { $0.id != snapshot.id }
                guard !oldest.isEmpty else { break }
                for old in oldest where over > 0 {
                    try self.store.deleteSnapshot(old.id)
                    over -= old.bytes
                    gone.append(old)
                }
            }
        }
        return gone
    }
}
