import Rooms
import Store

/// Events and deliveries as rows.
extension StoreAccess {
    private static let eventColumns = "id, number, kind, room_id, instance, at, data, app, subject"

    private static func event(_ row: inout RowReader) throws -> RoomEvent {
        let id: Int64 = row.next()
        let number: Int64 = row.next()
        let kind = try row.word(RoomEvent.Kind.self)
        let room: String? = row.optional()
        return RoomEvent(
            id: id, number: number, kind: kind, roomID: room.map(RoomID.init(stored:)), instance: row.next(), at: row.next(),
            data: row.next(), app: row.optional(), subject: row.optional())
    }

    /// `subject` is the room's id or the stream's name.
    func insertEvent(
        _ kind: RoomEvent.Kind, number: Int64, roomID: RoomID?, instance: Int, at: Int64, data: String, app: String?, subject: String?
    ) throws -> RoomEvent {
        let arguments: StoreArguments = [number, kind.rawValue, roomID?.rawValue, instance, at, data, app, subject]
        let id: Int64
        if let last = self.memory?.lastEvent {
            id = last + 1
            try self.run(self.connection.dialect.insertEvent, arguments)
        } else {
            let new = try self.expectFirst(self.connection.dialect.insertEvent, arguments) { (row: inout RowReader) -> Int64 in row.next() }
            // Who adds an event asks for the webhooks next: both come with one wait.
            _ = try self.knownWebhooks()
            if new.value == nil { try self.connection.flush() }
            guard let value = new.value else { throw NoNewRow() }
            id = value
        }
        self.memory?.lastEvent = id
        return RoomEvent(
            id: id, number: number, kind: kind, roomID: roomID, instance: instance, at: at, data: data, app: app, subject: subject)
    }

    /// Events after this id, of one room or all, oldest first.
    func events(
        after id: Int64, room: String?, kinds: Set<RoomEvent.Kind> = [], scope: TokenScope = .all, limit: Int
    ) throws -> [RoomEvent] {
        var filter = StoreFilter()
        if let room { filter.and("room_id = \(filter.mark(room))") }
        filter.and("id > \(filter.mark(id))")
        return try self.events(filter, kinds, scope, limit)
    }

    /// A room's events before this id, newest first.
    func events(before id: Int64, room: String, kinds: Set<RoomEvent.Kind>, scope: TokenScope, limit: Int) throws -> [RoomEvent] {
        var filter = StoreFilter()
        filter.and("room_id = \(filter.mark(room)) AND id < \(filter.mark(id))")
        return try self.events(filter, order: "DESC", kinds, scope, limit)
    }

    /// `kinds`: empty for all.
    private func events(
        _ filter: StoreFilter, order: String = "ASC", _ kinds: Set<RoomEvent.Kind>, _ scope: TokenScope, _ limit: Int
    ) throws -> [RoomEvent] {
        var filter = filter
        if !kinds.isEmpty { filter.and("kind IN (\(filter.marks(kinds.map(\.rawValue).sorted())))") }
        filter.and(Self.isKnown)
        filter.and(scope, app: "app", name: "subject")
        return try self.all(
            "SELECT \(Self.eventColumns) FROM events WHERE \(filter.sql) ORDER BY id \(order) LIMIT \(filter.mark(limit))", filter.arguments
        ) { row in try Self.event(&row) }
    }

    /// The newest id ever given, including forgotten events; 0 before the first.
    func lastEventID() throws -> Int64 { try self.number(self.connection.dialect.lastEventID) ?? 0 }

    /// The event number and instance of the id's former life, from which to continue.
    func lastEvent(of room: RoomID) throws -> (number: Int64, instance: Int)? {
        try self.first("SELECT number, instance FROM events WHERE room_id = $1 ORDER BY id DESC LIMIT 1", [room.rawValue]) { row in
            (number: row.next(), instance: row.next())
        }
    }

    // MARK: - Deliveries

    private static let deliveryColumns = """
        id, event_id, number, kind, room_id, instance, at, data, app, subject, url, format, state, attempts, due_at, last_status, last_error,
        last_attempt_at, duration_ms, delivered_at, coalesce(kept_from, at)
        """

    private static func delivery(_ row: inout RowReader) throws -> WebhookDelivery {
        let id: Int64 = row.next()
        let event = try Self.event(&row)
        let url: String = row.next()
        let target = WebhookTarget(row: url, format: WebhookTarget.Format(rawValue: row.next()))
        return WebhookDelivery(
            id: id, event: event, target: target, state: try row.word(), attempts: row.next(), dueAt: row.next(),
            lastStatus: row.optional(), lastError: row.optional(), lastAttemptAt: row.optional(), durationMs: row.optional(),
            deliveredAt: row.optional(), queuedAt: row.next())
    }

    /// Queues the event for a target, behind those of its ordering key.
    func addDelivery(of event: RoomEvent, orderingKey: String, to target: WebhookTarget, now: Int64) throws {
        let (sql, arguments) = Self.insertion(of: event, orderingKey, target, now, isCopy: false)
        try self.run(sql, arguments)
    }

    /// Queues the event again, with an age that starts now. Returns the delivery's id.
    private func insertCopy(of event: RoomEvent, orderingKey: String, to target: WebhookTarget, now: Int64) throws -> Int64 {
        let (sql, arguments) = Self.insertion(of: event, orderingKey, target, now, isCopy: true)
        return try self.insert(sql, arguments)
    }

    private static func insertion(
        of event: RoomEvent, _ orderingKey: String, _ target: WebhookTarget, _ now: Int64, isCopy: Bool
    ) -> (sql: String, arguments: StoreArguments) {
        (
            """
            INSERT INTO webhook_deliveries (url, format, lane, event_id, number, kind, room_id, instance, at, data, app, subject, state, attempts, due_at,
                kept_from, is_head)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'pending', 0, $13, $14,
                CASE WHEN EXISTS (SELECT 1 FROM webhook_deliveries WHERE url = $1 AND format = $2 AND lane = $3 AND state = 'pending') THEN 0 ELSE 1 END)
            RETURNING id
            """,
            [
                target.row, target.format.rawValue, orderingKey, event.id, event.number, event.kind.rawValue, event.roomID?.rawValue,
                event.instance, event.at, event.data, event.app, event.subject, now, isCopy ? now : nil,
            ]
        )
    }

    func delivery(_ id: Int64) throws -> WebhookDelivery? {
        let found = try self.first("SELECT \(Self.deliveryColumns) FROM webhook_deliveries WHERE id = $1 AND \(Self.isKnown)", [id]) {
            row in
            try Self.delivery(&row)
        }
        return try self.resolved(found.map { [$0] } ?? []).first
    }

    private func orderingKey(of id: Int64) throws -> String? {
        try self.first("SELECT lane FROM webhook_deliveries WHERE id = $1", [id]) { (row: inout RowReader) -> String in row.next() }
    }

    /// Targets with pending deliveries.
    func waitingTargets() throws -> [(url: String, format: String)] {
        var targets: [(url: String, format: String)] = []
        var after = ("", "")
        // Takes one index step per target: there are few, with many deliveries each.
        while let next = try self.first(
            "SELECT url, format FROM webhook_deliveries WHERE is_head = 1 AND (url, format) > ($1, $2) ORDER BY url, format LIMIT 1",
            [after.0, after.1],
            { (row: inout RowReader) -> (String, String) in (row.next(), row.next()) })
        {
            targets.append(next)
            after = next
        }
        return targets
    }

    func dueDeliveries(now: Int64, limit: Int) throws -> (due: [WebhookDelivery], nextAt: Int64?) {
        var due: [WebhookDelivery] = []
        // Deliveries of a paused target wait until it is resumed, or until they are older than the history.
        let paused = Set(try self.webhooks().filter(\.isPaused).map(\.target.row))
        for target in try self.waitingTargets() where !paused.contains(target.url) {
            due += try self.all(
                """
                SELECT \(Self.deliveryColumns) FROM webhook_deliveries WHERE is_head = 1 AND url = $1 AND format = $2 AND due_at <= $3 ORDER BY due_at, id LIMIT $4
                """, [target.url, target.format, now, limit]
            ) { row in try Self.delivery(&row) }
        }
        let next = try self.number("SELECT due_at FROM webhook_deliveries WHERE is_head = 1 AND due_at > $1 ORDER BY due_at LIMIT 1", [now])
        return (try self.withQueries(try self.resolved(due)), next)
    }

    /// False if no such delivery is pending.
    func recordAttempt(_ id: Int64, status: Int?, error: String?, durationMs: Int64, retryAt: Int64?, now: Int64) throws -> Bool {
        guard let delivery = try self.delivery(id), delivery.state == .pending else { return false }
        let state: WebhookDelivery.State = WebhookDelivery.isDelivered(status) ? .delivered : retryAt == nil ? .failed : .pending
        try self.run(
            """
            UPDATE webhook_deliveries SET state = $1, is_head = $2, attempts = attempts + 1, due_at = $3, last_status = $4, last_error = $5, last_attempt_at = $6,
                duration_ms = $7, delivered_at = $8 WHERE id = $9
            """,
            [
                state.rawValue, state == .pending, state == .pending ? retryAt ?? now : delivery.dueAt, status, error, now, durationMs,
                state == .delivered ? now : nil, id,
            ])
        if state != .pending { try self.promote(id, delivery.target) }
        return true
    }

    /// Makes the ordering key's oldest pending delivery the next to be sent.
    private func promote(_ id: Int64, _ target: WebhookTarget) throws {
        guard let orderingKey = try self.orderingKey(of: id) else { return }
        try self.run(
            """
            UPDATE webhook_deliveries SET is_head = 1 WHERE id = (
                SELECT id FROM webhook_deliveries WHERE url = $1 AND format = $2 AND lane = $3 AND state = 'pending' ORDER BY id LIMIT 1)
            """, [target.row, target.format.rawValue, orderingKey])
    }

    /// Makes a delivery that waits due now, and the one that it waits behind: a room's deliveries go in order.
    private func hasten(_ id: Int64, _ orderingKey: String, _ target: WebhookTarget, now: Int64) throws {
        try self.run(
            """
            UPDATE webhook_deliveries SET due_at = $1 WHERE state = 'pending' AND due_at > $1 AND url = $2 AND format = $3 AND lane = $4
                AND (is_head = 1 OR id = $5)
            """, [now, target.row, target.format.rawValue, orderingKey, id])
    }

    /// Brings forward what a target's failure had put off, since the target answers again: the next delivery of each room whose last try found no
    /// answer or one of 5xx is due within `spreadMs`. Returns their number; there may be more if it is `limit`.
    func hastenAfterOutage(of target: WebhookTarget, spreadMs: Int64, limit: Int, now: Int64) throws -> Int {
        // Spread by ids, which follow one another: steps of a prime number reach each millisecond.
        try self.change(
            """
            UPDATE webhook_deliveries SET due_at = $1 + (id * 997) % $2 WHERE id IN (
                SELECT id FROM webhook_deliveries WHERE is_head = 1 AND url = $3 AND format = $4 AND due_at > $5 AND attempts > 0
                    AND (last_status IS NULL OR last_status >= 500) ORDER BY due_at LIMIT $6)
            """, [now, spreadMs, target.row, target.format.rawValue, now + spreadMs, limit])
    }

    /// Newest first.
    func deliveries(
        state: WebhookDelivery.State?, room: String?, target: WebhookTarget? = nil, scope: TokenScope = .all, before: Int64?, limit: Int
    ) throws -> [WebhookDelivery] {
        let dialect = self.connection.dialect
        var filter = StoreFilter()
        filter.and("id < \(filter.mark(before ?? .max)) AND \(Self.isKnown)")
        if let room { filter.and("room_id = \(filter.mark(room))") }
        if let state {
            // A room has few deliveries: its index serves best.
            filter.and("\(room == nil ? "state" : dialect.unindexed("state")) = \(filter.mark(state.rawValue))")
        }
        if let target {
            filter.and("\(dialect.unindexed("url")) = \(filter.mark(target.row)) AND format = \(filter.mark(target.format.rawValue))")
        }
        filter.and(scope, app: "app", name: "subject")
        let found = try self.all(
            "SELECT \(Self.deliveryColumns) FROM webhook_deliveries WHERE \(filter.sql) ORDER BY id DESC LIMIT \(filter.mark(limit))",
            filter.arguments
        ) { row in try Self.delivery(&row) }
        return try self.resolved(found)
    }

    /// Queues a copy of the delivery behind those of its ordering key. Nil if there is no such delivery.
    func redeliver(_ id: Int64, now: Int64) throws -> WebhookDelivery? {
        guard let old = try self.delivery(id), let orderingKey = try self.orderingKey(of: id) else { return nil }
        guard old.state != .pending else {
            try self.hasten(id, orderingKey, old.target, now: now)
            return try self.delivery(id)
        }
        let copy = try self.insertCopy(of: old.event, orderingKey: orderingKey, to: old.target, now: now)
        try self.run("UPDATE webhook_deliveries SET redelivered_as = $1 WHERE id = $2", [copy, id])
        return try self.delivery(copy)
    }
}
