import Rooms
import Store

extension StoreAccess {
    func kick(of user: String, from room: RoomID, now: Int64) throws -> Int64? {
        try self.first(#"SELECT until FROM kicks WHERE room_id = $1 AND "user" = $2 AND until > $3"#, [room.rawValue, user, now]) {
            (row: inout RowReader) -> Int64 in row.next()
        }
    }

    /// Stores a kick; an existing longer one stays.
    func setKick(_ kick: Kick, now: Int64) throws {
        try self.run("DELETE FROM kicks WHERE until <= $1", [now])
        try self.run(
            """
            INSERT INTO kicks (room_id, "user", until) VALUES ($1, $2, $3)
            ON CONFLICT (room_id, "user")
            DO UPDATE SET until = CASE WHEN excluded.until > kicks.until THEN excluded.until ELSE kicks.until END
            """, [kick.roomID.rawValue, kick.user, kick.until])
        try self.run(
            """
            DELETE FROM kicks WHERE room_id = $1 AND "user" IN
            (SELECT "user" FROM kicks WHERE room_id = $1 ORDER BY until DESC, "user" LIMIT 9223372036854775807 OFFSET $2)
            """, [kick.roomID.rawValue, Kick.mostPerRoom])
    }

    /// Kicks that are not over, one entry for each stream of the room.
    func kicks(now: Int64) throws -> [(kick: Kick, paths: [StreamPath])] {
        try self.all(
            """
            SELECT kicks.room_id, "user", until, app, name FROM kicks JOIN slots ON slots.room_id = kicks.room_id WHERE until > $1
            """, [now]
        ) { row in
            let kick = Kick(roomID: RoomID(stored: row.next()), user: row.next(), until: row.next())
            return (kick, [StreamPath(app: row.next(), name: row.next())])
        }
    }
}
