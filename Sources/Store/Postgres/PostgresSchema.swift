import Support

/// The schema in a PostgreSQL database. A table of its own notes which steps it has.
enum PostgresSchema {
    static let table = "earshot_schema"
    /// One node migrates at a time. Any number that no other program in the database uses.
    private static let lock: Int64 = 0x6561_7273_686f_7431

    /// Longest wait for an answer: a step may have to write large tables anew.
    private static let patienceMs: Int64 = 600_000

    /// Brings the schema up to date, on a connection of its own. Throws ``Unusable`` and ``InUse``.
    static func migrate(_ options: PostgresConnection.Options, _ steps: [StoreSchema.Step] = StoreSchema.steps) throws {
        var options = options
        options.patienceMs = self.patienceMs
        let connection = PostgresConnection(options)
        defer { connection.close() }
        try connection.begin()
        let store = StoreAccess(connection)
        try connection.run("SET LOCAL statement_timeout = 0")
        try connection.run("SET LOCAL lock_timeout = 0")
        try connection.run("SELECT pg_advisory_xact_lock($1)", [self.lock])
        let state = try self.state(store, known: steps.count)
        switch state {
        case .empty:
            try connection.run(
                "CREATE TABLE IF NOT EXISTS \(self.table) (name TEXT PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())")
        case .version(let version):
            if steps[version...].contains(where: { !$0.isUnnoticed }), let server = try self.server(store) { throw InUse(server: server) }
        case .newer, .unreleased, .foreign: throw Unusable(state: state)
        }
        for (index, step) in steps.enumerated().dropFirst(state.number) {
            try connection.runDefinitions(step.postgres)
            try connection.run("INSERT INTO \(self.table) (name) VALUES ($1)", ["\(index + 1)"])
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
    /// Nothing was changed.
    struct Unusable: Error { let state: StoreSchema.State }

    static func state(_ store: StoreAccess, known: Int = StoreSchema.version) throws -> StoreSchema.State {
        let tables = try store.all("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()") {
            (row: inout RowReader) -> String in row.next()
        }
        var applied: [String] = []
        if tables.contains(self.table) {
            applied = try store.all("SELECT name FROM \(self.table)") { (row: inout RowReader) -> String in row.next() }
        }
        return StoreSchema.State(applied: Set(applied), hasTables: tables.contains { $0 != self.table }, known: known)
    }
}
