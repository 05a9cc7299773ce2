package import Rooms
import Store
import Support

/// Gatherings as rows, and their changes.
extension StoreAccess {
    func gatherings() throws -> [StoredGathering] {
        try self.all("SELECT id, kind, room_id, state, created_at FROM gatherings WHERE \(self.isMine) ORDER BY id", []) { row in
            StoredGathering(
                id: row.next(), kind: row.next(), roomID: RoomID(stored: row.next()), state: row.next(), createdAt: row.next())
        }
    }

    func put(_ gathering: StoredGathering, now: Int64) throws {
        try self.run(
            """
            INSERT INTO gatherings (id, kind, room_id, state, created_at, changed_at) VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (id) DO UPDATE SET state = excluded.state, changed_at = excluded.changed_at
            """,
            [gathering.id, gathering.kind, gathering.roomID.rawValue, gathering.state, gathering.createdAt, now])
    }

    /// Takes a gathering for this node. Throws while it is on another one that runs.
    func claimGathering(_ id: String) throws {
        guard let node, let holder = try self.number("SELECT node FROM gatherings WHERE id = $1", [id]), holder != node else { return }
        if let other = try self.node(having: .node(holder)), other.state == .running {
            throw RegistryError.onOtherNode("The gathering \(id)", node: other.name)
        }
        try self.run("UPDATE gatherings SET node = $1 WHERE id = $2", [node, id])
    }

    func deleteGathering(_ id: String) throws { try self.run("DELETE FROM gatherings WHERE id = $1", [id]) }
}

extension RoomTransaction {
    func commit(_ change: GatheringChange) throws {
        try self.store.claimGathering(change.gathering.id)
        let id = change.gathering.roomID.rawValue
        for (user, nick) in change.joins { _ = try self.join(id, user: user, nick: nick) }
        for (user, wasKicked) in change.leaves {
            do {
                try self.leave(id, user: user, as: wasKicked ? .memberKicked : .memberLeft, by: Actor(user))
            } catch RegistryError.noSuchMember, RegistryError.noSuchRoom {
                // A call has already removed the user or the room.
            }
        }
        if !change.events.isEmpty, var room = try self.store.room(id) {
            let old = room
            for event in change.events { try self.event(event.kind, of: &room, self.data(of: room, by: .server) + event.data) }
            try self.save(from: old, to: room)
        }
        for board in change.deletedBoards { try self.store.deleteStrokes(of: board, in: id) }
        if change.hasEnded {
            try self.store.deleteGathering(change.gathering.id)
            // A class has its room's id; other gatherings of the room have no boards.
            if change.gathering.id == id { try self.store.deleteStrokes(in: id) }
        } else {
            try self.store.put(change.gathering, now: self.now)
        }
    }
}

extension RoomRegistry {
    /// Stores a gathering's change and its consequences for the room, in one transaction. Throws when the room does not accept the users who join.
    package nonisolated func commit(_ change: GatheringChange) async throws(RegistryError) {
        try await self.call { try $0.commit(change) }
    }

    /// The stored gatherings of this node, by id.
    package nonisolated func gatherings() async throws(RegistryError) -> [StoredGathering] {
        try await self.store.read { try $0.gatherings() }
    }
}
