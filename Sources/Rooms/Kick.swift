import Synchronization

/// A kicked user, barred from a room until a given time. A value.
package struct Kick: Sendable, Equatable {
    package let roomID: RoomID
    package let user: String
    /// Milliseconds since 1970.
    package let until: Int64

    /// The default for calls without a duration: longer than a client's automatic retry takes.
    package static let defaultMs: Int64 = 10_000
    package static let longestMs: Int64 = 7 * 86_400_000
    /// The limit per room. Above it, the kicks that end first are dropped.
    static let mostPerRoom = 512
}

/// The kicked users of each room, in memory. Any thread; event loops query it at every join.
final class KickTable: Sendable {
    private struct Rows {
        /// Keyed by "app/name" of the rooms' streams.
        var rooms: [String: RoomID] = [:]
        var kicks: [RoomID: [String: Int64]] = [:]
    }

    private let rows = Mutex(Rows())

    func apply(_ kicks: [(kick: Kick, paths: [StreamPath])], now: Int64) {
        guard !kicks.isEmpty else { return }
        self.rows.withLock { rows in
            for (room, users) in rows.kicks {
                let left = users.filter { $0.value > now }
                guard left.count < users.count else { continue }
                rows.kicks[room] = left.isEmpty ? nil : left
                if left.isEmpty { rows.rooms = rows.rooms.filter { $0.value != room } }
            }
            for (kick, paths) in kicks {
                var users = rows.kicks[kick.roomID] ?? [:]
                users[kick.user] = max(users[kick.user] ?? 0, kick.until)
                if users.count > Kick.mostPerRoom, let first = users.min(by: { $0.value < $1.value }) { users[first.key] = nil }
                rows.kicks[kick.roomID] = users
                for path in paths { rows.rooms[path.description] = kick.roomID }
            }
        }
    }

    /// Replaces the whole table.
    func replace(with kicks: [(kick: Kick, paths: [StreamPath])], now: Int64) {
        self.rows.withLock { $0 = Rows() }
        self.apply(kicks, now: now)
    }

    func forget(_ gone: [RoomID]) {
        guard !gone.isEmpty else { return }
        self.rows.withLock { rows in
            let held = gone.filter { rows.kicks.removeValue(forKey: $0) != nil }
            if !held.isEmpty { rows.rooms = rows.rooms.filter { !held.contains($0.value) } }
        }
    }

    /// The kick's end, in milliseconds since 1970.
    func until(_ user: String, room: RoomID, now: Int64) -> Int64? {
        self.rows.withLock { rows in rows.kicks[room]?[user].flatMap { $0 > now ? $0 : nil } }
    }

    func until(_ user: String, path: String, now: Int64) -> Int64? {
        self.rows.withLock { rows in rows.rooms[path].flatMap { rows.kicks[$0]?[user] }.flatMap { $0 > now ? $0 : nil } }
    }
}

extension StoreAccess {
    func kick(of user: String, from room: RoomID, now: Int64) throws -> Int64? {
        try self.first(#"SELECT until FROM kicks WHERE room_id = ? AND "user" = ? AND until > ?"#, [room.rawValue, user, now]) {
            (row: inout RowReader) -> Int64 in row.next()
        }
    }

    /// Stores a kick; an existing longer one stays.
    func setKick(_ kick: Kick, now: Int64) throws {
        try self.run("DELETE FROM kicks WHERE until <= ?", [now])
        try self.run(
            """
            INSERT INTO kicks (room_id, "user", until) VALUES (?, ?, ?)
            ON CONFLICT (room_id, "user") DO UPDATE SET until = max(kicks.until, excluded.until)
            """, [kick.roomID.rawValue, kick.user, kick.until])
        try self.run(
            """
            DELETE FROM kicks WHERE room_id = ?1 AND "user" IN
            (SELECT "user" FROM kicks WHERE room_id = ?1 ORDER BY until DESC, "user" LIMIT -1 OFFSET ?2)
            """, [kick.roomID.rawValue, Kick.mostPerRoom])
    }

    /// Kicks that are not over, one entry for each stream of the room.
    func kicks(now: Int64) throws -> [(kick: Kick, paths: [StreamPath])] {
        try self.all(
            """
            SELECT kicks.room_id, "user", until, app, name FROM kicks JOIN slots ON slots.room_id = kicks.room_id WHERE until > ?
            """, [now]
        ) { row in
            let kick = Kick(roomID: RoomID(stored: row.next()), user: row.next(), until: row.next())
            return (kick, [StreamPath(app: row.next(), name: row.next())])
        }
    }
}

extension RoomRegistry {
    /// The end of this user's kick from the stream's room; nil if the user may play. Reads memory, for use at every join.
    package nonisolated func keptOut(_ user: String, of path: String) -> Int64? {
        self.kickTable.until(user, path: path, now: self.clock.now())
    }

    /// The same for the room and its talk channel.
    package nonisolated func keptOut(_ user: String, of room: RoomID) -> Int64? {
        self.kickTable.until(user, room: room, now: self.clock.now())
    }
}
