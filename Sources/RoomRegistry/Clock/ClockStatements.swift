import Rooms
import Store

/// The clock's mark, and times that move with the clock, as rows.
extension StoreAccess {
    func clockMark() throws -> ClockMark? {
        try self.first("SELECT boot_id, steady_ms, room_ms FROM clock WHERE id = 1") { row in
            ClockMark(bootID: row.optional(), steadyMs: row.next(), roomMs: row.next())
        }
    }

    /// Saves the mark. Also writes the first page with the store's id, which shows that a log belongs to this store.
    func save(_ mark: ClockMark) throws {
        try self.run(
            """
            INSERT INTO clock (id, boot_id, steady_ms, room_ms) VALUES (1, $1, $2, $3)
            ON CONFLICT (id) DO UPDATE SET boot_id = $1, steady_ms = $2, room_ms = $3
            """, [mark.bootID, mark.steadyMs, mark.roomMs])
        if let id = try self.storeID(), let mark = self.connection.dialect.markStore(id) { try self.runScript(mark) }
    }

    /// The store's random id, made with its schema; 0 if it has none. Nil where the store is no file.
    func storeID() throws -> Int64? { try self.connection.dialect.storeID.flatMap { try self.number($0) } }

    /// The latest instant that room time has reached. Taken from the rows stored last, as times stored while the clock was wrong may lie ahead.
    func newestInstant() throws -> Int64? {
        let event = try self.number("SELECT at FROM events ORDER BY id DESC LIMIT 1")
        let mark = try self.clockMark()?.roomMs
        guard let event, let mark else { return event ?? mark }
        return max(event, mark)
    }

    /// Moves room times by `ms`, so that the time left until every deadline stays the same. Applies to rooms that are open or may be opened again.
    /// Times chosen by callers (the ends of bans) and history stay. Closed rooms are history: only the end of their retention moves, as otherwise a
    /// clock corrected after years would delete them all at once. Returns the number of rooms moved, except closed ones.
    func moveTimes(by ms: Int64) throws -> Int {
        try self.run(
            """
            UPDATE rooms SET kept_until = coalesce(kept_until, coalesce(ended_at, created_at) + policy_retention) + $1,
                deadline = CASE WHEN abs(deadline) < 1000000000000000000 THEN deadline + $1 ELSE deadline END
            WHERE state = 'closed'
            """, [ms])
        let rooms = try self.change(
            """
            UPDATE rooms SET created_at = created_at + $1, waiting_since = waiting_since + $1, duration_from = duration_from + $1,
                live_since = live_since + $1, interrupted_at = interrupted_at + $1, interruption_ends = interruption_ends + $1,
                kept_until = kept_until + $1, ended_at = ended_at + $1, heartbeat_at = heartbeat_at + $1,
                owner_seen_at = owner_seen_at + $1, owner_away_since = owner_away_since + $1,
                deadline = CASE WHEN abs(deadline) < 1000000000000000000 THEN deadline + $1 ELSE deadline END
            WHERE state <> 'closed'
            """, [ms])
        try self.run("UPDATE slots SET away_until = away_until + $1 WHERE away_until IS NOT NULL", [ms])
        // In rooms with a ban the earliest deadline may be the ban's end, which stays.
        let banned = try self.all("SELECT DISTINCT room_id FROM slots WHERE forbidden_until IS NOT NULL") {
            (row: inout RowReader) -> String in row.next()
        }
        for id in banned {
            guard let room = try self.room(id) else { continue }
            try self.run("UPDATE rooms SET deadline = $1 WHERE id = $2", [RoomRules.nextDeadline(of: room), id])
        }
        try self.run(
            """
            UPDATE members SET joined_at = joined_at + $1, seen_at = seen_at + $1
            WHERE room_id NOT IN (SELECT id FROM rooms WHERE state = 'closed')
            """, [ms])
        try self.run("UPDATE kicks SET until = until + $1", [ms])
        try self.run("UPDATE talk_members SET set_at = set_at + $1, banned_until = banned_until + $1", [ms])
        try self.run("UPDATE pushes SET started_at = started_at + $1, media_at = media_at + $1 WHERE ended_at IS NULL", [ms])
        try self.run("UPDATE recordings SET started_at = started_at + $1 WHERE state = 'recording'", [ms])
        try self.run("UPDATE recording_orders SET started_at = started_at + $1", [ms])
        try self.run(
            "UPDATE webhook_deliveries SET due_at = due_at + $1, kept_from = coalesce(kept_from, at) + $1 WHERE state = 'pending'", [ms])
        try self.run("UPDATE answers SET created_at = created_at + $1", [ms])
        return rooms
    }
}
