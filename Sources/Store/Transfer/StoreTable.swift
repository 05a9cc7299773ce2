/// A table of the registry, as the schema of a store describes it: nothing here knows its columns.
struct StoreTable: Equatable {
    enum Kind: Equatable { case integer, real, text }

    struct Column: Equatable {
        /// In small letters, as PostgreSQL keeps it; SQLite takes any.
        let name: String
        let kind: Kind
    }

    let name: String
    /// In alphabetical order: stores may add them in different orders.
    let columns: [Column]
    /// The primary key, as indices of `columns`.
    let key: [Int]
    /// Whether rows get numbers that are never used twice.
    let isNumbered: Bool

    /// What a store makes by itself: words and counts of rooms, steps of the schema, counters, and PostgreSQL's nodes.
    private static let derived: Set<String> = [
        "room_words", "room_counts", "grdb_migrations", PostgresSchema.table, "heads", "nodes", "fences", "signals", "duties",
    ]

    /// Columns that say to which of PostgreSQL's nodes a row belongs.
    private static let ofNodes: Set<String> = ["node", "node_identity", "node_rank"]

    private static let mostRows = 500
    /// Most values in a statement. PostgreSQL takes 65,535, SQLite 32,766.
    private static let mostValues = 10_000

    /// Rows read and written at once.
    var pageRows: Int { max(1, min(Self.mostRows, Self.mostValues / self.columns.count)) }

    /// The tables of both stores, in alphabetical order. Throws ``StoreError`` if they do not have the same ones.
    static func common(_ source: TransferSide, _ target: TransferSide) throws -> [StoreTable] {
        let (ours, theirs) = (try source.attempt(self.all), try target.attempt(self.all))
        guard ours != theirs else { return ours }
        let name =
            ours.first { !theirs.contains($0) }?.name ?? theirs.first { !ours.contains($0) }?.name ?? "?"
        throw StoreError(
            path: target.location.name, problem: "its table \(name) is not as in \(source.location.name)",
            advice: "this is a fault of earshot's schema: report it; nothing was changed")
    }

    static func all(_ store: StoreAccess) throws -> [StoreTable] {
        let names =
            switch store.connection.dialect {
            case .sqlite: "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite%'"
            case .postgres: "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
            }
        let tables = try store.all(names) { (row: inout RowReader) -> String in row.next() }
        return try tables.filter { !self.derived.contains($0) }.sorted().map { try StoreTable($0, store) }
    }

    /// Columns that are generated are left out, and those that say to which node a row belongs.
    private init(_ name: String, _ store: StoreAccess) throws {
        let sql =
            switch store.connection.dialect {
            case .sqlite:
                """
                SELECT name, type, pk, (SELECT sql LIKE '%AUTOINCREMENT%' FROM sqlite_master WHERE type = 'table' AND name = $1) AND pk > 0
                FROM pragma_table_xinfo($1) WHERE hidden = 0
                """
            case .postgres:
                """
                SELECT a.attname, format_type(a.atttypid, NULL), coalesce(array_position(i.indkey::int2[], a.attnum) + 1, 0),
                    CASE WHEN a.attidentity <> '' THEN 1 ELSE 0 END
                FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
                LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
                WHERE n.nspname = current_schema() AND c.relname = $1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
                """
            }
        let found = try store.all(sql, [name]) { (row: inout RowReader) -> (column: Column, key: Int, isNumbered: Bool) in
            let (column, type): (String, String) = (row.next(), row.next())
            guard let kind = Self.kinds[type.lowercased()] else {
                throw Unknown(table: name, what: "column \(column) has the type \(type)")
            }
            return (Column(name: column.lowercased(), kind: kind), row.next(), row.next())
        }.filter { !Self.ofNodes.contains($0.column.name) }.sorted { $0.column.name < $1.column.name }
        self.name = name
        self.columns = found.map(\.column)
        self.key = found.indices.filter { found[$0].key > 0 }.sorted { found[$0].key < found[$1].key }
        self.isNumbered = found.contains(where: \.isNumbered)
        guard !self.key.isEmpty else { throw Unknown(table: name, what: "it has no primary key") }
    }

    private static let kinds: [String: Kind] = [
        "integer": .integer, "bigint": .integer, "real": .real, "double precision": .real, "text": .text,
    ]

    struct Unknown: Error, CustomStringConvertible {
        let table: String
        let what: String
        var description: String { "table \(self.table): \(self.what)" }
    }

    // MARK: - Rows

    private static func quoted(_ name: String) -> String { "\"\(name)\"" }
    private var columnList: String { self.columns.map { Self.quoted($0.name) }.joined(separator: ", ") }
    private var keyList: String { self.key.map { Self.quoted(self.columns[$0].name) }.joined(separator: ", ") }
    private static func marks(_ count: Int, after used: Int = 0) -> String {
        "(\((used + 1...used + count).map { "$\($0)" }.joined(separator: ", ")))"
    }

    func hasRows(_ store: StoreAccess) throws -> Bool {
        try store.number("SELECT 1 FROM \(Self.quoted(self.name)) LIMIT 1") != nil
    }

    /// The next rows in the order of the key, after this one.
    fileprivate func rows(after last: [StoreValue]?, _ store: StoreAccess) throws -> [[StoreValue]] {
        let after = last == nil ? "" : " WHERE (\(self.keyList)) > \(Self.marks(self.key.count))"
        return try self.read(
            "SELECT \(self.columnList) FROM \(Self.quoted(self.name))\(after) ORDER BY \(self.keyList) LIMIT \(self.pageRows)",
            last.map { row in self.key.map { row[$0] } } ?? [], store)
    }

    private func read(_ sql: String, _ arguments: [StoreValue], _ store: StoreAccess) throws -> [[StoreValue]] {
        var rows: [[StoreValue]] = []
        try store.connection.query(sql, StoreArguments(values: arguments)) { row in
            rows.append(
                self.columns.enumerated().map { number, column in
                    switch column.kind {
                    case .integer: row.integer(at: number).map { .integer($0) } ?? .null
                    case .real: row.real(at: number).map { .real($0) } ?? .null
                    case .text: row.text(at: number).map { .text($0) } ?? .null
                    }
                })
            return true
        }
        return rows
    }

    func insert(_ rows: [[StoreValue]], _ store: StoreAccess) throws {
        let width = self.columns.count
        let values = rows.indices.map { Self.marks(width, after: $0 * width) }.joined(separator: ", ")
        try store.connection.run(
            "INSERT INTO \(Self.quoted(self.name)) (\(self.columnList)) VALUES \(values)", StoreArguments(values: Array(rows.joined())))
    }

    /// A row's key, for messages.
    func key(of row: [StoreValue]) -> String {
        self.key.map { number in
            switch row[number] {
            case .null: "NULL"
            case .integer(let value): "\(value)"
            case .real(let value): "\(value)"
            case .text(let text): text
            }
        }.joined(separator: ", ")
    }

    /// Throws ``StoreError`` for a text with U+0000, which PostgreSQL cannot store. SQLite's binding would cut it off unseen.
    func refuseNUL(_ store: StoreAccess, _ location: StoreLocation) throws {
        guard store.connection.dialect == .sqlite else { return }
        let texts = self.columns.filter { $0.kind == .text }.map(\.name)
        guard !texts.isEmpty else { return }
        func has(_ column: String) -> String { "instr(\(Self.quoted(column)), char(0)) > 0" }
        let cases = texts.map { "WHEN \(has($0)) THEN '\($0)'" }.joined(separator: " ")
        let keys = self.key.map { "CAST(\(Self.quoted(self.columns[$0].name)) AS TEXT)" }.joined(separator: " || ', ' || ")
        let found = try store.first(
            "SELECT \(keys), CASE \(cases) END FROM \(Self.quoted(self.name)) WHERE \(texts.map(has).joined(separator: " OR ")) LIMIT 1"
        ) { (row: inout RowReader) -> (key: String, column: String) in (row.next(), row.next()) }
        guard let found else { return }
        throw StoreError(
            path: location.name,
            problem:
                "table \(self.name), key \(found.key), column \(found.column): the text holds the character U+0000, which PostgreSQL cannot store",
            advice: "delete that row or change the text, then copy again")
    }

    // MARK: - Numbers

    private var keyName: String { self.columns[self.key[0]].name }
    /// In PostgreSQL a row of its own counts events.
    private var isEvents: Bool { self.name == "events" }

    /// The highest number ever given to a row; 0 if there was none.
    func lastNumber(_ store: StoreAccess) throws -> Int64 {
        let highest = try store.number("SELECT max(\(Self.quoted(self.keyName))) FROM \(Self.quoted(self.name))") ?? 0
        let counted: Int64? =
            switch store.connection.dialect {
            case .sqlite: try store.number("SELECT seq FROM sqlite_sequence WHERE name = $1", [self.name])
            case .postgres where self.isEvents: try store.number(store.connection.dialect.lastEventID)
            case .postgres:
                try store.number("SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM \(try self.sequence(store))")
            }
        return max(highest, counted ?? 0)
    }

    func setLastNumber(_ number: Int64, _ store: StoreAccess) throws {
        switch store.connection.dialect {
        case .sqlite:
            try store.run("DELETE FROM sqlite_sequence WHERE name = $1", [self.name])
            if number > 0 { try store.run("INSERT INTO sqlite_sequence (name, seq) VALUES ($1, $2)", [self.name, number]) }
        case .postgres where self.isEvents: try store.run("UPDATE heads SET event = $1", [number])
        case .postgres:
            _ = try store.number("SELECT setval('\(try self.sequence(store))', \(max(1, number)), \(number > 0 ? "true" : "false"))")
        }
    }

    /// The sequence's name, quoted where it must be.
    private func sequence(_ store: StoreAccess) throws -> String {
        let name = try store.first("SELECT pg_get_serial_sequence($1, $2)", [self.name, self.keyName]) {
            (row: inout RowReader) -> String? in row.optional()
        }
        guard let name, let name else { throw Unknown(table: self.name, what: "it has no sequence") }
        return name
    }
}

/// Reads a table from its first row to its last.
struct StorePages {
    let table: StoreTable
    private var last: [StoreValue]?
    private var isOver = false

    init(table: StoreTable) { self.table = table }

    /// Empty at the end.
    mutating func next(_ store: StoreAccess) throws -> [[StoreValue]] {
        guard !self.isOver else { return [] }
        let rows = try self.table.rows(after: self.last, store)
        self.last = rows.last ?? self.last
        self.isOver = rows.count < self.table.pageRows
        return rows
    }
}

extension StoreValue {
    /// Compares texts byte by byte: Swift's == holds different forms of a character for equal.
    func isIdentical(to other: StoreValue) -> Bool {
        guard case .text(let text) = self, case .text(let otherText) = other else { return self == other }
        return text.utf8.elementsEqual(otherText.utf8)
    }
}
