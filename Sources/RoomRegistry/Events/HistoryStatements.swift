import Rooms
import Store
import Synchronization

/// The hourly deletion quota of each kind of history. Any thread.
final class HistoryShares: Sendable {
    enum Kind { case events, pushes, deliveries, audit }

    /// Rows of each kind that may be deleted per hour in any case, even if the history is small.
    private static let least = 256
    private let shares = Mutex<[Kind: RetentionShare]>([:])

    func allowance(_ kind: Kind, held: Int64, historyMs: Int64, steadyMs: Int64, limit: Int) -> Int {
        self.shares.withLock { shares in
            shares[kind, default: RetentionShare(least: Self.least)].allowance(
                held: Int(clamping: held), retentionMs: historyMs, steadyMs: steadyMs)
        }.clamped(to: limit)
    }

    func spend(_ kind: Kind, _ count: Int) {
        self.shares.withLock { $0[kind, default: RetentionShare(least: Self.least)].spend(count) }
    }
}

extension Int {
    fileprivate func clamped(to limit: Int) -> Int { Swift.min(self, limit) }
}

/// Deletes old history in small steps.
extension StoreAccess {
    /// How long answers to idempotent requests are kept.
    static let answersMs: Int64 = 24 * 3_600_000

    /// Deletes rows older than `historyMs`: about `limit` of each kind at most, and history only within its quota for this hour. True if
    /// there may be more.
    func forget(now: Int64, historyMs: Int64, limit: Int, shares: HistoryShares, steadyMs: Int64) throws -> Bool {
        let before = now - historyMs
        var isMore = false
        // By time, not by id: after the clock was set back, newer rows have older times.
        func history(_ kind: HistoryShares.Kind, span: String, _ forget: (Int) throws -> Int) throws {
            let held = try self.number(span) ?? 0
            let allowed = shares.allowance(kind, held: held, historyMs: historyMs, steadyMs: steadyMs, limit: limit)
            guard allowed > 0 else { return }
            let count = try forget(allowed)
            shares.spend(kind, count)
            if count >= allowed { isMore = true }
        }
        try history(.events, span: "SELECT (SELECT max(id) FROM events) - (SELECT min(id) FROM events) + 1") { allowed in
            try self.change("DELETE FROM events WHERE id IN (SELECT id FROM events WHERE at < $1 ORDER BY at LIMIT $2)", [before, allowed])
        }
        try history(.pushes, span: "SELECT (SELECT max(sequence) FROM pushes) - (SELECT min(sequence) FROM pushes) + 1") { allowed in
            try self.change(
                """
                DELETE FROM pushes WHERE sequence IN (
                    SELECT sequence FROM pushes WHERE started_at < $1 AND ended_at < $2 ORDER BY started_at, sequence LIMIT $3)
                """, [before, before, allowed])
        }
        try history(.deliveries, span: "SELECT (SELECT max(id) FROM webhook_deliveries) - (SELECT min(id) FROM webhook_deliveries) + 1") {
            allowed in
            var count = 0
            for state in [WebhookDelivery.State.delivered, .failed] where count < allowed {
                count += try self.change(
                    "DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries WHERE state = $1 AND at < $2 ORDER BY at LIMIT $3)",
                    [state.rawValue, before, allowed - count])
            }
            return count
        }
        let deleted = try self.change(
            """
            DELETE FROM recordings WHERE row IN (
                SELECT row FROM recordings \(self.connection.dialect.index("recordings_deleted")) WHERE state = 'deleted' AND started_at < $1
                ORDER BY started_at LIMIT $2)
            """, [before, limit])
        let givenUp = try self.giveUpDeliveries(before: before, limit: limit, now: now)
        let answers = try self.change(
            """
            DELETE FROM answers WHERE (token_id, key) IN (
                SELECT token_id, key FROM answers WHERE created_at < $1 ORDER BY created_at LIMIT $2)
            """, [now - Self.answersMs, limit])
        return isMore || [deleted, givenUp, answers].contains { $0 >= limit }
    }

    /// Deletes the strokes of classes that have ended.
    func dropOrphanedStrokes() throws {
        try self.run(
            """
            DELETE FROM board_strokes
            WHERE room_id NOT IN (SELECT id FROM rooms) OR room_id NOT IN (SELECT room_id FROM gatherings)
            """)
    }

    /// Gives up deliveries older than the history, so a dead target cannot fill the disk.
    private func giveUpDeliveries(before: Int64, limit: Int, now: Int64) throws -> Int {
        let old = try self.all(
            """
            SELECT id FROM webhook_deliveries WHERE state = 'pending' AND at < $1 AND coalesce(kept_from, at) < $1 ORDER BY at LIMIT $2
            """, [before, limit]
        ) { (row: inout RowReader) -> Int64 in row.next() }
        for id in old {
            _ = try self.recordAttempt(
                id, status: nil, error: "given up: older than the history that is kept", durationMs: 0, retryAt: nil, now: now)
        }
        return old.count
    }
}
