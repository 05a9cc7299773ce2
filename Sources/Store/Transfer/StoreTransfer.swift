import Rooms

/// Copies a whole registry from one store into an empty one of another kind, and compares the two row for row. All of it is one transaction in
/// the target: a copy that fails leaves it empty. Blocks. A value.
package struct StoreTransfer: Sendable {
    private let source: StoreLocation
    private let target: StoreLocation

    package init(from source: StoreLocation, to target: StoreLocation) {
        self.source = source
        self.target = target
    }

    /// How far it is: `rows` of a table are copied or compared.
    package struct Progress: Sendable, Equatable {
        package enum Step: String, Sendable { case copies, compares }
        package let step: Step
        package let table: String
        package let rows: Int64
    }

    /// What both stores hold now.
    package struct Report: Sendable, Equatable {
        package struct Table: Sendable, Equatable {
            package let name: String
            package let rows: Int64
        }
        /// In alphabetical order.
        package let tables: [Table]
    }

    /// Throws ``StoreError`` when a store is in use, not at the present schema, not empty (the target), or differs afterwards.
    package func run(_ progress: (Progress) -> Void = { _ in }) throws -> Report {
        if case .folder = self.source, case .folder(let directory) = self.target {
            throw StoreError(
                path: directory, problem: "is a data directory, as the source is",
                advice: "use `earshot store backup` and `earshot store restore`")
        }
        return try self.source.reading { source in
            try self.target.filling { target in try Self.transfer(from: source, to: target, progress) }
        }
    }

    private static func transfer(from source: TransferSide, to target: TransferSide, _ progress: (Progress) -> Void) throws -> Report {
        let tables = try StoreTable.common(source, target)
        for table in tables {
            try target.attempt { store in
                // A server that was never used leaves the clock's mark alone.
                if table.name == "clock" { try store.run("DELETE FROM clock") }
                if try table.hasRows(store) { throw target.location.isTaken("its table \(table.name) has rows") }
            }
        }
        // Found before anything is written.
        if target.store.connection.dialect == .postgres {
            for table in tables { try source.attempt { try table.refuseNUL($0, source.location) } }
        }
        try target.attempt { try $0.stopCounting() }
        for table in tables { try self.copy(table, from: source, to: target, progress) }
        try target.attempt { store in
            try store.insertAllWords()
            try store.countAll()
        }
        let report = Report(
            tables: try tables.map { table in
                Report.Table(
                    name: table.name,
                    rows: try StoreComparison(table: table, source: source, target: target).run {
                        progress(Progress(step: .compares, table: table.name, rows: $0))
                    })
            })
        try StoreComparison.counts(source, target)
        // A sequence of PostgreSQL's keeps its value when the transaction is undone, so it comes last.
        for table in tables where table.isNumbered {
            let last = try source.attempt { try table.lastNumber($0) }
            try target.attempt { store in
                try table.setLastNumber(last, store)
                guard try table.lastNumber(store) == last else {
                    throw StoreError(
                        path: target.location.name, problem: "the numbers of table \(table.name) do not go on after \(last)",
                        advice: StoreComparison.advice)
                }
            }
        }
        return report
    }

    private static func copy(
        _ table: StoreTable, from source: TransferSide, to target: TransferSide, _ progress: (Progress) -> Void
    ) throws {
        var pages = StorePages(table: table)
        var rows: Int64 = 0
        while true {
            let page = try source.attempt { try pages.next($0) }
            guard !page.isEmpty else { return }
            try target.attempt { store in
                try table.insert(page, store)
                // An error belongs to this table, and no more than a page waits in memory.
                try store.connection.flush()
            }
            rows += Int64(page.count)
            progress(Progress(step: .copies, table: table.name, rows: rows))
        }
    }
}

/// Compares a table of two stores.
struct StoreComparison {
    let table: StoreTable
    let source: TransferSide
    let target: TransferSide

    static let advice = "nothing was kept in the target; keep using the source, and report this"

    /// Returns the number of rows. Throws ``StoreError`` that names the first difference. `progress` gets the rows so far.
    func run(_ progress: (Int64) -> Void = { _ in }) throws -> Int64 {
        var (left, right) = (StorePages(table: self.table), StorePages(table: self.table))
        var rows: Int64 = 0
        while true {
            let ours = try self.source.attempt { try left.next($0) }
            let theirs = try self.target.attempt { try right.next($0) }
            for (ours, theirs) in zip(ours, theirs) {
                for (number, column) in self.table.columns.enumerated() where !ours[number].isIdentical(to: theirs[number]) {
                    throw self.difference(ours, "column \(column.name) differs")
                }
            }
            if ours.count > theirs.count { throw self.difference(ours[theirs.count], "the row is missing") }
            if theirs.count > ours.count { throw self.difference(theirs[ours.count], "the row is only there") }
            guard !ours.isEmpty else { return rows }
            rows += Int64(ours.count)
            progress(rows)
        }
    }

    /// Values stay out of it: they may be secrets.
    private func difference(_ row: [StoreValue], _ what: String) -> StoreError {
        StoreError(
            path: self.target.location.name,
            problem: "is not the same as \(self.source.location.name): table \(self.table.name), key \(self.table.key(of: row)): \(what)",
            advice: Self.advice)
    }

    /// Compares what each store derives from its rooms. Throws ``StoreError``.
    static func counts(_ source: TransferSide, _ target: TransferSide) throws {
        func counts(_ side: TransferSide) throws -> [String: Int64] {
            let list = try side.attempt { store in
                try store.all(
                    "SELECT owner, state, is_public, sum(n) FROM room_counts GROUP BY owner, state, is_public HAVING sum(n) <> 0"
                ) { (row: inout RowReader) -> (String, Int64) in
                    let (owner, state, isPublic): (String, String, Bool) = (row.next(), row.next(), row.next())
                    return ("\(isPublic) \(state) \(owner)", row.next())
                }
            }
            return Dictionary(list, uniquingKeysWith: +)
        }
        guard try counts(source) == counts(target) else {
            throw StoreError(
                path: target.location.name, problem: "counts its rooms otherwise than \(source.location.name)", advice: self.advice)
        }
        let (rooms, words) = try target.attempt { store in
            (try store.number("SELECT count(*) FROM rooms"), try store.number("SELECT count(*) FROM room_words"))
        }
        guard rooms == words else {
            throw StoreError(path: target.location.name, problem: "cannot search all of its rooms", advice: self.advice)
        }
    }
}

extension StoreAccess {
    /// Keeps PostgreSQL from counting each room as it is inserted: a row that changes in a transaction is as many rows until its end, and each
    /// change looks at all of them.
    fileprivate func stopCounting() throws {
        guard self.connection.dialect == .postgres else { return }
        try self.run("ALTER TABLE rooms DISABLE TRIGGER rooms_count_insert")
    }

    /// Counts what ``stopCounting()`` left out. No node has these counts to itself.
    fileprivate func countAll() throws {
        guard self.connection.dialect == .postgres else { return }
        try self.run(
            """
            INSERT INTO room_counts (shard, owner, state, is_public, n)
            SELECT 0, counted.owner, state, is_public, count(*)
            FROM (SELECT '' AS owner, state, is_public FROM rooms
                UNION ALL SELECT owner, state, is_public FROM rooms WHERE owner IS NOT NULL) AS counted
            GROUP BY counted.owner, state, is_public
            """)
        try self.run("ALTER TABLE rooms ENABLE TRIGGER rooms_count_insert")
        try self.connection.flush()
    }

    /// Stores the words of all rooms, for a table of words that is empty.
    fileprivate func insertAllWords() throws {
        let dialect = self.connection.dialect
        var last: Int64 = 0
        while true {
            let rooms = try self.all(
                "SELECT row, id, title, owner FROM rooms WHERE row > $1 ORDER BY row LIMIT 500", [last]
            ) { (row: inout RowReader) -> (row: Int64, room: Room) in
                let number: Int64 = row.next()
                var room = Room(id: RoomID(stored: row.next()), slots: [], at: 0)
                room.title = row.next()
                room.owner = row.optional()
                return (number, room)
            }
            guard let end = rooms.last else { return }
            for (row, room) in rooms { try self.run(dialect.insertWords, [row, dialect.words(of: room)]) }
            try self.connection.flush()
            last = end.row
        }
    }
}
