/// The schema's history: each step is final once released.
enum Migrations {
    /// The newest schema version: the number at the start of its steps' names.
    static let version = 13

    /// A step, which is applied once, in a transaction of its own.
    struct Step: Sendable {
        let name: String
        let sql: @Sendable () -> String

        init(_ name: String, _ sql: @escaping @Sendable @autoclosure () -> String) {
            self.name = name
            self.sql = sql
        }
    }

    private static let first = "1 rooms"

    static let steps: [Step] = [
        Step(first, rooms),
        Step("1 streams", streams),
        Step("1 events", events),
        Step("1 access", access),
        Step("2 recordings", recordings),
        Step("3 relay tasks", relayTasks),
        Step("4 talk", talk),
        Step("5 recording orders", recordingOrders),
        Step("6 snapshots", snapshots),
        Step("7 talk members", talkMembers),
        Step("8 kicks", kicks),
        Step("9 clock", clock + "\nPRAGMA user_version = \(Int32.random(in: 1...Int32.max));"),
        Step("10 audit", audit),
        Step("10 scopes", scopes),
        Step("10 webhooks", webhooks),
        Step("11 keys", keys),
        Step("11 gatherings", gatherings),
        Step("12 board strokes", boardStrokes),
        Step("13 audit tools", auditTools),
    ]

    /// The store's schema version; 0 if it has none yet.
    static func version(_ store: StoreAccess) throws -> Int {
        try self.applied(store).compactMap { $0.split(separator: " ").first.flatMap { Int($0) } }.max() ?? 0
    }

    /// Whether the tables belong to another program.
    static func areForeign(_ store: StoreAccess) throws -> Bool {
        guard try !self.applied(store).contains(self.first) else { return false }
        // A process killed while creating the store may have left only the migrations table.
        let sql =
            #"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name <> 'grdb_migrations' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'"#
        return try store.number(sql) ?? 0 > 0
    }

    /// Whether a newer version has applied steps that this one does not know.
    static func areNewer(_ store: StoreAccess) throws -> Bool {
        try !self.applied(store).isSubset(of: self.steps.map(\.name))
    }

    /// Names of the steps that the store has, of newer versions too.
    private static func applied(_ store: StoreAccess) throws -> Set<String> {
        guard try store.number("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'grdb_migrations'") ?? 0 > 0 else {
            return []
        }
        let names = try store.all("SELECT identifier FROM grdb_migrations") { (row: inout RowReader) -> String? in row.optional() }
        return Set(names.compactMap(\.self))
    }

    /// The tool that the caller used. Null in lines of former versions.
    private static let auditTools = "ALTER TABLE audit ADD COLUMN via TEXT;"

    /// Strokes on whiteboards, by the room of their class. Strokes of a class that has ended belong to nothing.
    private static let boardStrokes = """
        CREATE TABLE board_strokes (
            room_id TEXT NOT NULL REFERENCES rooms(id) ON DELETE CASCADE,
            board TEXT NOT NULL,
            number INTEGER NOT NULL,
            page INTEGER NOT NULL,
            stroke TEXT NOT NULL,
            PRIMARY KEY (room_id, board, number)
        ) STRICT;
        """

    /// Deletes the strokes of rooms and classes that no longer exist.
    static let orphanedStrokes = """
        DELETE FROM board_strokes WHERE room_id NOT IN (SELECT id FROM rooms) OR room_id NOT IN (SELECT room_id FROM gatherings);
        """

    /// Keys that sign requests. The secret checks signatures, so it cannot be a hash; it is as secret as the keys beside this file.
    private static let keys = """
        CREATE TABLE access_keys (
            id TEXT NOT NULL PRIMARY KEY,
            name TEXT NOT NULL,
            role TEXT NOT NULL,
            secret TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            revoked_at INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE UNIQUE INDEX access_keys_name ON access_keys(name) WHERE revoked_at IS NULL;
        CREATE INDEX pushes_ended ON pushes(ended_at) WHERE ended_at IS NOT NULL;
        """

    /// The state of apps' gatherings: members, places in queues, tickets.
    private static let gatherings = """
        CREATE TABLE gatherings (
            id TEXT NOT NULL PRIMARY KEY,
            kind TEXT NOT NULL,
            room_id TEXT NOT NULL,
            state TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            changed_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    /// Targets made by the API. The secret signs their notices, so it cannot be a hash; it is as secret as the keys beside this file. A notice
    /// of theirs has `webhook:ID` for a URL.
    private static let webhooks = """
        CREATE TABLE webhooks (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT NOT NULL,
            url TEXT NOT NULL,
            format TEXT NOT NULL,
            kinds TEXT NOT NULL,
            rooms TEXT NOT NULL,
            is_paused INTEGER NOT NULL,
            secret TEXT NOT NULL,
            created_at INTEGER NOT NULL
        ) STRICT;
        ALTER TABLE outbox ADD COLUMN redelivered_as INTEGER;
        """

    /// Lets tokens with limits see only their events. `subject` is the room's id or the stream's name.
    private static let scopes = """
        ALTER TABLE tokens ADD COLUMN apps TEXT NOT NULL DEFAULT '';
        ALTER TABLE tokens ADD COLUMN rooms TEXT NOT NULL DEFAULT '';
        ALTER TABLE events ADD COLUMN app TEXT;
        ALTER TABLE events ADD COLUMN subject TEXT;
        ALTER TABLE outbox ADD COLUMN app TEXT;
        ALTER TABLE outbox ADD COLUMN subject TEXT;
        UPDATE events SET subject = room_id,
            app = (SELECT s.app FROM slots s WHERE s.room_id = events.room_id AND s.number = 1) WHERE room_id IS NOT NULL;
        UPDATE outbox SET subject = room_id,
            app = (SELECT s.app FROM slots s WHERE s.room_id = outbox.room_id AND s.number = 1) WHERE room_id IS NOT NULL;
        """

    private static let audit = """
        CREATE TABLE audit (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            at INTEGER NOT NULL,
            token_id INTEGER,
            token TEXT,
            token_hash TEXT,
            address TEXT NOT NULL,
            request_id TEXT NOT NULL,
            operation TEXT NOT NULL,
            room_id TEXT,
            stream TEXT,
            object TEXT,
            result TEXT NOT NULL,
            status INTEGER NOT NULL,
            before TEXT,
            after TEXT,
            is_refused INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX audit_at ON audit(at);
        CREATE INDEX audit_room ON audit(room_id, id) WHERE room_id IS NOT NULL;
        CREATE INDEX audit_stream ON audit(stream, id) WHERE stream IS NOT NULL;
        CREATE INDEX audit_token ON audit(token, id);
        CREATE INDEX audit_operation ON audit(operation, id);
        CREATE INDEX audit_result ON audit(result, id);
        CREATE INDEX audit_refused ON audit(is_refused, id);
        """

    private static let talk = """
        CREATE TABLE talk_settings (
            room_id TEXT NOT NULL PRIMARY KEY REFERENCES rooms(id) ON DELETE CASCADE,
            mode TEXT NOT NULL,
            talkers INTEGER NOT NULL,
            listeners INTEGER NOT NULL,
            max_open INTEGER NOT NULL,
            max_hold_ms INTEGER NOT NULL,
            preempts INTEGER NOT NULL,
            ducks INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    /// API settings for participants of talk channels.
    private static let talkMembers = """
        CREATE TABLE talk_members (
            room_id TEXT NOT NULL REFERENCES rooms(id) ON DELETE CASCADE,
            user TEXT NOT NULL,
            muted INTEGER NOT NULL,
            gain_db REAL NOT NULL,
            banned_until INTEGER,
            set_at INTEGER NOT NULL,
            PRIMARY KEY (room_id, user)
        ) STRICT, WITHOUT ROWID;
        """

    /// Adds the clock's mark and `kept_from`, where pending notices' age starts after a clock move. Adds indexes that find old rows in any
    /// order of arrival, and deletes what removed rooms left behind.
    private static let clock = """
        CREATE TABLE clock (
            id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
            boot_id TEXT,
            steady_ms INTEGER NOT NULL,
            room_ms INTEGER NOT NULL
        ) STRICT;
        ALTER TABLE outbox ADD COLUMN kept_from INTEGER;
        CREATE INDEX events_at ON events(at);
        CREATE INDEX outbox_at ON outbox(state, at);
        CREATE INDEX recordings_deleted ON recordings(started_at) WHERE state = 'deleted';
        \(orphans)
        \(StoreDialect.sqlite.orphanedWords)
        """

    /// Deletes rows of rooms that no longer exist.
    static let orphans = """
        DELETE FROM talk_settings WHERE room_id NOT IN (SELECT id FROM rooms);
        DELETE FROM talk_members WHERE room_id NOT IN (SELECT id FROM rooms);
        DELETE FROM kicks WHERE room_id NOT IN (SELECT id FROM rooms);
        DELETE FROM members WHERE room_id NOT IN (SELECT id FROM rooms);
        DELETE FROM slots WHERE room_id NOT IN (SELECT id FROM rooms);
        """

    /// Kicked users who may not return yet.
    private static let kicks = """
        CREATE TABLE kicks (
            room_id TEXT NOT NULL REFERENCES rooms(id) ON DELETE CASCADE,
            user TEXT NOT NULL,
            until INTEGER NOT NULL,
            PRIMARY KEY (room_id, user)
        ) STRICT, WITHOUT ROWID;
        """

    /// Unfinished recordings that calls began.
    private static let recordingOrders = """
        ALTER TABLE rooms ADD COLUMN policy_record INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE recording_orders (
            task TEXT NOT NULL PRIMARY KEY,
            app TEXT NOT NULL,
            name TEXT NOT NULL,
            room_id TEXT,
            slot INTEGER NOT NULL,
            started_at INTEGER NOT NULL,
            is_started INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    private static let snapshots = """
        CREATE TABLE snapshots (
            row INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            app TEXT NOT NULL,
            name TEXT NOT NULL,
            room_id TEXT NOT NULL,
            slot INTEGER NOT NULL,
            file TEXT NOT NULL,
            taken_at INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            width INTEGER NOT NULL,
            height INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX snapshots_stream ON snapshots(app, name, row);
        CREATE INDEX snapshots_room ON snapshots(room_id, row);
        CREATE INDEX snapshots_taken ON snapshots(taken_at, row);
        """

    /// The URL holds the other server's credential. It is as secret as the keys beside this file.
    private static let relayTasks = """
        CREATE TABLE relay_tasks (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            direction TEXT NOT NULL,
            app TEXT NOT NULL,
            name TEXT NOT NULL,
            url TEXT NOT NULL,
            on_demand INTEGER NOT NULL,
            created_at INTEGER NOT NULL
        ) STRICT;
        """

    /// The files of each task so far, numbered by part.
    private static let recordings = """
        CREATE TABLE recordings (
            row INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            task TEXT NOT NULL,
            part INTEGER NOT NULL,
            app TEXT NOT NULL,
            name TEXT NOT NULL,
            room_id TEXT,
            slot INTEGER NOT NULL,
            state TEXT NOT NULL,
            reason TEXT,
            file TEXT NOT NULL,
            started_at INTEGER NOT NULL,
            ended_at INTEGER,
            duration_ms INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            video_codec TEXT,
            audio_codec TEXT,
            width INTEGER,
            height INTEGER,
            dropped INTEGER NOT NULL,
            is_seekable INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX recordings_task ON recordings(task, part);
        CREATE INDEX recordings_room ON recordings(room_id, row) WHERE room_id IS NOT NULL;
        CREATE INDEX recordings_stream ON recordings(app, name, row);
        CREATE INDEX recordings_state ON recordings(state, row);
        CREATE INDEX recordings_ended ON recordings(ended_at) WHERE state IN ('finished', 'failed');
        """
}
