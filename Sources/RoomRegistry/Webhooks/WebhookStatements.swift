import Rooms
import Store

/// Webhooks made by the API, and operations on all deliveries of one target.
extension StoreAccess {
    private static let webhookColumns = "id, name, url, format, kinds, rooms, is_paused, secret, created_at"

    private static func webhook(_ row: inout RowReader) throws -> StoredWebhook {
        let (id, name, url): (Int64, String, String) = (row.next(), row.next(), row.next())
        let format = WebhookTarget.Format(rawValue: row.next())
        let (kinds, rooms): (String, String) = (row.next(), row.next())
        return StoredWebhook(
            id: id, name: name, url: url, format: format,
            // Skips kinds of another version, of which this one has no events.
            kinds: kinds.split(separator: ",").compactMap { RoomEvent.Kind(rawValue: String($0)) },
            rooms: rooms.split(separator: ",").map(String.init), isPaused: row.next(), secret: row.next(), createdAt: row.next())
    }

    func webhooks() throws -> [StoredWebhook] {
        try self.all("SELECT \(Self.webhookColumns) FROM webhooks ORDER BY id") { row in try Self.webhook(&row) }
    }

    /// The same, asked once in a transaction.
    func knownWebhooks() throws -> [StoredWebhook] {
        if let known = self.memory?.webhooks { return known }
        let all = try self.webhooks()
        self.memory?.webhooks = all
        return all
    }

    func webhook(_ id: Int64) throws -> StoredWebhook? {
        try self.first("SELECT \(Self.webhookColumns) FROM webhooks WHERE id = $1", [id]) { row in try Self.webhook(&row) }
    }

    /// Stores a new target; the returned one has its id.
    func insert(_ hook: StoredWebhook) throws -> StoredWebhook {
        guard try self.number("SELECT count(*) FROM webhooks") ?? 0 < Int64(RoomLimits.webhooks) else {
            throw RegistryError.tooMany(what: "webhooks", limit: RoomLimits.webhooks)
        }
        self.memory?.webhooks = nil
        let id = try self.insert(
            """
            INSERT INTO webhooks (name, url, format, kinds, rooms, is_paused, secret, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id
            """,
            [
                hook.name, hook.url, hook.format.rawValue, hook.kinds.map(\.rawValue).joined(separator: ","),
                hook.rooms.joined(separator: ","), hook.isPaused, hook.secret, hook.createdAt,
            ])
        return StoredWebhook(
            id: id, name: hook.name, url: hook.url, format: hook.format, kinds: hook.kinds, rooms: hook.rooms, isPaused: hook.isPaused,
            secret: hook.secret, createdAt: hook.createdAt)
    }

    func update(_ hook: StoredWebhook) throws {
        self.memory?.webhooks = nil
        try self.run(
            "UPDATE webhooks SET name = $1, url = $2, kinds = $3, rooms = $4, is_paused = $5 WHERE id = $6",
            [
                hook.name, hook.url, hook.kinds.map(\.rawValue).joined(separator: ","), hook.rooms.joined(separator: ","), hook.isPaused,
                hook.id,
            ])
    }

    func deleteWebhook(_ id: Int64) throws {
        self.memory?.webhooks = nil
        try self.run("DELETE FROM webhooks WHERE id = $1", [id])
    }

    /// How many deliveries of the target wait.
    func pendingDeliveries(of target: WebhookTarget) throws -> Int {
        Int(
            try self.number(
                "SELECT count(*) FROM webhook_deliveries WHERE url = $1 AND format = $2 AND state = 'pending'",
                [target.row, target.format.rawValue])
                ?? 0
        )
    }

    /// Targets with waiting deliveries, and how many wait for each.
    func pendingDeliveries() throws -> [(target: WebhookTarget, count: Int)] {
        let hooks = Dictionary(try self.webhooks().map { ($0.target.row, $0.target) }) { first, _ in first }
        return try self.waitingTargets().map { url, format in
            let target = hooks[url] ?? WebhookTarget(row: url, format: WebhookTarget.Format(rawValue: format))
            return (target, try self.pendingDeliveries(of: target))
        }
    }

    /// Gives up a target's waiting deliveries, the oldest first. Returns their number.
    func giveUpOldest(_ count: Int, of target: WebhookTarget, now: Int64) throws -> Int {
        // By age through all that waits: most of it is this target's, or it would not have so many.
        let url = self.connection.dialect.unindexed("url")
        let oldest = try self.all(
            "SELECT id FROM webhook_deliveries WHERE state = 'pending' AND \(url) = $1 AND format = $2 ORDER BY id LIMIT $3",
            [target.row, target.format.rawValue, count]
        ) { (row: inout RowReader) -> Int64 in row.next() }
        for id in oldest {
            _ = try self.recordAttempt(
                id, status: nil, error: "given up: too many deliveries wait for this target", durationMs: 0, retryAt: nil, now: now)
        }
        return oldest.count
    }

    /// Deletes waiting deliveries of a target, in no order: all are to go. Returns their number.
    func dropDeliveries(of target: WebhookTarget, limit: Int) throws -> Int {
        try self.change(
            """
            DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries WHERE url = $1 AND format = $2 AND state = 'pending' LIMIT $3)
            """, [target.row, target.format.rawValue, limit])
    }

    /// Queues copies of a target's failed deliveries, the oldest first, each behind the others of its room. Each is copied once only. Returns
    /// their number.
    func redeliverFailed(to target: WebhookTarget, _ query: RedeliveryQuery, now: Int64) throws -> Int {
        var filter = StoreFilter()
        filter.and("state = 'failed' AND url = \(filter.mark(target.row)) AND format = \(filter.mark(target.format.rawValue))")
        filter.and("redelivered_as IS NULL AND \(Self.isKnown)")
        if !query.kinds.isEmpty { filter.and("kind IN (\(filter.marks(query.kinds.map(\.rawValue))))") }
        if let from = query.fromMs { filter.and("at >= \(filter.mark(from))") }
        if let to = query.toMs { filter.and("at < \(filter.mark(to))") }
        let failed = try self.all(
            "SELECT id FROM webhook_deliveries WHERE \(filter.sql) ORDER BY id LIMIT \(filter.mark(query.limit))", filter.arguments
        ) { (row: inout RowReader) -> Int64 in row.next() }
        for id in failed { _ = try self.redeliver(id, now: now) }
        return failed.count
    }

    /// The deliveries with the present data of their targets. Deliveries of a deleted target have no URL.
    func resolved(_ entries: [WebhookDelivery]) throws -> [WebhookDelivery] {
        guard entries.contains(where: { $0.target.hookID != nil }) else { return entries }
        let hooks = Dictionary(try self.webhooks().map { ($0.id, $0.target) }) { first, _ in first }
        return entries.map { entry in
            var entry = entry
            if let target = entry.target.hookID.flatMap({ hooks[$0] }) { entry.target = target }
            return entry
        }
    }

    /// The deliveries with their pushes' queries, where the format may have a field for it: ours has not.
    func withQueries(_ entries: [WebhookDelivery]) throws -> [WebhookDelivery] {
        try entries.map { entry in
            guard entry.target.format != .earshot, let details = try? entry.event.details() else { return entry }
            var entry = entry
            switch details {
            case .push(let push): entry.query = try self.pushQuery(push.sequence)
            case .recording(let recording):
                entry.query = try self.pushQuery(of: recording.path, at: recording.file?.startedAt ?? entry.event.at)
            case .snapshot, .link: break
            }
            return entry
        }
    }
}
