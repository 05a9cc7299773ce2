/// One decision about the floor, the right to speak in a room's talk channel. Its event goes to the audit trail.
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
    /// The reason, as a word of the floor's rules.
    package var reason: String
    /// "open" or "ptt".
    package var mode: String
    /// How long the floor was held; nil unless it was released or revoked.
    package var heldMs: Int64?
    /// The other participant or the API token that caused this; nil for rules alone.
    package var by: String?
    /// The API token whose call caused this; nil if none did.
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
    /// Stores an event per record, in submission order, or none if the room is gone. Any thread; does not wait.
    package nonisolated func floorChanged(_ roomID: RoomID, _ records: [FloorRecord]) {
        guard !records.isEmpty else { return }
        self.submit(trail: 512 * records.count) { try $0.floorChanged(roomID, records) }
    }
}

extension StoreAccess {
    /// Users whose last floor event in the room's audit trail is a grant.
    fileprivate func floorHolders(of id: RoomID) throws -> [(user: String, mode: String, sinceMs: Int64)] {
        let kinds = [FloorRecord.Kind.granted, .released, .revoked].map(\.event.rawValue)
        return try self.all(
            """
            SELECT "user", mode, at FROM (
                SELECT json_extract(data, '$.userId') AS "user", json_extract(data, '$.mode') AS mode, kind, at,
                    row_number() OVER (PARTITION BY json_extract(data, '$.userId') ORDER BY id DESC) AS place
                FROM events WHERE room_id = ?1 AND kind IN (?2, ?3, ?4)) AS trail
            WHERE place = 1 AND kind = ?2 ORDER BY "user" LIMIT 64
            """, [id.rawValue, kinds[0], kinds[1], kinds[2]]
        ) { row in (row.optional() ?? "", row.optional() ?? "", row.next()) }
    }
}

extension RoomTransaction {
    /// Releases floors that the last run left granted. Each grant in the trail gets its end.
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
