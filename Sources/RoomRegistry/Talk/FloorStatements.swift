import Rooms
import Store

extension StoreAccess {
    /// Users whose last floor event in the room's audit trail is a grant.
    func floorHolders(of id: RoomID) throws -> [(user: String, mode: String, sinceMs: Int64)] {
        let kinds = [FloorRecord.Kind.granted, .released, .revoked].map(\.event.rawValue)
        let dialect = self.connection.dialect
        let user = dialect.member("userId", of: "data")
        return try self.all(
            """
            SELECT "user", mode, at FROM (
                SELECT \(user) AS "user", \(dialect.member("mode", of: "data")) AS mode, kind, at,
                    row_number() OVER (PARTITION BY \(user) ORDER BY id DESC) AS place
                FROM events WHERE room_id = $1 AND kind IN ($2, $3, $4)) AS trail
            WHERE place = 1 AND kind = $2 ORDER BY "user" LIMIT 64
            """, [id.rawValue, kinds[0], kinds[1], kinds[2]]
        ) { row in (row.optional() ?? "", row.optional() ?? "", row.next()) }
    }
}
