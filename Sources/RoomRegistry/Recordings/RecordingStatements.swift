import Rooms
import Store

/// Recordings as rows.
extension StoreAccess {
    private static let recordingColumns = """
        row, id, task, part, app, name, room_id, slot, state, reason, file, started_at, ended_at, duration_ms, bytes, width, height, video_codec,
        audio_codec, dropped, is_seekable
        """

    private static func recording(_ row: inout RowReader) throws -> Recording {
        let number: Int64 = row.next()
        let id: String = row.next()
        let taskID: String = row.next()
        let part: Int = row.next()
        let path = StreamPath(app: row.next(), name: row.next())
        let room: String? = row.optional()
        let task = RecordingTask(id: taskID, path: path, roomID: room.map(RoomID.init(stored:)), slot: row.next())
        let state = try row.word(RecordingState.self)
        let reason: String? = row.optional()
        let file: String = row.next()
        let startedAt: Int64 = row.next()
        let endedAt: Int64? = row.optional()
        let durationMs: Int64 = row.next()
        let bytes: Int64 = row.next()
        let media = MediaSummary(
            width: row.optional(), height: row.optional(), videoCodec: row.optional(), audioCodec: row.optional())
        var recording = Recording(id: id, task: task, part: part, file: file, startedAt: startedAt, media: media, row: number)
        recording.state = state
        recording.reason = reason.flatMap(RecordingEnd.init(rawValue:))
        recording.endedAt = endedAt
        recording.durationMs = durationMs
        recording.bytes = bytes
        recording.droppedFrames = row.next()
        recording.isSeekable = row.next()
        return recording
    }

    func recording(_ id: String) throws -> Recording? {
        try self.first("SELECT \(Self.recordingColumns) FROM recordings WHERE id = $1", [id]) { row in try Self.recording(&row) }
    }

    func insert(_ recording: Recording) throws {
        try self.run(
            """
            INSERT INTO recordings (id, task, part, app, name, room_id, slot, state, file, started_at, duration_ms, bytes, video_codec, audio_codec,
                width, height, dropped, is_seekable)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
            """,
            [
                recording.id, recording.task.id, recording.part, recording.task.path.app, recording.task.path.name,
                recording.task.roomID?.rawValue, recording.task.slot, recording.state.rawValue, recording.file, recording.startedAt,
                recording.durationMs, recording.bytes, recording.media.videoCodec, recording.media.audioCodec, recording.media.width,
                recording.media.height, recording.droppedFrames, recording.isSeekable,
            ])
    }

    /// Writes the columns that may change.
    func update(_ recording: Recording) throws {
        try self.run(
            """
            UPDATE recordings SET state = $1, reason = $2, ended_at = $3, duration_ms = $4, bytes = $5, dropped = $6, is_seekable = $7 WHERE id = $8
            """,
            [
                recording.state.rawValue, recording.reason?.rawValue, recording.endedAt, recording.durationMs, recording.bytes,
                recording.droppedFrames, recording.isSeekable, recording.id,
            ])
    }

    /// Newest first.
    func recordings(_ query: RecordingQuery) throws -> [Recording] {
        let dialect = self.connection.dialect
        var filter = StoreFilter()
        filter.and("row < \(filter.mark(query.after ?? .max))")
        if let room = query.room { filter.and("room_id = \(filter.mark(room))") }
        if let app = query.app {
            filter.and("app = \(filter.mark(app))")
            if let name = query.name { filter.and("name = \(filter.mark(name))") }
        }
        // A room or stream has few recordings, so its index is used first.
        let isNarrow = query.room != nil || query.app != nil
        if let state = query.state {
            filter.and("\(isNarrow ? dialect.unindexed("state") : "state") = \(filter.mark(state.rawValue))")
        } else {
            filter.and("\(dialect.unindexed("state")) <> 'deleted'")
        }
        filter.and(query.scope, app: "recordings.app", name: "recordings.name", room: "recordings.room_id")
        return try self.all(
            "SELECT \(Self.recordingColumns) FROM recordings WHERE \(filter.sql) ORDER BY row DESC LIMIT \(filter.mark(query.limit))",
            filter.arguments
        ) { row in try Self.recording(&row) }
    }

    /// In these states, oldest first.
    func recordings(in states: [RecordingState], after row: Int64, limit: Int) throws -> [Recording] {
        var filter = StoreFilter()
        filter.and("state IN (\(filter.marks(states.map(\.rawValue)))) AND row > \(filter.mark(row)) AND \(self.isMine)")
        return try self.all(
            "SELECT \(Self.recordingColumns) FROM recordings WHERE \(filter.sql) ORDER BY row LIMIT \(filter.mark(limit))", filter.arguments
        ) { row in try Self.recording(&row) }
    }

    /// Ended before this time, oldest first.
    func recordings(endedBefore ms: Int64, limit: Int) throws -> [Recording] {
        try self.all(
            """
            SELECT \(Self.recordingColumns) FROM recordings WHERE state IN ('finished', 'failed') AND ended_at < $1 AND \(self.isMine)
            ORDER BY ended_at LIMIT $2
            """, [ms, limit]
        ) { row in try Self.recording(&row) }
    }

    func recordingCount() throws -> Int {
        Int(try self.number("SELECT count(*) FROM recordings WHERE state IN ('finished', 'failed')") ?? 0)
    }

    /// Bytes of all files that are not removed.
    func recordingBytes(scope: TokenScope = .all) throws -> Int64 {
        var filter = StoreFilter()
        filter.and("state <> 'deleted'")
        filter.and(scope, app: "recordings.app", name: "recordings.name", room: "recordings.room_id")
        return try self.number("SELECT sum(bytes) FROM recordings WHERE \(filter.sql)", filter.arguments) ?? 0
    }

    /// How many files a task has.
    func recordingParts(ofTask id: String) throws -> Int {
        Int(try self.number("SELECT count(*) FROM recordings WHERE task = $1", [id]) ?? 0)
    }

    // MARK: - Orders

    func insert(_ order: RecordingOrder) throws {
        try self.run(
            "INSERT INTO recording_orders (task, app, name, room_id, slot, started_at, is_started) VALUES ($1, $2, $3, $4, $5, $6, $7)",
            [
                order.task.id, order.task.path.app, order.task.path.name, order.task.roomID?.rawValue, order.task.slot, order.startedAt,
                order.isStarted,
            ])
    }

    func startRecordingOrder(ofTask id: String) throws { try self.run("UPDATE recording_orders SET is_started = 1 WHERE task = $1", [id]) }

    func hasRecordingOrder(ofTask id: String) throws -> Bool {
        try self.number("SELECT 1 FROM recording_orders WHERE task = $1", [id]) != nil
    }

    func deleteRecordingOrder(ofTask id: String) throws { try self.run("DELETE FROM recording_orders WHERE task = $1", [id]) }

    func recordingOrders() throws -> [RecordingOrder] {
        try self.all(
            """
            SELECT task, app, name, room_id, slot, started_at, (SELECT count(*) FROM recordings r WHERE r.task = o.task), is_started
            FROM recording_orders o ORDER BY started_at, task
            """
        ) { row in
            let id: String = row.next()
            let path = StreamPath(app: row.next(), name: row.next())
            let room: String? = row.optional()
            let task = RecordingTask(id: id, path: path, roomID: room.map(RoomID.init(stored:)), slot: row.next())
            return RecordingOrder(task: task, startedAt: row.next(), parts: row.next(), isStarted: row.next())
        }
    }
}
