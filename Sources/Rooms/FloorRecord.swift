import GRDB

/// Who got or lost the right to speak in a room's talk channel: what its audit trail is made of.
package struct FloorRecord: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable {
        case granted, denied, revoked, released

        var event: RoomEvent.Kind {
            switch self {
            case .granted: .floorGranted
            case .denied: .floorDenied
            case .revoked: .floorRevoked
            case .released: .floorReleased
            }
        }
    }

    package var kind: Kind
    package var user: String
    /// A word of the floor's rules: why.
    package var reason: String
    /// "open" or "ptt".
    package var mode: String
    /// How long it was held, when it is given back.
    package var heldMs: Int64?
    /// Whoever took it away or gave it: another participant or an API token; nil for rules alone.
    package var by: String?
    /// The API token whose call did this; nil when none did.
    package var caller: String?

    package init(
        kind: Kind, user: String, reason: String, mode: String, heldMs: Int64? = nil, by: String? = nil, caller: String? = nil
    ) {
        self.kind = kind
        self.user = user
        self.reason = reason
        self.mode = mode
        self.heldMs = heldMs
        self.by = by
        self.caller = caller
    }
}

extension RoomRegistry {
    /// Makes an event of each. Ordered as called, from any thread; does not wait. Of rooms that are gone, nothing is kept.
    package nonisolated func floorChanged(_ roomID: RoomID, _ records: [FloorRecord]) {
        guard !records.isEmpty else { return }
        self.submit(trail: 512 * records.count) { try $0.floorChanged(roomID, records) }
    }
}

extension StoreAccess {
    /// Whose last word in the room's audit trail is that they got the floor.
    fileprivate func floorHolders(of id: RoomID) throws -> [(user: String, mode: String, sinceMs: Int64)] {
        let kinds = [FloorRecord.Kind.granted, .released, .revoked].map(\.event.rawValue)
        return try self.all(
            """
            SELECT user, mode, at FROM (
                SELECT json_extract(data, '$.userId') AS user, json_extract(data, '$.mode') AS mode, kind, at,
                    row_number() OVER (PARTITION BY json_extract(data, '$.userId') ORDER BY id DESC) AS place
                FROM events WHERE room_id = ?1 AND kind IN (?2, ?3, ?4))
            WHERE place = 1 AND kind = ?2 ORDER BY user LIMIT 64
            """, [id.rawValue, kinds[0], kinds[1], kinds[2]]
        ) { row in (row.next() as String? ?? "", row.next() as String? ?? "", row.next()) }
    }
}

extension RoomWork {
    /// The last run ended without its word: who had the floor then has it no more. Each grant in the trail has its end.
    func closeFloor(of room: inout Room) throws {
        let holders = try self.store.floorHolders(of: room.id)
        guard !holders.isEmpty else { return }
        let old = room
        for holder in holders {
            var data = JSONText()
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
            var data = JSONText()
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
