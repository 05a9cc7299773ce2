/// Merges old rows of minutes into rows of ten minutes, and deletes rows that are too old or too many. A value; runs in one transaction.
struct StatisticsHousekeeping {
    let settings: StatisticsSettings
    let nowMs: Int64

    private static let tenMs: Int64 = 600_000
    /// Finished sessions deleted in one statement.
    private static let step: Int64 = 1_000

    /// Returns the number of rows deleted early, because there were too many.
    func run(_ db: StatisticsConnection) throws -> Int {
        try self.rollUp(db)
        let oldest = self.nowMs - self.settings.keepMs
        try db.run("DELETE FROM tens WHERE at < ?", [Self.tens(oldest)])
        var surplusRows = 0
        if let surplus = try self.surplus(in: "tens", db) {
            surplusRows += try db.run("DELETE FROM tens WHERE at <= ?", [surplus])
        }
        for table in ["plays", "pushes"] { surplusRows += try self.shorten(table, before: oldest, db) }
        return surplusRows
    }

    /// Merges whole ten minutes only. When there are too many rows of minutes, the oldest are merged early.
    private func rollUp(_ db: StatisticsConnection) throws {
        var end = Self.tens(self.nowMs - min(self.settings.minutesMs, self.settings.keepMs))
        if let surplus = try self.surplus(in: "minutes", db) { end = max(end, Self.tens(surplus) + Self.tenMs) }
        let sums = """
            SELECT subject, at / \(Self.tenMs) * \(Self.tenMs), \(StatisticsSchema.sums)
            FROM minutes WHERE at < ? GROUP BY subject, at / \(Self.tenMs)
            """
        try db.run(StatisticsSchema.addition(to: "tens", values: sums), [end])
        try db.run("DELETE FROM minutes WHERE at < ?", [end])
    }

    /// The time of the newest surplus row; nil when all fit.
    private func surplus(in table: String, _ db: StatisticsConnection) throws -> Int64? {
        try db.number("SELECT at FROM \(table) ORDER BY at DESC LIMIT 1 OFFSET ?", [self.settings.maxRows])
    }

    /// Deletes finished sessions, the oldest first. Their numbers have gaps only at the beginning, so they count the rows. Returns the number of
    /// deleted rows that were too many, but not too old.
    private func shorten(_ table: String, before oldestMs: Int64, _ db: StatisticsConnection) throws -> Int {
        while let first = try db.rows("SELECT id, ended FROM \(table) ORDER BY id LIMIT 1").first, (first["ended"] as Int64) < oldestMs {
            try db.run("DELETE FROM \(table) WHERE id < ? AND ended < ?", [(first["id"] as Int64) + Self.step, oldestMs])
        }
        guard let newest = try db.number("SELECT max(id) FROM \(table)") else { return 0 }
        return try db.run("DELETE FROM \(table) WHERE id <= ?", [newest - Int64(self.settings.maxRows)])
    }

    /// The beginning of the ten minutes that contain this time.
    private static func tens(_ ms: Int64) -> Int64 { ms / self.tenMs * self.tenMs }
}
