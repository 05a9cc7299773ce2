/// The first schema in SQLite's words. Rows that belong to a room are deleted by the statements that delete it: no table refers to another.
enum FirstSchemaOfSQLite {
    static let text =
        [
            Self.rooms, Self.streams, Self.events, Self.access, Self.recordings, Self.talk, Self.targets, Self.records, Self.apps,
        ].joined(separator: "\n")

    /// Every list order and filter has an index, so that all pages cost the same. Lists without a filter on state or visibility read one
    /// range per value and merge them.
    private static let rooms = """
        CREATE TABLE rooms (
            row INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            instance INTEGER NOT NULL,
            state TEXT NOT NULL,
            reason TEXT NOT NULL,
            owner TEXT,
            title TEXT NOT NULL COLLATE NOCASE,
            custom TEXT NOT NULL,
            is_public INTEGER NOT NULL,
            device_uid TEXT,
            is_ad_hoc INTEGER NOT NULL,
            creator TEXT,
            created_at INTEGER NOT NULL,
            waiting_since INTEGER NOT NULL,
            duration_from INTEGER,
            live_since INTEGER,
            interrupted_at INTEGER,
            interruption_ends INTEGER,
            kept_until INTEGER,
            ended_at INTEGER,
            heartbeat_at INTEGER,
            owner_seen_at INTEGER,
            owner_away_since INTEGER,
            forbidden_until INTEGER,
            forbid_reason TEXT,
            peak INTEGER NOT NULL,
            likes INTEGER NOT NULL,
            members INTEGER NOT NULL,
            last_event INTEGER NOT NULL,
            deadline INTEGER,
            policy_neverStarted INTEGER NOT NULL,
            policy_grace INTEGER NOT NULL,
            policy_cleanStop INTEGER NOT NULL,
            policy_mediaIdle INTEGER NOT NULL,
            policy_idleGrace INTEGER NOT NULL,
            policy_pauseGrace INTEGER NOT NULL,
            policy_heartbeat INTEGER NOT NULL,
            policy_heartbeatMisses INTEGER NOT NULL,
            policy_ownerOffline INTEGER NOT NULL,
            policy_maxDuration INTEGER NOT NULL,
            policy_retention INTEGER NOT NULL,
            policy_urlLifetime INTEGER NOT NULL,
            policy_record INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX rooms_created ON rooms(created_at, id);
        CREATE INDEX rooms_title ON rooms(title, id);
        CREATE INDEX rooms_state_created ON rooms(state, is_public, created_at, id);
        CREATE INDEX rooms_state_title ON rooms(state, is_public, title, id);
        CREATE INDEX rooms_state_id ON rooms(state, is_public, id);
        CREATE INDEX rooms_owner_created ON rooms(owner, state, is_public, created_at, id) WHERE owner IS NOT NULL;
        CREATE INDEX rooms_owner_title ON rooms(owner, state, is_public, title, id) WHERE owner IS NOT NULL;
        CREATE INDEX rooms_owner_id ON rooms(owner, state, is_public, id) WHERE owner IS NOT NULL;
        CREATE INDEX rooms_deadline ON rooms(deadline) WHERE deadline IS NOT NULL;
        CREATE INDEX rooms_device ON rooms(device_uid, ended_at) WHERE device_uid IS NOT NULL;
        -- A device has one open room.
        CREATE UNIQUE INDEX rooms_open_device ON rooms(device_uid)
            WHERE device_uid IS NOT NULL AND state NOT IN ('expired', 'closed');

        -- How many rooms there are of each kind: owner '' counts all.
        CREATE TABLE room_counts (
            owner TEXT NOT NULL, state TEXT NOT NULL, is_public INTEGER NOT NULL, n INTEGER NOT NULL,
            PRIMARY KEY (owner, state, is_public)
        ) STRICT, WITHOUT ROWID;
        CREATE TRIGGER rooms_count_insert AFTER INSERT ON rooms BEGIN
            INSERT INTO room_counts VALUES ('', NEW.state, NEW.is_public, 1)
                ON CONFLICT DO UPDATE SET n = n + 1;
            INSERT INTO room_counts SELECT NEW.owner, NEW.state, NEW.is_public, 1 WHERE NEW.owner IS NOT NULL
                ON CONFLICT DO UPDATE SET n = n + 1;
        END;
        CREATE TRIGGER rooms_count_delete AFTER DELETE ON rooms BEGIN
            UPDATE room_counts SET n = n - 1 WHERE owner = '' AND state = OLD.state AND is_public = OLD.is_public;
            UPDATE room_counts SET n = n - 1 WHERE owner = OLD.owner AND state = OLD.state AND is_public = OLD.is_public;
            DELETE FROM room_counts WHERE owner = OLD.owner AND state = OLD.state AND is_public = OLD.is_public AND n = 0;
        END;
        CREATE TRIGGER rooms_count_update AFTER UPDATE OF state, is_public, owner ON rooms
            WHEN OLD.state <> NEW.state OR OLD.is_public <> NEW.is_public OR OLD.owner IS NOT NEW.owner
        BEGIN
            UPDATE room_counts SET n = n - 1 WHERE owner = '' AND state = OLD.state AND is_public = OLD.is_public;
            UPDATE room_counts SET n = n - 1 WHERE owner = OLD.owner AND state = OLD.state AND is_public = OLD.is_public;
            DELETE FROM room_counts WHERE owner = OLD.owner AND state = OLD.state AND is_public = OLD.is_public AND n = 0;
            INSERT INTO room_counts VALUES ('', NEW.state, NEW.is_public, 1)
                ON CONFLICT DO UPDATE SET n = n + 1;
            INSERT INTO room_counts SELECT NEW.owner, NEW.state, NEW.is_public, 1 WHERE NEW.owner IS NOT NULL
                ON CONFLICT DO UPDATE SET n = n + 1;
        END;

        -- Words of title, id, owner and device, split by RoomWords; rowid is rooms.row.
        CREATE VIRTUAL TABLE room_words USING fts5(
            words, tokenize = "unicode61 remove_diacritics 2", prefix = '1 2 3 4 5 6', columnsize = 0);

        CREATE TABLE members (
            room_id TEXT NOT NULL, user TEXT NOT NULL, nick TEXT NOT NULL, joined_at INTEGER NOT NULL, seen_at INTEGER NOT NULL,
            PRIMARY KEY (room_id, user)
        ) STRICT, WITHOUT ROWID;
        """

    /// Streams of rooms, pushes and bans.
    private static let streams = """
        CREATE TABLE slots (
            app TEXT NOT NULL,
            name TEXT NOT NULL,
            room_id TEXT NOT NULL,
            number INTEGER NOT NULL,
            sequence INTEGER,
            earlier TEXT NOT NULL,
            is_active INTEGER NOT NULL,
            away_reason TEXT,
            away_until INTEGER,
            forbidden_until INTEGER,
            forbid_reason TEXT,
            PRIMARY KEY (app, name)
        ) STRICT, WITHOUT ROWID;
        CREATE UNIQUE INDEX slots_room ON slots(room_id, number);
        CREATE INDEX slots_taken ON slots(room_id) WHERE sequence IS NOT NULL;

        CREATE TABLE pushes (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT,
            app TEXT NOT NULL,
            name TEXT NOT NULL,
            room_id TEXT NOT NULL,
            slot INTEGER NOT NULL,
            client_address TEXT NOT NULL,
            session INTEGER NOT NULL,
            parameters TEXT NOT NULL,
            query TEXT NOT NULL,
            started_at INTEGER NOT NULL,
            media_at INTEGER,
            ended_at INTEGER,
            how_ended TEXT,
            width INTEGER,
            height INTEGER,
            video_codec TEXT,
            audio_codec TEXT
        ) STRICT;
        CREATE INDEX pushes_started ON pushes(started_at, sequence);
        CREATE INDEX pushes_stream ON pushes(app, name, started_at, sequence);
        CREATE INDEX pushes_open ON pushes(sequence) WHERE ended_at IS NULL;
        CREATE INDEX pushes_ended ON pushes(ended_at) WHERE ended_at IS NOT NULL;

        -- All bans, those of rooms' slots too (which hold them again, for the rules).
        CREATE TABLE bans (
            app TEXT NOT NULL,
            name TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            resume_at INTEGER NOT NULL,
            reason TEXT NOT NULL,
            PRIMARY KEY (app, name)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX bans_resume ON bans(resume_at);
        """

    private static let events = """
        CREATE TABLE events (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            room_id TEXT,
            number INTEGER NOT NULL,
            kind TEXT NOT NULL,
            instance INTEGER NOT NULL,
            at INTEGER NOT NULL,
            data TEXT NOT NULL,
            app TEXT,
            -- The room's id or the stream's name; tokens with limits see only their events by it.
            subject TEXT
        ) STRICT;
        CREATE INDEX events_room ON events(room_id, id);
        CREATE INDEX events_at ON events(at);

        -- A delivery holds its event, which may be forgotten before it. Of each lane (a target's deliveries of one room) the oldest
        -- pending one is the head: the only one that may be sent.
        CREATE TABLE webhook_deliveries (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            url TEXT NOT NULL,
            format TEXT NOT NULL,
            lane TEXT NOT NULL,
            event_id INTEGER NOT NULL,
            room_id TEXT,
            number INTEGER NOT NULL,
            kind TEXT NOT NULL,
            instance INTEGER NOT NULL,
            at INTEGER NOT NULL,
            data TEXT NOT NULL,
            state TEXT NOT NULL,
            is_head INTEGER NOT NULL,
            attempts INTEGER NOT NULL,
            due_at INTEGER NOT NULL,
            last_status INTEGER,
            last_error TEXT,
            last_attempt_at INTEGER,
            duration_ms INTEGER,
            delivered_at INTEGER,
            -- Where a pending delivery's age starts, if not at its event: after a move of the clock, or when it was queued again.
            kept_from INTEGER,
            app TEXT,
            subject TEXT,
            redelivered_as INTEGER
        ) STRICT;
        CREATE INDEX webhook_deliveries_lane ON webhook_deliveries(url, format, lane, id) WHERE state = 'pending';
        CREATE INDEX webhook_deliveries_heads ON webhook_deliveries(url, format, due_at, id) WHERE is_head = 1;
        CREATE INDEX webhook_deliveries_due ON webhook_deliveries(due_at) WHERE is_head = 1;
        CREATE INDEX webhook_deliveries_state ON webhook_deliveries(state, id);
        CREATE INDEX webhook_deliveries_room ON webhook_deliveries(room_id, id);
        CREATE INDEX webhook_deliveries_at ON webhook_deliveries(state, at);
        """

    /// A key's secret checks signatures and a webhook's signs deliveries, so they cannot be hashes: they are as secret as the keys beside this file.
    private static let access = """
        CREATE TABLE tokens (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT NOT NULL,
            role TEXT NOT NULL,
            hash TEXT NOT NULL UNIQUE,
            created_at INTEGER NOT NULL,
            revoked_at INTEGER,
            -- Apps and rooms that the token is limited to, comma-separated; empty: none.
            apps TEXT NOT NULL DEFAULT '',
            rooms TEXT NOT NULL DEFAULT ''
        ) STRICT;
        -- A name in an event tells one valid token.
        CREATE UNIQUE INDEX tokens_name ON tokens(name) WHERE revoked_at IS NULL;

        CREATE TABLE answers (
            token_id INTEGER NOT NULL,
            key TEXT NOT NULL,
            fingerprint TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            status INTEGER,
            body TEXT,
            PRIMARY KEY (token_id, key)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX answers_created ON answers(created_at);

        CREATE TABLE access_keys (
            id TEXT NOT NULL PRIMARY KEY,
            name TEXT NOT NULL,
            role TEXT NOT NULL,
            secret TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            revoked_at INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE UNIQUE INDEX access_keys_name ON access_keys(name) WHERE revoked_at IS NULL;
        """

    /// The files of each task, numbered by part; unfinished recordings that calls began; pictures.
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
        CREATE INDEX recordings_deleted ON recordings(started_at) WHERE state = 'deleted';

        CREATE TABLE recording_orders (
            task TEXT NOT NULL PRIMARY KEY,
            app TEXT NOT NULL,
            name TEXT NOT NULL,
            room_id TEXT,
            slot INTEGER NOT NULL,
            started_at INTEGER NOT NULL,
            is_started INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

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

    /// Talk channels: settings of rooms, and of participants by the API. Kicked users who may not return yet.
    private static let talk = """
        CREATE TABLE talk_settings (
            room_id TEXT NOT NULL PRIMARY KEY,
            mode TEXT NOT NULL,
            talkers INTEGER NOT NULL,
            listeners INTEGER NOT NULL,
            max_open INTEGER NOT NULL,
            max_hold_ms INTEGER NOT NULL,
            preempts INTEGER NOT NULL,
            ducks INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE talk_members (
            room_id TEXT NOT NULL,
            user TEXT NOT NULL,
            muted INTEGER NOT NULL,
            gain_db REAL NOT NULL,
            banned_until INTEGER,
            set_at INTEGER NOT NULL,
            PRIMARY KEY (room_id, user)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE kicks (
            room_id TEXT NOT NULL,
            user TEXT NOT NULL,
            until INTEGER NOT NULL,
            PRIMARY KEY (room_id, user)
        ) STRICT, WITHOUT ROWID;
        """

    /// Other servers and back ends. A link's URL holds the other server's credential. A delivery of a webhook has `webhook:ID` for a URL.
    private static let targets = """
        CREATE TABLE links (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            direction TEXT NOT NULL,
            app TEXT NOT NULL,
            name TEXT NOT NULL,
            url TEXT NOT NULL,
            on_demand INTEGER NOT NULL,
            created_at INTEGER NOT NULL
        ) STRICT;

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
        """

    /// The audit log, and the mark of the clock of rooms.
    private static let records = """
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
            is_refused INTEGER NOT NULL,
            -- The tool that the caller used.
            via TEXT
        ) STRICT;
        CREATE INDEX audit_at ON audit(at);
        CREATE INDEX audit_room ON audit(room_id, id) WHERE room_id IS NOT NULL;
        CREATE INDEX audit_stream ON audit(stream, id) WHERE stream IS NOT NULL;
        CREATE INDEX audit_token ON audit(token, id);
        CREATE INDEX audit_operation ON audit(operation, id);
        CREATE INDEX audit_result ON audit(result, id);
        CREATE INDEX audit_refused ON audit(is_refused, id);

        CREATE TABLE clock (
            id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
            boot_id TEXT,
            steady_ms INTEGER NOT NULL,
            room_ms INTEGER NOT NULL
        ) STRICT;
        """

    /// The state of apps' gatherings: members, places in queues, tickets. Strokes on whiteboards, by the room of their class.
    private static let apps = """
        CREATE TABLE gatherings (
            id TEXT NOT NULL PRIMARY KEY,
            kind TEXT NOT NULL,
            room_id TEXT NOT NULL,
            state TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            changed_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE board_strokes (
            room_id TEXT NOT NULL,
            board TEXT NOT NULL,
            number INTEGER NOT NULL,
            page INTEGER NOT NULL,
            stroke TEXT NOT NULL,
            PRIMARY KEY (room_id, board, number)
        ) STRICT;
        """
}
