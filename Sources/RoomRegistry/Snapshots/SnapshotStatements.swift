import Rooms
import Store

extension StoreAccess {
    private static let snapshotColumns = "row, id, app, name, room_id, slot, file, taken_at, bytes, width, height"

    private static func snapshot(_ row: inout RowReader) -> SnapshotRecord {
        let number: Int64 = row.next()
        let id: String = row.next()
        let path = StreamPath(app: row.next(), name: row.next())
        return SnapshotRecord(
            id: id, path: path, roomID: RoomID(stored: row.next()), slot: row.next(), file: row.next(), takenAt: row.next(),
            bytes: row.next(), width: row.next(), height: row.next(), row: number)
    }

    func insert(_ snapshot: SnapshotRecord) throws {
        try self.run(
            """
            INSERT INTO snapshots (id, app, name, room_id, slot, file, taken_at, bytes, width, height) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
            """,
            [
                snapshot.id, snapshot.path.app, snapshot.path.name, snapshot.roomID.rawValue, snapshot.slot, snapshot.file,
                snapshot.takenAt, snapshot.bytes, snapshot.width, snapshot.height,
            ])
    }

    func deleteSnapshot(_ id: String) throws { try self.run("DELETE FROM snapshots WHERE id = $1", [id]) }

    func snapshot(_ id: String) throws -> SnapshotRecord? {
        try self.first("SELECT \(Self.snapshotColumns) FROM snapshots WHERE id = $1", [id]) { row in Self.snapshot(&row) }
    }

    /// All pictures of a stream but the newest `count`; at most 1,000.
    func snapshots(of path: StreamPath, behind count: Int) throws -> [SnapshotRecord] {
        try self.all(
            "SELECT \(Self.snapshotColumns) FROM snapshots WHERE app = $1 AND name = $2 ORDER BY row DESC LIMIT 1000 OFFSET $3",
            [path.app, path.name, count]
        ) { row in Self.snapshot(&row) }
    }

    /// Oldest first.
    func snapshots(takenBefore ms: Int64, limit: Int) throws -> [SnapshotRecord] {
        try self.all(
            "SELECT \(Self.snapshotColumns) FROM snapshots WHERE taken_at < $1 AND \(self.isMine) ORDER BY taken_at, row LIMIT $2",
            [ms, limit]
        ) {
            row in Self.snapshot(&row)
        }
    }

    func snapshots(ofRoom room: RoomID, slot: Int?, after: Int64?, limit: Int) throws -> [SnapshotRecord] {
        try self.all(
            """
            SELECT \(Self.snapshotColumns) FROM snapshots WHERE room_id = $1 AND row < $2 AND ($3 IS NULL OR slot = $3)
            ORDER BY row DESC LIMIT $4
            """, [room.rawValue, after ?? .max, slot, limit]
        ) { row in Self.snapshot(&row) }
    }

    func snapshotBytes() throws -> Int64 { try self.number("SELECT sum(bytes) FROM snapshots") ?? 0 }
}
