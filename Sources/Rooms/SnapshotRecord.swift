/// An automatically taken picture of a stream, stored in a file. A value.
package struct SnapshotRecord: Sendable, Equatable {
    /// 16 hexadecimal digits.
    package let id: String
    package let path: StreamPath
    package let roomID: RoomID
    package let slot: Int
    /// Path below the pictures' folder.
    package let file: String
    /// Milliseconds since 1970.
    package let takenAt: Int64
    package let bytes: Int64
    /// Pixels.
    package let width: Int
    package let height: Int
    /// Position in lists; grows and is never reused.
    package let row: Int64

    package init(
        id: String, path: StreamPath, roomID: RoomID, slot: Int, file: String, takenAt: Int64, bytes: Int64, width: Int, height: Int,
        row: Int64 = 0
    ) {
        self.id = id
        self.path = path
        self.roomID = roomID
        self.slot = slot
        self.file = file
        self.takenAt = takenAt
        self.bytes = bytes
        self.width = width
        self.height = height
        self.row = row
    }
}

/// Limits on the pictures kept. A value.
package struct SnapshotBounds: Sendable, Equatable {
    /// Newest pictures kept of each stream.
    package let perStream: Int
    /// Bytes of all files; 0 for no limit.
    package let bytes: Int64

    package init(perStream: Int, bytes: Int64) {
        self.perStream = perStream
        self.bytes = bytes
    }
}

extension RoomTransaction {
    /// Records a picture that is in its file. Returns the pictures dropped for it.
    func snapshotTaken(_ snapshot: SnapshotRecord, _ bounds: SnapshotBounds) throws -> [SnapshotRecord] {
        try self.store.insert(snapshot)
        var data = JSONText()
        data.add("app", snapshot.path.app)
        data.add("name", snapshot.path.name)
        data.add("slot", snapshot.slot)
        data.add("snapshotId", snapshot.id)
        data.add("takenAt", isoText(snapshot.takenAt))
        data.add("takenMs", snapshot.takenAt)
        data.add("bytes", snapshot.bytes)
        data.add("width", snapshot.width)
        data.add("height", snapshot.height)
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

extension RoomRegistry {
    /// Records a picture that is in its file and publishes its event. The caller removes the files of the returned pictures.
    package nonisolated func snapshotTaken(
        _ snapshot: SnapshotRecord, _ bounds: SnapshotBounds
    ) async throws(RegistryError) -> [SnapshotRecord] {
        try await self.perform { try $0.snapshotTaken(snapshot, bounds) }
    }

    /// Forgets pictures taken before this time (milliseconds since 1970). The caller removes their files.
    package nonisolated func forgetSnapshots(takenBefore ms: Int64, limit: Int) async throws(RegistryError) -> [SnapshotRecord] {
        guard try await !self.store.read({ try $0.snapshots(takenBefore: ms, limit: 1) }).isEmpty else { return [] }
        return try await self.perform { work in
            let old = try work.store.snapshots(takenBefore: ms, limit: limit)
            for snapshot in old { try work.store.deleteSnapshot(snapshot.id) }
            return old
        }
    }

    package nonisolated func snapshotCount() async throws(RegistryError) -> Int {
        try await self.store.read { Int(try $0.number("SELECT count(*) FROM snapshots") ?? 0) }
    }

    package nonisolated func snapshot(_ id: String) async throws(RegistryError) -> SnapshotRecord? {
        try await self.store.read { try $0.snapshot(id) }
    }

    /// A room's pictures, newest first. `after` is the `row` of the previous page's last one.
    package nonisolated func snapshots(
        ofRoom room: RoomID, slot: Int?, after: Int64?, limit: Int
    ) async throws(RegistryError) -> [SnapshotRecord] {
        try await self.store.read { try $0.snapshots(ofRoom: room, slot: slot, after: after, limit: min(max(1, limit), 10_000)) }
    }
}

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
            INSERT INTO snapshots (id, app, name, room_id, slot, file, taken_at, bytes, width, height) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                snapshot.id, snapshot.path.app, snapshot.path.name, snapshot.roomID.rawValue, snapshot.slot, snapshot.file,
                snapshot.takenAt, snapshot.bytes, snapshot.width, snapshot.height,
            ])
    }

    func deleteSnapshot(_ id: String) throws { try self.run("DELETE FROM snapshots WHERE id = ?", [id]) }

    func snapshot(_ id: String) throws -> SnapshotRecord? {
        try self.first("SELECT \(Self.snapshotColumns) FROM snapshots WHERE id = ?", [id]) { row in Self.snapshot(&row) }
    }

    /// All pictures of a stream but the newest `count`; at most 1,000.
    func snapshots(of path: StreamPath, behind count: Int) throws -> [SnapshotRecord] {
        try self.all(
            "SELECT \(Self.snapshotColumns) FROM snapshots WHERE app = ? AND name = ? ORDER BY row DESC LIMIT 1000 OFFSET ?",
            [path.app, path.name, count]
        ) { row in Self.snapshot(&row) }
    }

    /// Oldest first.
    func snapshots(takenBefore ms: Int64, limit: Int) throws -> [SnapshotRecord] {
        try self.all("SELECT \(Self.snapshotColumns) FROM snapshots WHERE taken_at < ? ORDER BY taken_at, row LIMIT ?", [ms, limit]) {
            row in Self.snapshot(&row)
        }
    }

    func snapshots(ofRoom room: RoomID, slot: Int?, after: Int64?, limit: Int) throws -> [SnapshotRecord] {
        try self.all(
            """
            SELECT \(Self.snapshotColumns) FROM snapshots WHERE room_id = ?1 AND row < ?2 AND (?3 IS NULL OR slot = ?3)
            ORDER BY row DESC LIMIT ?4
            """, [room.rawValue, after ?? .max, slot, limit]
        ) { row in Self.snapshot(&row) }
    }

    func snapshotBytes() throws -> Int64 { try self.number("SELECT sum(bytes) FROM snapshots") ?? 0 }
}
