import GRDB

/// A connection to SQLite.
struct SQLiteStoreConnection: StoreConnection {
    let database: Database
    var dialect: StoreDialect { .sqlite }
    /// SQLite has one writer at a time.

    init(_ database: Database) { self.database = database }

    func run(_ sql: String, _ arguments: StoreArguments) throws {
        assert(StoreDialect.isNumberedByFirstUse(sql), sql)
        try self.database.cachedStatement(sql: sql).execute(arguments: StatementArguments(arguments))
    }

    func change(_ sql: String, _ arguments: StoreArguments) throws -> Int {
        try self.run(sql, arguments)
        return self.database.changesCount
    }

    func query(_ sql: String, _ arguments: StoreArguments, _ body: (any StoreRow) throws -> Bool) throws {
        assert(StoreDialect.isNumberedByFirstUse(sql), sql)
        let rows = try Row.fetchCursor(self.database.cachedStatement(sql: sql), arguments: StatementArguments(arguments))
        while let row = try rows.next() {
            guard try body(row) else { return }
        }
    }

    func expect(_ sql: String, _ arguments: StoreArguments, _ body: @escaping (any StoreRow) throws -> Bool) throws {
        try self.query(sql, arguments, body)
    }

    func runScript(_ sql: String) throws { try self.database.execute(sql: sql) }

    var hasUnanswered: Bool { false }
    func flush() {}
    var isInTransaction: Bool { self.database.isInsideTransaction }

    func isFatal(_ error: any Error) -> Bool {
        guard let code = (error as? DatabaseError)?.resultCode else { return false }
        return [
            .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_NOMEM, .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_BUSY, .SQLITE_INTERRUPT, .SQLITE_READONLY,
        ]
        .contains(code)
    }
}

extension StoreAccess {
    init(_ database: Database) { self.init(SQLiteStoreConnection(database)) }

    /// Opens a database file that nobody uses, reads it and closes it. A journal beside it is rolled back. Blocks.
    static func reading<T>(_ path: String, _ body: (StoreAccess) throws -> T) throws -> T {
        let queue = try DatabaseQueue(path: path)
        let result = try queue.read { try body(StoreAccess($0)) }
        try queue.close()
        return result
    }
}

/// The schema in a file. GRDB notes in the table `grdb_migrations` which steps it has.
enum SQLiteSchema {
    static func migrate(_ pool: DatabasePool, _ steps: [StoreSchema.Step] = StoreSchema.steps) throws {
        var migrator = DatabaseMigrator()
        for (index, step) in steps.enumerated() {
            migrator.registerMigration("\(index + 1)", foreignKeyChecks: .immediate) { db in
                try db.execute(sql: step.sqlite)
                // The random id by which a write-ahead log is known to belong to this file.
                if index == 0 { try db.execute(sql: "PRAGMA user_version = \(Int32.random(in: 1...Int32.max))") }
            }
        }
        try migrator.migrate(pool)
    }

    static func state(_ db: Database, known: Int = StoreSchema.version) throws -> StoreSchema.State {
        let notes = "grdb_migrations"
        let applied = try db.tableExists(notes) ? String?.fetchAll(db, sql: "SELECT identifier FROM \(notes)").compactMap(\.self) : []
        let tables = #"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name <> $1 AND name NOT LIKE 'sqlite\_%' ESCAPE '\'"#
        let others = try Int.fetchOne(db, sql: tables, arguments: [notes]) ?? 0
        return StoreSchema.State(applied: Set(applied), hasTables: others > 0, known: known)
    }

    /// Throws where the tables are not this program's.
    static func check(_ db: Database, of path: String, known: Int = StoreSchema.version) throws {
        if let objection = StoreSchema.objection(to: try self.state(db, known: known), in: path, isDatabase: false) { throw objection }
    }
}

extension Row: StoreRow {
    package func integer(at column: Int) -> Int64? { self[column] }
    package func real(at column: Int) -> Double? { self[column] }
    package func text(at column: Int) -> String? { self[column] }
}

extension StatementArguments {
    init(_ arguments: StoreArguments) {
        self.init(
            arguments.values.map { value -> (any DatabaseValueConvertible)? in
                switch value {
                case .null: nil
                case .integer(let number): number
                case .real(let number): number
                case .text(let text): text
                }
            })
    }
}
