import Support

/// The schema in PostgreSQL: SQLite's steps in other words, and tables of its own.
enum PostgresSchema {
    /// The table of the steps that are applied.
    static let table = "earshot_schema"
    /// One node migrates at a time. Any number that no other program in the database uses.
    private static let lock: Int64 = 0x6561_7273_686f_7431

    /// Longest wait for an answer: a step may have to write large tables anew.
    private static let patienceMs: Int64 = 600_000

    /// Brings the schema up to date, on a connection of its own. Throws ``Foreign`` and ``Newer``.
    static func migrate(_ options: PostgresConnection.Options) throws {
        var options = options
        options.patienceMs = self.patienceMs
        let connection = PostgresConnection(options)
        defer { connection.close() }
        try connection.begin()
        let store = StoreAccess(connection)
        try connection.run("SET LOCAL statement_timeout = 0")
        try connection.run("SET LOCAL lock_timeout = 0")
        try connection.run("SELECT pg_advisory_xact_lock(?)", [self.lock])
        let applied = try self.applied(store)
        if applied.isEmpty, try self.tables(store) > 0 { throw Foreign() }
        guard applied.isSubset(of: self.steps.map(\.name)) else { throw Newer() }
        if applied.isEmpty {
            try connection.run(
                "CREATE TABLE \(self.table) (name TEXT PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())")
        }
        let missing = self.steps.filter { !applied.contains($0.name) }
        if missing.contains(where: { !$0.isUnnoticed }), applied.contains(Self.nodesStep), let server = try self.server(store) {
            throw InUse(server: server)
        }
        for step in missing {
            try connection.runDefinitions(step.sql())
            try connection.run("INSERT INTO \(self.table) (name) VALUES (?)", [step.name])
        }
        try connection.commit()
    }

    /// A running server of another process, which would not understand a newer schema.
    private static func server(_ store: StoreAccess) throws -> String? {
        let nodes = try store.all("SELECT name, process FROM nodes WHERE expires_at > clock_timestamp()") {
            (row: inout RowReader) -> (name: String, process: String) in (row.next(), row.next())
        }
        return nodes.first { $0.process != ProcessIdentity.current && !ProcessIdentity.isGone($0.process) }?.name
    }

    struct InUse: Error { let server: String }
    struct Foreign: Error {}
    struct Newer: Error {}

    /// The version of the schema, as ``Migrations/version``; 0 without one.
    static func version(_ store: StoreAccess) throws -> Int {
        try self.applied(store).compactMap { $0.split(separator: " ").first.flatMap { Int($0) } }.max() ?? 0
    }

    private static func applied(_ store: StoreAccess) throws -> Set<String> {
        guard try store.number("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = ?", [self.table]) == 1
        else { return [] }
        return Set(try store.all("SELECT name FROM \(self.table)") { (row: inout RowReader) -> String in row.next() })
    }

    private static func tables(_ store: StoreAccess) throws -> Int64 {
        try store.number("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()") ?? 0
    }

    private struct Step: Sendable {
        let name: String
        /// Running servers of an earlier version work on as before.
        var isUnnoticed = false
        let sql: @Sendable () -> String
    }

    private static let steps: [Step] =
        [Step(name: "0 heads") { heads }] + Migrations.steps.map { step in Step(name: step.name) { translated(step.sql()) } }
        + [Step(name: nodesStep) { nodes }, Step(name: "13 cluster") { cluster }, Step(name: "13 counts", isUnnoticed: true) { counts }]

    private static let nodesStep = "13 nodes"

    // MARK: - PostgreSQL's own

    /// The event counter, the words, and how many rooms there are of each kind, counted by each node for itself: one row for all would make
    /// them wait for each other.
    private static let heads = """
        CREATE TABLE heads (id BIGINT PRIMARY KEY CHECK (id = 1), event BIGINT NOT NULL)
        ;;
        INSERT INTO heads VALUES (1, 0)
        ;;
        CREATE TABLE room_words (row BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)
        ;;
        CREATE INDEX room_words_words ON room_words USING gin (words)
        ;;
        CREATE TABLE room_counts (
            shard BIGINT NOT NULL, owner TEXT COLLATE "C" NOT NULL, state TEXT COLLATE "C" NOT NULL, is_public BIGINT NOT NULL,
            n BIGINT NOT NULL, PRIMARY KEY (owner, state, is_public, shard)
        )
        ;;
        CREATE FUNCTION earshot_count(counted TEXT, its_state TEXT, its_public BIGINT, change BIGINT) RETURNS VOID LANGUAGE sql AS $$
            INSERT INTO room_counts (shard, owner, state, is_public, n)
            VALUES (coalesce(nullif(current_setting('earshot.node', true), ''), '0')::bigint, counted, its_state, its_public, change)
            ON CONFLICT (owner, state, is_public, shard) DO UPDATE SET n = room_counts.n + change;
            -- Owners come and go.
            DELETE FROM room_counts WHERE owner = counted AND owner <> '' AND state = its_state AND is_public = its_public AND n = 0
                AND shard = coalesce(nullif(current_setting('earshot.node', true), ''), '0')::bigint
        $$
        ;;
        CREATE FUNCTION earshot_count_room() RETURNS TRIGGER LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP <> 'INSERT' THEN
                PERFORM earshot_count('', OLD.state, OLD.is_public, -1);
                IF OLD.owner IS NOT NULL THEN PERFORM earshot_count(OLD.owner, OLD.state, OLD.is_public, -1); END IF;
            END IF;
            IF TG_OP <> 'DELETE' THEN
                PERFORM earshot_count('', NEW.state, NEW.is_public, 1);
                IF NEW.owner IS NOT NULL THEN PERFORM earshot_count(NEW.owner, NEW.state, NEW.is_public, 1); END IF;
            END IF;
            RETURN NULL;
        END
        $$
        """

    /// Nodes with their leases, and their fences: a node whose incarnation was raised writes nothing more. The two are apart so that the
    /// renewal of a lease does not wait for a transaction.
    private static let nodes = """
        CREATE TRIGGER rooms_count_insert AFTER INSERT OR DELETE ON rooms FOR EACH ROW EXECUTE FUNCTION earshot_count_room()
        ;;
        CREATE TRIGGER rooms_count_update AFTER UPDATE OF state, is_public, owner ON rooms FOR EACH ROW
            WHEN (OLD.state <> NEW.state OR OLD.is_public <> NEW.is_public OR OLD.owner IS DISTINCT FROM NEW.owner)
            EXECUTE FUNCTION earshot_count_room()
        ;;
        CREATE TABLE nodes (
            number BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
            name TEXT COLLATE "C" NOT NULL UNIQUE,
            process TEXT NOT NULL,
            version TEXT NOT NULL,
            started_at TIMESTAMPTZ NOT NULL,
            expires_at TIMESTAMPTZ NOT NULL
        )
        ;;
        CREATE TABLE fences (node BIGINT PRIMARY KEY, incarnation BIGINT NOT NULL, batch BIGINT NOT NULL)
        ;;
        CREATE FUNCTION earshot_fence(its_node BIGINT, its_incarnation BIGINT, its_batch BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM set_config('earshot.node', its_node::text, true);
            UPDATE fences SET batch = its_batch WHERE node = its_node AND incarnation = its_incarnation;
            IF NOT FOUND THEN RAISE EXCEPTION 'another process has taken this node''s place' USING ERRCODE = '\(PostgresFailure.fenced)'; END IF;
        END
        $$
        """

    /// What several nodes share: signals, the keeper's place, and which node a push or a file belongs to. Their write transactions run one after
    /// the other, by a lock that each takes first: rules see one world, numbers have no gaps, and nobody waits in a circle.
    private static let cluster = """
        ALTER TABLE heads ADD COLUMN signal BIGINT NOT NULL DEFAULT 0
        ;;
        ALTER TABLE nodes ADD COLUMN key TEXT COLLATE "C" NOT NULL DEFAULT '', ADD COLUMN state TEXT COLLATE "C" NOT NULL DEFAULT 'running',
            ADD COLUMN address TEXT
        ;;
        CREATE TABLE signals (
            id BIGINT PRIMARY KEY, node BIGINT NOT NULL, at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(), body TEXT NOT NULL)
        ;;
        CREATE INDEX signals_at ON signals (at)
        ;;
        CREATE TABLE duties (name TEXT PRIMARY KEY, node BIGINT NOT NULL, expires_at TIMESTAMPTZ NOT NULL)
        ;;
        INSERT INTO duties VALUES ('keeper', 0, clock_timestamp())
        ;;
        CREATE FUNCTION earshot_node() RETURNS BIGINT LANGUAGE sql STABLE AS $$
            SELECT coalesce(nullif(current_setting('earshot.node', true), ''), '0')::bigint
        $$
        ;;
        ALTER TABLE pushes ADD COLUMN node BIGINT NOT NULL DEFAULT earshot_node(),
            ADD COLUMN node_identity TEXT, ADD COLUMN node_rank BIGINT
        ;;
        CREATE INDEX pushes_node ON pushes (node) WHERE ended_at IS NULL
        ;;
        ALTER TABLE recordings ADD COLUMN node BIGINT NOT NULL DEFAULT earshot_node()
        ;;
        ALTER TABLE snapshots ADD COLUMN node BIGINT NOT NULL DEFAULT earshot_node()
        ;;
        ALTER TABLE gatherings ADD COLUMN node BIGINT NOT NULL DEFAULT earshot_node()
        ;;
        CREATE OR REPLACE FUNCTION earshot_fence(its_node BIGINT, its_incarnation BIGINT, its_batch BIGINT)
        RETURNS VOID LANGUAGE plpgsql AS $$
        BEGIN
            -- A wave of claims at other nodes may last.
            PERFORM set_config('lock_timeout', '4s', true);
            PERFORM pg_advisory_xact_lock(\(writeLock));
            PERFORM set_config('lock_timeout', '2s', true);
            PERFORM set_config('earshot.node', its_node::text, true);
            UPDATE fences SET batch = its_batch WHERE node = its_node AND incarnation = its_incarnation;
            IF NOT FOUND THEN RAISE EXCEPTION 'another process has taken this node''s place' USING ERRCODE = '\(PostgresFailure.fenced)'; END IF;
        END
        $$
        """

    /// The same counts as before. PostgreSQL plans the statements of a function in SQL at each call, and those of one in PL/pgSQL once (PL/pgSQL, Plan
    /// Caching): that was a quarter of what a change of a room cost it.
    private static let counts = """
        CREATE OR REPLACE FUNCTION earshot_count(counted TEXT, its_state TEXT, its_public BIGINT, change BIGINT)
        RETURNS VOID LANGUAGE plpgsql AS $$
        DECLARE its_shard BIGINT := earshot_node();
        BEGIN
            UPDATE room_counts SET n = n + change
            WHERE owner = counted AND state = its_state AND is_public = its_public AND shard = its_shard;
            IF NOT FOUND THEN
                INSERT INTO room_counts (shard, owner, state, is_public, n)
                VALUES (its_shard, counted, its_state, its_public, change)
                ON CONFLICT (owner, state, is_public, shard) DO UPDATE SET n = room_counts.n + change;
            END IF;
            -- Owners come and go.
            IF counted <> '' THEN
                DELETE FROM room_counts
                WHERE owner = counted AND state = its_state AND is_public = its_public AND n = 0 AND shard = its_shard;
            END IF;
        END
        $$
        """

    /// Any number that no other program in the database uses.
    static let writeLock: Int64 = 0x6561_7273_686f_7433

    // MARK: - Translation

    /// SQLite's definitions in PostgreSQL's words. References to other tables go: SQLite's connections do not check them either, and the
    /// statements delete what belongs to a room.
    private static func translated(_ sql: String) -> String {
        var sql = sql
        func replace(_ pattern: some RegexComponent, _ text: String) { sql.replace(pattern.regex.dotMatchesNewlines(), with: text) }
        replace(/--[^\n]*\n/, "\n")
        replace(/CREATE TABLE room_counts \([^;]*;/, "")
        replace(/CREATE TRIGGER .*?END;/, "")
        replace(/CREATE VIRTUAL TABLE [^;]*;/, "")
        replace(/DELETE FROM room_words [^;]*;/, "")
        replace(/PRAGMA [^;]*;/, "")
        replace(/\) STRICT(, WITHOUT ROWID)?;/, ");")
        replace(/REFERENCES [a-z_]+\([a-z_]+\) ON DELETE CASCADE/, "")
        let letters = ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
        replace(
            /title TEXT NOT NULL COLLATE NOCASE,/,
            """
            title TEXT NOT NULL,
                title_key TEXT GENERATED ALWAYS AS (translate(title, '\(letters.0)', '\(letters.1)')) STORED,
            """)
        replace(/\btitle, id\)/, "title_key, id)")
        replace(/INTEGER PRIMARY KEY AUTOINCREMENT/, "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY")
        replace(/\bINTEGER\b/, "BIGINT")
        replace(/\bREAL\b/, "DOUBLE PRECISION")
        // Compared byte by byte, as SQLite and Swift do, whatever the database's locale is.
        replace(/\bTEXT\b/, #"TEXT COLLATE "C""#)
        replace(/\buser\b/, #""user""#)
        return sql.split(separator: ";").filter { $0.contains { !$0.isWhitespace } }.joined(separator: "\n;;\n")
    }
}
