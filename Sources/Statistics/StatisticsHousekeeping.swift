import GRDB

/// Makes rows of ten minutes from old rows of minutes, and deletes what is too old or too much. A value; runs in one transaction.
struct StatisticsHousekeeping {
    private let settings: StatisticsSettings
    private let nowMs: Int64

    private static let tenMs: Int64 = 600_000
    /// Finished sessions deleted in one statement.
    private static let step: Int64 = 1_000

    init(_ settings: StatisticsSettings, nowMs: Int64) {
        self.settings = settings
        self.nowMs = nowMs
    }

    /// Returns the number of rows deleted before their time, because there were too many.
    func run(_ db: Database) throws -> Int {
        try self.rollUp(db)
        let oldest = self.nowMs - self.settings.keepMs
        try db.execute(sql: "DELETE FROM tens WHERE at < ?", arguments: [Self.tens(oldest)])
        var surplusRows = 0
        if let surplus = try self.surplus(in: "tens", db) {
            try db.execute(sql: "DELETE FROM tens WHERE at <= ?", arguments: [surplus])
            surplusRows += db.changesCount
        }
        for table in ["plays", "pushes"] { surplusRows += try self.shorten(table, before: oldest, db) }
        return surplusRows
    }

    /// Whole ten minutes only. When there are too many rows of minutes, the oldest are rolled up before their time.
    private func rollUp(_ db: Database) throws {
        var end = Self.tens(self.nowMs - min(self.settings.minutesMs, self.settings.keepMs))
        if let surplus = try self.surplus(in: "minutes", db) { end = max(end, Self.tens(surplus) + Self.tenMs) }
        let sums = """
            SELECT subject, at / \(Self.tenMs) * \(Self.tenMs), \(StatisticsSchema.sums)
            FROM minutes WHERE at < ? GROUP BY subject, at / \(Self.tenMs)
            """
        try db.execute(sql: StatisticsSchema.addition(to: "tens", values: sums), arguments: [end])
        try db.execute(sql: "DELETE FROM minutes WHERE at < ?", arguments: [end])
    }

    /// The time of the newest row that is too much; nil when all fit.
    private func surplus(in table: String, _ db: Database) throws -> Int64? {
        try Int64.fetchOne(db, sql: "SELECT at FROM \(table) ORDER BY at DESC LIMIT 1 OFFSET ?", arguments: [self.settings.maxRows])
    }

    /// Deletes finished sessions from the oldest on. Numbers have no gaps but at the beginning, so they count the rows.
    /// Returns the number of those that were not too old, but too many.
    private func shorten(_ table: String, before oldestMs: Int64, _ db: Database) throws -> Int {
        while let first = try Row.fetchOne(db, sql: "SELECT id, ended FROM \(table) ORDER BY id LIMIT 1"), let id: Int64 = first["id"],
            let ended: Int64 = first["ended"], ended < oldestMs
        {
            try db.execute(
                sql: "DELETE FROM \(table) WHERE id < ? AND ended < ?", arguments: [id + Self.step, oldestMs])
        }
        guard let newest = try Int64.fetchOne(db, sql: "SELECT max(id) FROM \(table)") else { return 0 }
        try db.execute(sql: "DELETE FROM \(table) WHERE id <= ?", arguments: [newest - Int64(self.settings.maxRows)])
        return db.changesCount
    }

    /// The beginning of the ten minutes that this time is in.
    private static func tens(_ ms: Int64) -> Int64 { ms / self.tenMs * self.tenMs }
}
