import GRDB

/// The open file of statistics: one writer, and readers on queues of their own. Only this file uses GRDB. Writing blocks; any thread.
final class StatisticsFile: Sendable {
    private let pool: DatabasePool

    /// Opens the file and calls `prepare` in a transaction, which makes the tables.
    init(path: String, prepare: (StatisticsConnection) throws -> Void) throws {
        var configuration = Configuration()
        configuration.label = "earshot.statistics"
        configuration.maximumReaderCount = 2
        configuration.busyMode = .timeout(1)
        configuration.prepareDatabase { db in
            // A power cut may take the last batches, but does not damage the file.
            try db.execute(sql: "PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -4000")
        }
        self.pool = try DatabasePool(path: path, configuration: configuration)
        try self.pool.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA journal_size_limit = 16777216")
            try db.inTransaction(.immediate) {
                try prepare(StatisticsConnection(database: db))
                return .commit
            }
        }
    }

    /// Reads the whole file; throws when it is damaged.
    func check() throws {
        let found = try self.pool.writeWithoutTransaction { try String.fetchOne($0, sql: "PRAGMA quick_check(1)") }
        guard let found, found != "ok" else { return }
        throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: found.split(separator: "\n").joined(separator: " "))
    }

    /// Runs one transaction.
    func write<Value>(_ body: (StatisticsConnection) throws -> Value) throws -> Value {
        try self.pool.write { try body(StatisticsConnection(database: $0)) }
    }

    /// Reads committed rows.
    func read<Value: Sendable>(_ body: @escaping @Sendable (StatisticsConnection) throws -> Value) async throws -> Value {
        try await self.pool.read { try body(StatisticsConnection(database: $0)) }
    }

    /// Limits the file's size, in pages of 4 KiB.
    func limitPages(_ pages: Int) throws {
        try self.pool.writeWithoutTransaction { _ = try Int.fetchOne($0, sql: "PRAGMA max_page_count = \(pages)") }
    }

    func close() throws { try self.pool.close() }

    // MARK: Errors

    /// Whether the file is damaged or not a database.
    static func isDamage(_ error: any Error) -> Bool {
        guard let code = (error as? DatabaseError)?.resultCode else { return false }
        return code == .SQLITE_CORRUPT || code == .SQLITE_NOTADB
    }

    /// Leaves out the statement and its values.
    static func describe(_ error: any Error) -> String {
        guard let error = error as? DatabaseError else { return "\(error)" }
        return "SQLite \(error.extendedResultCode.rawValue): \(error.message ?? "no message")"
    }
}

/// A connection to the file, within a transaction or a read. Used by one thread at a time.
struct StatisticsConnection {
    fileprivate let database: Database

    /// Runs several statements without arguments.
    func runScript(_ sql: String) throws { try self.database.execute(sql: sql) }

    /// Runs one statement. Returns the number of rows that it inserted, changed or deleted.
    @discardableResult
    func run(_ sql: String, _ arguments: StatisticsArguments = []) throws -> Int {
        try self.database.execute(sql: sql, arguments: arguments.bound)
        return self.database.changesCount
    }

    /// Runs one statement for each of these arguments.
    func run(_ sql: String, forEach list: some Sequence<StatisticsArguments>) throws {
        let statement = try self.database.cachedStatement(sql: sql)
        for arguments in list { try statement.execute(arguments: arguments.bound) }
    }

    func rows(_ sql: String, _ arguments: StatisticsArguments = []) throws -> [StatisticsRow] {
        try Row.fetchAll(self.database, sql: sql, arguments: arguments.bound).map(StatisticsRow.init)
    }

    /// The first column of the first row; nil when there is none, or it is NULL.
    func number(_ sql: String, _ arguments: StatisticsArguments = []) throws -> Int64? {
        try Int64.fetchOne(self.database, sql: sql, arguments: arguments.bound)
    }
}

/// A row of a result; columns by their names. The tables are STRICT: a column holds its type, or NULL only where the schema allows it.
struct StatisticsRow {
    fileprivate let row: Row

    /// A column that the schema defines as NOT NULL.
    subscript<Value: StatisticsConvertible>(_ name: String) -> Value {
        guard let value = Value.read(self, name) else { preconditionFailure("column \(name) is NULL, against the schema") }
        return value
    }

    subscript<Value: StatisticsConvertible>(_ name: String) -> Value? { Value.read(self, name) }
}

/// The values for a statement's placeholders, in order.
struct StatisticsArguments: ExpressibleByArrayLiteral {
    fileprivate let bound: StatementArguments

    init(_ values: [(any StatisticsConvertible)?]) { self.bound = StatementArguments(values.map { $0?.stored ?? .null }) }

    init(arrayLiteral elements: (any StatisticsConvertible)?...) { self.init(elements) }
}

/// A type that statements accept and rows return.
protocol StatisticsConvertible: Sendable {
    var stored: DatabaseValue { get }
    /// Nil for NULL.
    static func read(_ row: StatisticsRow, _ name: String) -> Self?
}

extension StatisticsConvertible where Self: DatabaseValueConvertible {
    var stored: DatabaseValue { self.databaseValue }
    static func read(_ row: StatisticsRow, _ name: String) -> Self? { row.row[name] }
}

extension Int64: StatisticsConvertible {}
extension Int: StatisticsConvertible {}
extension Double: StatisticsConvertible {}
extension String: StatisticsConvertible {}
