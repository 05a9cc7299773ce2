import GRDB

/// Forgetting what is old, a little at a time.
extension StoreAccess {
    /// How long answers to idempotent requests are kept.
    static let answersMs: Int64 = 24 * 3_600_000

    /// Deletes at most about `limit` rows of each kind that are older than `historyMs`. True: there may be more.
    func forget(now: Int64, historyMs: Int64, limit: Int) throws -> Bool {
        let before = now - historyMs
        var most = 0
        // Ids grow with time: only the oldest few need to be looked at.
        most = max(
            most,
            try self.change(
                """
                DELETE FROM events WHERE id IN (SELECT id FROM (SELECT id, at FROM events ORDER BY id LIMIT ?) WHERE at < ?)
                """, [limit, before]))
        most = max(
            most,
            try self.change(
                """
                DELETE FROM pushes WHERE sequence IN (
                    SELECT sequence FROM pushes WHERE started_at < ? AND ended_at < ? ORDER BY started_at, sequence LIMIT ?)
                """, [before, before, limit]))
        for state in [OutboxEntry.State.delivered, .failed] {
            most = max(
                most,
                try self.change(
                    """
                    DELETE FROM outbox WHERE id IN (
                        SELECT id FROM (SELECT id, at FROM outbox WHERE state = ? ORDER BY id LIMIT ?) WHERE at < ?)
                    """, [state.rawValue, limit, before]))
        }
        most = max(
            most,
            try self.change(
                """
                DELETE FROM recordings WHERE row IN (
                    SELECT row FROM recordings WHERE state = 'deleted' AND started_at < ? ORDER BY row LIMIT ?)
                """, [before, limit]))
        most = max(most, try self.giveUpNotices(before: before, limit: limit, now: now))
        most = max(
            most,
            try self.change(
                """
                DELETE FROM answers WHERE (token_id, key) IN (
                    SELECT token_id, key FROM answers WHERE created_at < ? ORDER BY created_at LIMIT ?)
                """, [now - Self.answersMs, limit]))
        return most >= limit
    }

    /// A target that has been dead for the whole history does not fill the disk.
    private func giveUpNotices(before: Int64, limit: Int, now: Int64) throws -> Int {
        let old = try self.all(
            "SELECT id FROM (SELECT id, at FROM outbox WHERE state = 'pending' ORDER BY id LIMIT ?) WHERE at < ?", [limit, before]
        ) { (row: inout RowReader) -> Int64 in row.next() }
        for id in old {
            _ = try self.recordAttempt(
                id, status: nil, error: "given up: older than the history that is kept", durationMs: 0, retryAt: nil, now: now)
        }
        return old.count
    }
}
