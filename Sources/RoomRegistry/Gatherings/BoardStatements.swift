package import Rooms
import Store

/// Strokes on whiteboards as rows.
extension StoreAccess {
    func add(_ stroke: StoredStroke, to board: String, in room: String) throws {
        try self.run(
            "INSERT INTO board_strokes (room_id, board, number, page, stroke) VALUES ($1, $2, $3, $4, $5)",
            [room, board, stroke.number, stroke.page, stroke.text])
    }

    func clear(_ page: Int64, of board: String, in room: String) throws {
        try self.run("DELETE FROM board_strokes WHERE room_id = $1 AND board = $2 AND page = $3", [room, board, page])
    }

    func deleteStrokes(of board: String, in room: String) throws {
        try self.run("DELETE FROM board_strokes WHERE room_id = $1 AND board = $2", [room, board])
    }

    func deleteStrokes(in room: String) throws { try self.run("DELETE FROM board_strokes WHERE room_id = $1", [room]) }

    /// Bytes of strokes on each page, and the newest stroke's number; 0 without one.
    func pages(of board: String, in room: String) throws -> (bytes: [Int64: Int], last: Int64) {
        var (bytes, last): ([Int64: Int], Int64) = ([:], 0)
        // The strokes are ASCII: a character is a byte.
        let rows = try self.all(
            "SELECT page, sum(length(stroke)), max(number) FROM board_strokes WHERE room_id = $1 AND board = $2 GROUP BY page",
            [room, board]
        ) { (row: inout RowReader) -> (Int64, Int, Int64) in (row.next(), row.next(), row.next()) }
        for row in rows {
            bytes[row.0] = row.1
            last = max(last, row.2)
        }
        return (bytes, last)
    }

    /// The next strokes after `number`, oldest first: at most `bytes` in total, but at least one stroke. `isAll`: whether no strokes follow.
    func strokes(of board: String, in room: String, after number: Int64, bytes: Int) throws -> (list: [StoredStroke], isAll: Bool) {
        var (list, size, isAll): ([StoredStroke], Int, Bool) = ([], 0, true)
        try self.connection.query(
            "SELECT number, page, stroke FROM board_strokes WHERE room_id = $1 AND board = $2 AND number > $3 ORDER BY number",
            [room, board, number]
        ) { row in
            var reader = RowReader(row: row)
            let stroke = StoredStroke(number: reader.next(), page: reader.next(), text: reader.next())
            size += stroke.text.utf8.count
            isAll = list.isEmpty || size <= bytes
            if isAll { list.append(stroke) }
            return isAll
        }
        return (list, isAll)
    }
}

/// Whiteboards of classes. A class's gathering has its room's id.
extension RoomRegistry {
    /// Stores a stroke. Throws when the class has ended.
    package nonisolated func add(_ stroke: StoredStroke, toBoard board: String, in room: RoomID) async throws(RegistryError) {
        let id = room.rawValue
        try await self.call { work in
            guard try work.store.number("SELECT 1 FROM gatherings WHERE id = $1", [id]) != nil else { throw RegistryError.noSuchRoom(id) }
            try work.store.add(stroke, to: board, in: id)
        }
    }

    /// Forgets the strokes of a page.
    package nonisolated func clear(_ page: Int64, ofBoard board: String, in room: RoomID) async throws(RegistryError) {
        try await self.call { try $0.store.clear(page, of: board, in: room.rawValue) }
    }

    /// Forgets all strokes of a board.
    package nonisolated func deleteBoard(_ board: String, in room: RoomID) async throws(RegistryError) {
        try await self.call { try $0.store.deleteStrokes(of: board, in: room.rawValue) }
    }

    /// Bytes of strokes on each page of a board, and the newest stroke's number; 0 without one.
    package nonisolated func pages(
        ofBoard board: String, in room: RoomID
    ) async throws(RegistryError) -> (bytes: [Int64: Int], last: Int64) {
        try await self.store.read { try $0.pages(of: board, in: room.rawValue) }
    }

    /// The next strokes of a board after `number`, oldest first: at most `bytes` in total, but at least one stroke. `isAll`: whether no strokes
    /// follow.
    package nonisolated func strokes(
        ofBoard board: String, in room: RoomID, after number: Int64, bytes: Int
    ) async throws(RegistryError) -> (list: [StoredStroke], isAll: Bool) {
        try await self.store.read { try $0.strokes(of: board, in: room.rawValue, after: number, bytes: bytes) }
    }
}
