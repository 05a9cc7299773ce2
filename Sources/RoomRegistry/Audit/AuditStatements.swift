import Rooms
import Store

/// The audit trail as rows.
extension StoreAccess {
    private static let auditColumns = """
        id, at, token_id, token, token_hash, address, request_id, operation, room_id, stream, object, result, status, before, after,
        via
        """

    private static func auditEntry(_ row: inout RowReader) -> AuditEntry {
        let (id, at): (Int64, Int64) = (row.next(), row.next())
        let (tokenID, token, hash): (Int64?, String?, String?) = (row.optional(), row.optional(), row.optional())
        let (address, requestID, operation): (String, String, String) = (row.next(), row.next(), row.next())
        var line = AuditLine(operation)
        line.tokenID = tokenID
        line.token = token
        line.tokenHash = hash
        line.address = address
        line.requestID = requestID
        line.roomID = row.optional()
        line.stream = row.optional()
        line.object = row.optional()
        line.result = row.next()
        line.status = row.next()
        line.before = row.optional()
        line.after = row.optional()
        line.via = (row.optional() as String?).map(AuditTool.init(rawValue:))
        return AuditEntry(id: id, at: at, line: line)
    }

    /// Returns the line's id.
    @discardableResult
    func insert(_ line: AuditLine, at now: Int64) throws -> Int64 {
        try self.insert(
            """
            INSERT INTO audit (at, token_id, token, token_hash, address, request_id, operation, room_id, stream, object, result, status, before,
                after, is_refused, via)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) RETURNING id
            """,
            [
                now, line.tokenID, line.token, line.tokenHash, line.address, line.requestID, line.operation, line.roomID, line.stream,
                line.object, line.result, line.status, line.before, line.after, line.isRefused, line.via?.rawValue,
            ])
    }

    /// Sets the result of a call that failed after its change was stored.
    func setAudit(_ id: Int64, result: String, status: Int) throws {
        try self.run("UPDATE audit SET result = $1, status = $2 WHERE id = $3", [result, status, id])
    }

    /// Newest first.
    func audit(_ query: AuditQuery) throws -> [AuditEntry] {
        let dialect = self.connection.dialect
        var filter = StoreFilter()
        filter.and("id < \(filter.mark(query.before ?? .max))")
        // The first is the narrowest: its index serves best.
        var isFirst = true
        let texts = [
            ("room_id", query.room), ("stream", query.stream), ("token", query.token), ("operation", query.operation),
            ("result", query.result), ("via", query.via?.rawValue),
        ]
        for (column, value) in texts {
            guard let value else { continue }
            filter.and("\(isFirst ? column : dialect.unindexed(column)) = \(filter.mark(value))")
            isFirst = false
        }
        if let from = query.fromMs { filter.and("\(dialect.unindexed("at")) >= \(filter.mark(from))") }
        if let to = query.toMs { filter.and("\(dialect.unindexed("at")) < \(filter.mark(to))") }
        return try self.all(
            "SELECT \(Self.auditColumns) FROM audit WHERE \(filter.sql) ORDER BY id DESC LIMIT \(filter.mark(query.limit))",
            filter.arguments
        ) { row in Self.auditEntry(&row) }
    }

    /// Deletes up to `limit` lines that are too old or too many, the oldest first. Returns their number. Deletion of lines that are too old is
    /// limited by an hourly quota, so that a leap of the clock does not delete the whole trail.
    func forgetAudit(_ retention: AuditRetention, now: Int64, limit: Int, _ shares: HistoryShares, steadyMs: Int64) throws -> Int {
        let held = try self.number("SELECT (SELECT max(id) FROM audit) - (SELECT min(id) FROM audit) + 1") ?? 0
        let allowed = shares.allowance(.audit, held: held, historyMs: retention.keptMs, steadyMs: steadyMs, limit: limit)
        var count = 0
        if allowed > 0 {
            count = try self.change(
                "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < $1 ORDER BY at LIMIT $2)",
                [now - retention.keptMs, allowed])
            shares.spend(.audit, count)
        }
        for (isRefused, most) in [(true, retention.refusedLines), (false, retention.lines)] where count < limit {
            guard
                let last = try self.number(
                    "SELECT id FROM audit WHERE is_refused = $1 ORDER BY id DESC LIMIT 1 OFFSET $2", [isRefused, most])
            else { continue }
            count += try self.change(
                "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE is_refused = $1 AND id <= $2 ORDER BY id LIMIT $3)",
                [isRefused, last, limit - count])
        }
        return count
    }
}
