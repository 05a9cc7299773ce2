import Rooms
import Support
import Synchronization

/// The kicked users of each room, in memory. Any thread; event loops query it at every join.
final class KickTable: Sendable {
    private struct Rows {
        /// Keyed by "app/name" of the rooms' streams.
        var rooms: NameTable<RoomID> = [:]
        var kicks: [RoomID: NameTable<Int64>] = [:]
    }

    private let rows = Mutex(Rows())

    func apply(_ kicks: [(kick: Kick, paths: [StreamPath])], now: Int64) {
        guard !kicks.isEmpty else { return }
        self.rows.withLock { rows in
            for (id, users) in rows.kicks {
                let left = users.filter { $0.value > now }
                guard left.count < users.count else { continue }
                rows.kicks[id] = left.isEmpty ? nil : left
                if left.isEmpty { rows.rooms = rows.rooms.filter { $0.value != id } }
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
