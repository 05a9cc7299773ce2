import Rooms
import Store
import Support

/// Rooms and their slots as rows.
extension StoreAccess {
    private static let unlisted = [
        "instance", "reason", "custom", "is_ad_hoc", "waiting_since", "duration_from", "live_since", "interrupted_at", "interruption_ends",
        "kept_until", "heartbeat_at", "owner_seen_at", "owner_away_since", "forbidden_until", "forbid_reason", "peak", "likes", "members",
        "last_event", "creator",
    ]
    /// Indexed columns, written only when they change.
    private static let state = ["state", "ended_at"]
    private static let listed = ["owner", "title", "is_public", "device_uid", "created_at"]
    private static let policy = RoomPolicy.fields.map { "policy_\($0.name)" }

    static let roomColumns = (["id"] + Self.unlisted + Self.state + Self.listed + Self.policy).joined(separator: ", ")

    private static func unlistedValues(_ room: Room) -> [(any StoreConvertible)?] {
        [
            room.instance, room.reason.rawValue, room.custom, room.isAdHoc, room.waitingSince, room.durationFrom, room.liveSince,
            room.interruptedAt, room.interruptionEnds, room.keptUntil, room.heartbeatAt, room.ownerSeenAt, room.ownerAwaySince,
            room.forbiddenUntil, room.forbidReason, room.peak, room.likes, room.members, room.lastEvent, room.creator,
        ]
    }

    private static func stateValues(_ room: Room) -> [(any StoreConvertible)?] { [room.state.rawValue, room.endedAt] }

    private static func listedValues(_ room: Room) -> [(any StoreConvertible)?] {
        [room.owner, room.title, room.isPublic, room.deviceUid, room.createdAt]
    }

    private static func policyValues(_ room: Room) -> [(any StoreConvertible)?] { RoomPolicy.fields.map { $0.get(room.policy) } }

    private static func roomWithoutSlots(_ row: inout RowReader) throws -> Room {
        var room = Room(id: RoomID(stored: row.next()), slots: [], at: 0)
        room.instance = row.next()
        room.reason = try row.word()
        room.custom = row.next()
        room.isAdHoc = row.next()
        room.waitingSince = row.next()
        room.durationFrom = row.optional()
        room.liveSince = row.optional()
        room.interruptedAt = row.optional()
        room.interruptionEnds = row.optional()
        room.keptUntil = row.optional()
        room.heartbeatAt = row.optional()
        room.ownerSeenAt = row.optional()
        room.ownerAwaySince = row.optional()
        room.forbiddenUntil = row.optional()
        room.forbidReason = row.optional()
        room.peak = row.next()
        room.likes = row.next()
        room.members = row.next()
        room.lastEvent = row.next()
        room.creator = row.optional()
        room.state = try row.word()
        room.endedAt = row.optional()
        room.owner = row.optional()
        room.title = row.next()
        room.isPublic = row.next()
        room.deviceUid = row.optional()
        room.createdAt = row.next()
        for field in RoomPolicy.fields { field.set(&room.policy, row.next()) }
        return room
    }

    private static let slotColumns =
        "number, app, name, sequence, earlier, is_active, away_reason, away_until, forbidden_until, forbid_reason"

    private static func slot(_ row: inout RowReader) -> Room.Slot {
        var slot = Room.Slot(number: row.next(), app: row.next(), name: row.next())
        slot.sequence = row.optional()
        let earlier: String = row.next()
        slot.earlier = earlier.split(separator: ",").compactMap { Int64($0) }
        slot.isActive = row.next()
        let away: String? = row.optional()
        slot.awayReason = away.flatMap(StateReason.init(rawValue:))
        slot.awayUntil = row.optional()
        slot.forbiddenUntil = row.optional()
        slot.forbidReason = row.optional()
        return slot
    }

    private static func slotValues(_ slot: Room.Slot) -> [(any StoreConvertible)?] {
        [
            slot.sequence, slot.earlier.map(String.init).joined(separator: ","), slot.isActive, slot.awayReason?.rawValue, slot.awayUntil,
            slot.forbiddenUntil, slot.forbidReason,
        ]
    }

    /// The slots of the room with this id, an expression.
    private func slots(of id: String, _ arguments: StoreArguments) throws -> [Room.Slot] {
        try self.all("SELECT \(Self.slotColumns) FROM slots WHERE room_id = \(id) ORDER BY number", arguments) { row in Self.slot(&row) }
    }

    private func room(where condition: String, _ arguments: StoreArguments) throws -> Room? {
        guard
            var room = try self.first(
                "SELECT \(Self.roomColumns) FROM rooms WHERE \(condition)", arguments,
                { row in try Self.roomWithoutSlots(&row) })
        else { return nil }
        room.slots = try self.slots(of: "$1", [room.id.rawValue])
        return room
    }

    func room(_ id: String) throws -> Room? { try self.room(withID: "$1", [id]) }

    /// The room with this id, an expression; with one wait.
    private func room(withID id: String, _ arguments: StoreArguments) throws -> Room? {
        let expected = try self.expectFirst("SELECT \(Self.roomColumns) FROM rooms WHERE id = \(id)", arguments) { row in
            try Self.roomWithoutSlots(&row)
        }
        let slots = try self.slots(of: id, arguments)
        guard var room = expected.value else { return nil }
        room.slots = slots
        return room
    }

    func room(row: Int64) throws -> Room? { try self.room(where: "row = $1", [row]) }

    /// The device's open room, otherwise the one that ended last. In a closed room, setting the clock moves `kept_until` but not
    /// `ended_at`.
    func room(ofDevice uid: String) throws -> Room? {
        try self.openRoom(ofDevice: uid)
            ?? self.room(
                where: """
                    device_uid = $1 AND coalesce(kept_until - policy_retention, ended_at) = (
                        SELECT max(coalesce(kept_until - policy_retention, ended_at)) FROM rooms WHERE device_uid = $1) LIMIT 1
                    """, [uid])
    }

    func openRoom(ofDevice uid: String) throws -> Room? {
        try self.room(where: "device_uid = $1 AND state NOT IN ('expired', 'closed')", [uid])
    }

    /// The stream that a name stands for, of a push, a play or a call: a room's stream of that very name; else slot 1 of the room of the device with
    /// that name; else the name as given. A name that was forbidden before a room had the device stands for itself until its ban ends.
    func stream(named path: StreamPath) throws -> StreamPath {
        guard RoomID.isID(path.name), try self.roomID(ofStream: path) == nil, try self.ban(of: path) == nil,
            let room = try self.room(ofDevice: path.name), room.devicePaths.contains(path), let slot = room.slots.first
        else { return path }
        return slot.path
    }

    /// The room with this id, else the one of the device with this name, as the device's stream leads to it.
    func room(named name: String) throws -> Room? {
        if let room = try self.room(name) { return room }
        let asked = StreamPath(app: "live", name: name)
        let path = try self.stream(named: asked)
        return path == asked ? nil : try self.room(ofStream: path)
    }

    func room(ofStream path: StreamPath) throws -> Room? {
        try self.room(withID: "(SELECT room_id FROM slots WHERE app = $1 AND name = $2)", [path.app, path.name])
    }

    func roomID(ofStream path: StreamPath) throws -> String? {
        try self.first("SELECT room_id FROM slots WHERE app = $1 AND name = $2", [path.app, path.name]) {
            (row: inout RowReader) -> String in
            row.next()
        }
    }

    /// Throws a constraint error when the id or one of the streams is taken.
    func insert(_ room: Room) throws {
        let columns = Self.unlisted + Self.state + Self.listed + Self.policy
        let values =
            Self.unlistedValues(room) + Self.stateValues(room) + Self.listedValues(room) + Self.policyValues(room)
        let marks = (1...columns.count + 2).map { "$\($0)" }.joined(separator: ", ")
        let row = try self.insert(
            "INSERT INTO rooms (id, deadline, \(columns.joined(separator: ", "))) VALUES (\(marks)) RETURNING row",
            StoreArguments([room.id.rawValue, RoomRules.nextDeadline(of: room)] + values))
        let dialect = self.connection.dialect
        try self.run(dialect.insertWords, [row, dialect.words(of: room)])
        for slot in room.slots { try self.insert(slot, of: room.id) }
    }

    private func insert(_ slot: Room.Slot, of id: RoomID) throws {
        try self.run(
            "INSERT INTO slots (room_id, \(Self.slotColumns)) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            StoreArguments([id.rawValue, slot.number, slot.app, slot.name] + Self.slotValues(slot)))
    }

    /// Writes only changed columns, so that indexes of other columns are not touched.
    func update(from old: Room, to new: Room) throws {
        var columns: [String] = []
        var values: [(any StoreConvertible)?] = []
        var bare = (old, new)
        bare.0.slots = []
        bare.1.slots = []
        if bare.0 != bare.1 {
            columns += Self.unlisted
            values += Self.unlistedValues(new)
        }
        if old.state != new.state || old.endedAt != new.endedAt {
            columns += Self.state
            values += Self.stateValues(new)
        }
        let isListedChanged =
            old.owner?.exact != new.owner?.exact || old.title.exact != new.title.exact || old.isPublic != new.isPublic
            || old.deviceUid?.exact != new.deviceUid?.exact || old.createdAt != new.createdAt
        if isListedChanged {
            columns += Self.listed
            values += Self.listedValues(new)
        }
        if old.policy != new.policy {
            columns += Self.policy
            values += Self.policyValues(new)
        }
        let deadline = RoomRules.nextDeadline(of: new)
        if deadline != RoomRules.nextDeadline(of: old) {
            columns.append("deadline")
            values.append(deadline)
        }
        if !columns.isEmpty {
            let changes = columns.enumerated().map { "\($1) = $\($0 + 1)" }.joined(separator: ", ")
            try self.run(
                "UPDATE rooms SET \(changes) WHERE id = $\(columns.count + 1)",
                StoreArguments(values + [new.id.rawValue]))
        }
        if isListedChanged, RoomWords.indexed(old) != RoomWords.indexed(new) {
            let dialect = self.connection.dialect
            try self.run(dialect.updateWords, [dialect.words(of: new), new.id.rawValue])
        }
        try self.updateSlots(from: old, to: new)
    }

    private func updateSlots(from old: Room, to new: Room) throws {
        guard old.slots != new.slots else { return }
        if old.slots.map(\.path) == new.slots.map(\.path) {
            for (old, slot) in zip(old.slots, new.slots) where old != slot {
                try self.run(
                    """
                    UPDATE slots SET sequence = $1, earlier = $2, is_active = $3, away_reason = $4, away_until = $5, forbidden_until = $6,
                        forbid_reason = $7 WHERE app = $8 AND name = $9
                    """, StoreArguments(Self.slotValues(slot) + [slot.app, slot.name]))
            }
        } else {
            try self.run("DELETE FROM slots WHERE room_id = $1", [new.id.rawValue])
            for slot in new.slots { try self.insert(slot, of: new.id) }
        }
    }

    /// Postpones a deadline that its rule did not act on, to avoid endless retries.
    func postpone(_ id: String, to deadline: Int64) throws {
        try self.run("UPDATE rooms SET deadline = $1 WHERE id = $2", [deadline, id])
    }

    func delete(_ room: Room) throws {
        try self.run(self.connection.dialect.deleteWords, [room.id.rawValue])
        try self.run("DELETE FROM slots WHERE room_id = $1", [room.id.rawValue])
        // Deleted by hand: foreign keys are off on this connection, as each would add a lookup to media facts.
        for table in ["members", "talk_settings", "talk_members", "kicks", "board_strokes"] {
            try self.run("DELETE FROM \(table) WHERE room_id = $1", [room.id.rawValue])
        }
        try self.run("DELETE FROM rooms WHERE id = $1", [room.id.rawValue])
    }

    /// Rooms whose deadline has passed, oldest first.
    func dueRooms(now: Int64, limit: Int) throws -> [String] {
        try self.all("SELECT id FROM rooms WHERE deadline <= $1 ORDER BY deadline LIMIT $2", [now, limit]) { row in row.next() }
    }

    /// The earliest deadline of rooms and bans.
    func nextDeadline() throws -> Int64? {
        let deadlines = try self.first(
            """
            SELECT (SELECT deadline FROM rooms WHERE deadline IS NOT NULL ORDER BY deadline LIMIT 1),
                (SELECT resume_at FROM bans ORDER BY resume_at LIMIT 1)
            """
        ) { (row: inout RowReader) -> [Int64?] in [row.optional(), row.optional()] }
        return deadlines?.compactMap { $0 }.min()
    }

    func raisePeak(_ id: RoomID, to viewers: Int) throws {
        try self.run(
            "UPDATE rooms SET peak = $1 WHERE id = $2 AND peak < $1 AND state NOT IN ('expired', 'closed')", [viewers, id.rawValue])
    }

    /// Rooms that a stopped server left in use or awaiting heartbeats, in order of creation.
    func roomsToRestart(after row: Int64, limit: Int) throws -> [(row: Int64, id: String)] {
        try self.all(
            """
            SELECT row, id FROM rooms
            WHERE row > $1 AND state NOT IN ('expired', 'closed') AND (
                state IN ('live', 'interrupted') OR heartbeat_at IS NOT NULL OR owner_seen_at IS NOT NULL
                OR id IN (SELECT room_id FROM slots WHERE sequence IS NOT NULL))
                AND id NOT IN (SELECT room_id FROM pushes WHERE ended_at IS NULL)
            ORDER BY row LIMIT $2
            """, [row, limit]
        ) { row in (row.next(), row.next()) }
    }

    /// Streams of closed rooms, which nobody may play.
    /// Names of the devices of all rooms.
    func eachDevice(_ body: @escaping (String) -> Void) throws {
        try self.connection.query("SELECT device_uid FROM rooms WHERE device_uid IS NOT NULL", []) { row in
            if let name = row.text(at: 0) { body(name) }
            return true
        }
    }

    func closedStreams() throws -> [StreamPath] {
        try self.all("SELECT s.app, s.name FROM rooms r JOIN slots s ON s.room_id = r.id WHERE r.state = 'closed'") { row in
            StreamPath(app: row.next(), name: row.next())
        }
    }
}
