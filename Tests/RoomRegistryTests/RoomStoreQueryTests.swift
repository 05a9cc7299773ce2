import GRDB
import PostgresTestSupport
import Testing

@testable import RoomRegistry
@testable import Store
@testable import Rooms
@testable import Support

/// Lists of rooms: order, filters, pages, search, and their cost.
@Suite struct RoomStoreQueryTests {
    /// Rooms in every state, with titles that repeat or differ only in case.
    private static func filled(_ count: Int = 120) async throws -> (TestRegistry, [Room]) {
        let test = try TestRegistry()
        for index in 0..<count {
            let id = "r\(index * 7 % count)-\(index)"
            try await test.create(id) {
                $0.title = ["Alpha", "alpha", "Beta room", "ß", "直播 \(index % 4)", ""][index % 6]
                $0.owner = index % 5 == 0 ? nil : "owner\(index % 4)"
                $0.isPublic = index % 3 != 0
            }
            switch index % 7 {
            case 1: try await test.goLive("live/\(id)")
            case 2:
                let grant = try await test.goLive("live/\(id)")
                test.registry.pushEnded(grant.sequence, .connectionLost)
            case 3: try await test.apply(.forbid(untilMs: test.now + 1_000, reason: ""), id)
            case 4: try await test.apply(.close, id)
            case 5: try await test.apply(.expire, id)
            default: break
            }
            // Several rooms share a time of creation.
            if index % 4 == 0 { test.pass(1) }
        }
        await test.settle()
        var rooms: [Room] = []
        for id in try await test.registry.store.read({
            try $0.all("SELECT id FROM rooms") { (row: inout RowReader) -> String in row.next() }
        }) {
            rooms.append(try await test.registry.room(id))
        }
        return (test, rooms)
    }

    private static func expected(_ rooms: [Room], _ query: RoomQuery) -> [Room] {
        let found = rooms.filter {
            (query.states.isEmpty || query.states.contains($0.state)) && (query.owner == nil || $0.owner == query.owner)
                && (query.isPublic == nil || $0.isPublic == query.isPublic)
        }
        func key(_ room: Room) -> [UInt8] {
            room.title.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 + 32 : $0 }
        }
        func isBefore(_ one: Room, _ other: Room) -> Bool {
            switch query.order {
            case .newest, .oldest: if one.createdAt != other.createdAt { return one.createdAt < other.createdAt }
            case .title, .titleDescending: if key(one) != key(other) { return key(one).lexicographicallyPrecedes(key(other)) }
            case .id: break
            }
            return one.id.rawValue < other.id.rawValue
        }
        let sorted = found.sorted(by: isBefore)
        return query.order == .newest || query.order == .titleDescending ? sorted.reversed() : sorted
    }

    private static var shapes: [RoomQuery] {
        var shapes: [RoomQuery] = []
        for order in RoomQuery.Order.allCases {
            for states: Set<RoomState> in [[], [.live], [.closed], [.live, .interrupted, .closed]] {
                for owner in [nil, "owner1", "nobody"] {
                    for isPublic in [nil, false, true] {
                        var query = RoomQuery()
                        query.order = order
                        query.states = states
                        query.owner = owner
                        query.isPublic = isPublic
                        shapes.append(query)
                    }
                }
            }
        }
        return shapes
    }

    @Test func everyListIsCompleteAndInOrder() async throws {
        let (test, rooms) = try await Self.filled()
        defer { test.remove() }
        for shape in Self.shapes {
            let expected = Self.expected(rooms, shape)
            var query = shape
            query.size = 7
            var seen: [Room] = []
            var pages = 0
            repeat {
                let page = try await test.registry.rooms(query)
                #expect(page.total == expected.count && !page.totalIsCapped, "\(shape)")
                // The same page by its number.
                var numbered = shape
                numbered.size = 7
                numbered.page = pages + 1
                #expect(try await test.registry.rooms(numbered).rooms == page.rooms, "\(shape)")
                seen += page.rooms
                query.after = page.next
                pages += 1
            } while query.after != nil && pages < 100
            #expect(seen == expected, "\(shape)")
        }
        let counts = try await test.registry.roomCounts()
        for state in RoomState.allCases { #expect(counts[state] == rooms.filter { $0.state == state }.count) }
    }

    @Test func pagesStayPutWhileRoomsComeAndGo() async throws {
        let (test, rooms) = try await Self.filled(30)
        defer { test.remove() }
        var query = RoomQuery()
        query.order = .oldest
        query.size = 10
        let first = try await test.registry.rooms(query)
        // The cursor's own room is deleted, and others appear before it.
        try await test.registry.delete(try #require(first.rooms.last).id.rawValue, by: Actor("t"))
        try await test.create("late")
        query.after = first.next
        let second = try await test.registry.rooms(query)
        #expect(second.rooms == Array(Self.expected(rooms, query)[10..<20]))
        #expect(second.total == 30)
    }

    @Test func badPagesAreRefused() async throws {
        let (test, _) = try await Self.filled(20)
        defer { test.remove() }
        let cases: [(String, @Sendable (inout RoomQuery) -> Void)] = [
            ("pageSize", { $0.size = 0 }), ("pageSize", { $0.size = 201 }), ("pageSize", { $0.size = .min }), ("page", { $0.page = 0 }),
            ("page", { $0.page = .max }),
            (
                "page",
                {
                    $0.page = 501; $0.size = 20
                }
            ), ("page", { $0.page = -1 }),
            ("owner", { $0.owner = "' OR 1=1 --" }), ("owner", { $0.owner = "" }), ("q", { $0.text = String(repeating: "a", count: 201) }),
        ]
        for (field, change) in cases {
            var query = RoomQuery()
            change(&query)
            let bad = query
            #expect(await fieldError { try await test.registry.rooms(bad) }?.field == field)
        }
        var deepest = RoomQuery()
        deepest.page = 500
        #expect(try await test.registry.rooms(deepest).rooms.isEmpty)
    }

    @Test func tamperedCursorsAreRefusedOrHarmless() async throws {
        let (test, rooms) = try await Self.filled(40)
        defer { test.remove() }
        for order in RoomQuery.Order.allCases {
            var query = RoomQuery()
            query.order = order
            query.size = 5
            let cursor = try #require(try await test.registry.rooms(query).next)
            #expect(cursor.utf8.allSatisfy { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "/") })
            var refused = 0
            for index in cursor.indices {
                for replacement in ["A", "_", "*", "é"] {
                    query.after = String(cursor[..<index]) + replacement + cursor[cursor.index(after: index)...]
                    let changed = query
                    let error = await fieldError {
                        let page = try await test.registry.rooms(changed)
                        #expect(page.rooms.count <= 5 && page.total == rooms.count)
                    }
                    guard let error else { continue }
                    #expect(error.field == "after")
                    refused += 1
                }
            }
            #expect(refused > 0)
            for other in RoomQuery.Order.allCases where other != order {
                var query = RoomQuery()
                query.order = other
                query.after = cursor
                let wrong = query
                #expect(await fieldError { try await test.registry.rooms(wrong) }?.field == "after")
            }
        }
        for bad in ["", "0", "AAAA", "' OR 1=1", String(repeating: "A", count: 5_000), "MR8", "null", "\u{0}"] {
            var query = RoomQuery()
            query.after = bad
            let wrong = query
            #expect(await fieldError { try await test.registry.rooms(wrong) }?.field == "after", "\(bad)")
        }
    }

    // MARK: - Search

    @Test func wordsAreFoundInTitleIDAndOwner() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam-kitchen") {
            $0.title = "Anna's Küche"; $0.owner = "anna"
        }
        try await test.create("cam-garden") {
            $0.title = "小直播间 测试"; $0.owner = "bob"
        }
        try await test.create("x1") { $0.title = "caméra two" }
        func find(_ text: String) async throws -> [String] {
            var query = RoomQuery()
            query.text = text
            query.order = .id
            let page = try await test.registry.rooms(query)
            #expect(page.total == page.rooms.count && !page.totalIsCapped)
            return page.rooms.map(\.id.rawValue)
        }
        #expect(try await find("cam") == ["cam-garden", "cam-kitchen", "x1"])
        #expect(try await find("CAM-K") == ["cam-kitchen"])
        #expect(try await find("kuche") == ["cam-kitchen"])
        #expect(try await find("ku\u{308}che") == ["cam-kitchen"])
        #expect(try await find("anna kü") == ["cam-kitchen"])
        #expect(try await find("kitchen bob") == [])
        #expect(try await find("ku anna") == [], "only the last word is a beginning")
        #expect(try await find("直播") == ["cam-garden"])
        #expect(try await find("播") == ["cam-garden"])
        #expect(try await find("播直") == [])
        #expect(try await find("  bob  ") == ["cam-garden"])
        #expect(try await find("").count == 3)
        #expect(try await find("***") == [])
        // Titles and owners change, and a room is deleted.
        var patch = RoomPatch()
        patch.title = "renamed"
        patch.owner = .some("carol")
        _ = try await test.registry.update("cam-garden", patch, by: Actor("t"))
        #expect(try await find("直播") == [])
        #expect(try await find("rena carol") == [])
        #expect(try await find("carol rena") == ["cam-garden"])
        #expect(try await find("renamed carol") == ["cam-garden"])
        try await test.registry.delete("cam-garden", by: Actor("t"))
        #expect(try await find("renamed") == [])
        // Searches can be filtered, sorted and paged.
        try await test.apply(.close, "x1")
        var query = RoomQuery()
        query.text = "cam"
        query.states = [.closed]
        #expect(try await test.registry.rooms(query).rooms.map(\.id.rawValue) == ["x1"])
        query.states = []
        query.order = .titleDescending
        query.size = 1
        let first = try await test.registry.rooms(query)
        #expect(first.rooms.map(\.id.rawValue) == ["x1"] && first.total == 2)
        query.after = first.next
        let second = try await test.registry.rooms(query)
        #expect(second.rooms.map(\.id.rawValue) == ["cam-kitchen"] && second.next == nil)
    }

    @Test(arguments: [
        "\"", "\"\"", "a\" OR \"b", "a*", "NEAR(a b)", "NOT a", "a AND", "OR", "^a", "words:a", "{words}:a", "-a", "a + b", "(", ")", "%",
        "_", "'",
        "'; DROP TABLE rooms; --", "\\", "\u{0}", "a\u{0}b", "\u{FFFD}", "💥", "?1", ":a", "@a", "$a", "a\nb", "\u{202E}", "*", "a:b:c",
        "1e9",
    ]) func searchTextHasNoSyntax(_ text: String) async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("room1") { $0.title = "a b c not and or near words" }
        var query = RoomQuery()
        query.text = text
        // No error, and no more rooms than its words could match.
        let page = try await test.registry.rooms(query)
        #expect(page.rooms.count <= 1)
        query.text = "zzz " + text
        #expect(try await test.registry.rooms(query).rooms.isEmpty)
        #expect(try test.sql(Int.self, "SELECT count(*) FROM rooms") == 1)
    }

    @Test func theTotalOfASearchIsCapped() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<1_010 { group.addTask { try await test.create("cam-\(index)") } }
            try await group.waitForAll()
        }
        var query = RoomQuery()
        query.text = "cam"
        let page = try await test.registry.rooms(query)
        #expect(page.total == 1_000 && page.totalIsCapped && page.rooms.count == 20)
        // Its pages go on, in every order, whichever the match's age.
        for order in RoomQuery.Order.allCases {
            var all = RoomQuery()
            (all.text, all.order, all.size) = ("cam", order, 200)
            var (seen, pages): ([String], Int) = ([], 0)
            repeat {
                let page = try await test.registry.rooms(all)
                #expect(page.total == 1_000 && page.totalIsCapped)
                seen += page.rooms.map(\.id.rawValue)
                (all.after, pages) = (page.next, pages + 1)
            } while all.after != nil && pages < 10
            #expect(seen.count == 1_010 && Set(seen).count == 1_010, "\(order): \(seen.count)")
            if order == .id { #expect(seen == seen.sorted()) }
        }
        query.page = 51
        #expect(try await test.registry.rooms(query).rooms.count == 10)
        query.page = 1
        query.text = "cam 10"
        let few = try await test.registry.rooms(query)
        #expect(few.total == 11 + 10 && !few.totalIsCapped)
    }

    // MARK: - Cost

    private static func page(of shape: RoomQuery, after hasCursor: Bool) -> RoomQuery {
        guard hasCursor else { return shape }
        var query = shape
        let key: RoomCursor.Key =
            switch shape.order {
            case .id: .none
            case .newest, .oldest: .number(1)
            case .title, .titleDescending: .text("a")
            }
        query.after = RoomCursor(order: shape.order, key: key, id: "a").text
        return query
    }

    /// The query plans of a page's statements use index ranges. None sorts or scans a table.
    @Test(.disabled(if: TestPostgres.isOn, "reads SQLite's plans; aPageReadsAnIndex is PostgreSQL's"))
    func everyPageReadsIndexRanges() async throws {
        let (test, _) = try await Self.filled(30)
        defer { test.remove() }
        let database = try DatabaseQueue(path: test.directory + "/earshot.db")
        for shape in Self.shapes {
            for hasCursor in [false, true] {
                let query = Self.page(of: shape, after: hasCursor)
                let plan = try RoomPlan(query)
                #expect(plan.ranges.count <= 12)
                for range in plan.ranges.prefix(1) {
                    let (sql, arguments) = plan.statement(range)
                    let steps = try Self.plan(database, sql, StatementArguments(arguments))
                    #expect(steps.count == 1, "\(steps)")
                    let step = try #require(steps.first)
                    let whole = range.state == nil && !hasCursor
                    #expect(step.hasPrefix(whole ? "SCAN rooms USING" : "SEARCH rooms USING"), "\(sql): \(step)")
                    #expect(step.contains("COVERING INDEX"), "\(step)")
                    // Equality terms first, then the cursor's range.
                    if range.owner != nil { #expect(step.contains("owner=? AND state=? AND is_public=?"), "\(step)") }
                    if hasCursor { #expect(step.contains("<") || step.contains(">"), "\(step)") }
                }
            }
        }
    }

    /// The same on PostgreSQL, which must not need to sort or to read a table through, even if it would for a table this small.
    @Test(.enabled(if: TestPostgres.isOn, "on PostgreSQL")) func aPageReadsAnIndex() async throws {
        let (test, _) = try await Self.filled(30)
        defer { test.remove() }
        let connection = try #require(try TestPostgres.connect(test.directory))
        for way in ["seqscan", "sort", "bitmapscan"] { try connection.run("SET enable_\(way) = off") }
        for shape in Self.shapes {
            for hasCursor in [false, true] {
                let query = Self.page(of: shape, after: hasCursor)
                let plan = try RoomPlan(query, .postgres)
                for range in plan.ranges.prefix(1) {
                    let (sql, arguments) = plan.statement(range)
                    let steps = try StoreAccess(connection).all("EXPLAIN (COSTS OFF) \(sql)", arguments) {
                        (row: inout RowReader) -> String in row.next()
                    }
                    let text = steps.joined(separator: "; ")
                    #expect(text.contains("Index") && !text.contains("Seq Scan") && !text.contains("Sort"), "\(sql): \(text)")
                    let hasRange = text.contains("Index Cond") && (text.contains("<") || text.contains(">"))
                    #expect(!hasCursor || hasRange, "\(sql): \(text)")
                }
            }
        }
    }

    /// The same for all other statements of a running server.
    @Test(.disabled(if: TestPostgres.isOn, "traces SQLite's connection")) func noStatementReadsATableThrough() async throws {
        let test = try TestRegistry { $0.webhooks = [WebhookTarget(url: "http://x/", format: .earshot)] }
        defer { test.remove() }
        let traced = Traced()
        try test.registry.store.writerRead { store in try store.database.trace { traced.add($0) } }
        try await test.create("cam1") {
            $0.owner = "anna"; $0.deviceUid = "dev-1"
        }
        _ = try await test.goLive("live/dev-1")
        try await test.apply(.heartbeat(sender: "anna"), "cam1")
        _ = try await test.registry.join("cam1", user: "anna", nick: "")
        try await test.registry.leave("cam1", user: "anna")
        _ = try await test.registry.like("cam1", count: 1)
        try await test.apply(.forbid(untilMs: test.now + 1_000, reason: ""), "cam1")
        await test.advance(1_000)
        let key = IdempotencyKey(tokenID: 1, key: "k", fingerprint: "f")
        _ = try await test.registry.apply(
            .close, to: "cam1", action: "close", by: Actor("t"),
            keeping: KeptAnswer(key: key) { _ in StoredAnswer(status: 200, body: "{}") })
        await test.advance(RoomPolicy().retentionMs)
        _ = try await test.registry.createToken(name: "a", role: .backend)
        _ = try await test.registry.revokeToken(1)
        try await test.create("cam2") { $0.deviceUid = "dev-2" }
        try await test.apply(.expire, "cam2")
        try await test.create { $0.deviceUid = "dev-2" }
        try test.registry.store.transaction { store in
            try store.database.trace { traced.add($0) }
            _ = try store.dueDeliveries(now: test.now, limit: 10)
            _ = try store.pendingDeliveries()
            _ = try store.giveUpOldest(1, of: WebhookTarget(url: "http://y/", format: .earshot), now: test.now)
            _ = try store.redeliverFailed(to: WebhookTarget(url: "http://x/", format: .earshot), RedeliveryQuery(), now: test.now)
            _ = try store.hastenAfterOutage(
                of: WebhookTarget(url: "http://x/", format: .earshot), spreadMs: 1, limit: 5, now: test.now)
            _ = try store.redeliver(1, now: test.now)
            _ = try store.dropDeliveries(of: WebhookTarget(url: "http://y/", format: .earshot), limit: 5)
            _ = try store.recordAttempt(1, status: 500, error: nil, durationMs: 1, retryAt: test.now, now: test.now)
            _ = try store.recordAttempt(1, status: 200, error: nil, durationMs: 1, retryAt: nil, now: test.now)
            _ = try store.forget(now: test.now, historyMs: 0, limit: 5, shares: HistoryShares(), steadyMs: 0)
            _ = try store.openPushes(after: 0, upTo: .max, limit: 5)
            _ = try store.events(after: 1, room: "cam1", limit: 5)
            _ = try store.events(after: 1, room: nil, limit: 5)
            _ = try store.deliveries(state: .pending, room: nil, before: nil, limit: 5)
            _ = try store.deliveries(state: .pending, room: "cam1", before: 7, limit: 5)
            _ = try store.pushes(path: nil, fromMs: 1, toMs: 2, before: 3, limit: 5)
            _ = try store.pushes(path: StreamPath(app: "live", name: "cam1"), fromMs: 1, toMs: 2, before: 3, limit: 5)
            _ = try store.bans(after: StreamPath(app: "a", name: "b"), limit: 5)
            _ = try store.members(of: "cam1", after: "a", limit: 5)
            _ = try store.token(hash: "h")
            _ = try store.lastEventID()
            _ = try store.roomCounts()
            try store.database.trace(options: [])
        }
        // Small tables, or the oldest few rows of an index.
        let allowed = ["sqlite_sequence", "room_counts", "room_words", "tokens", "webhooks", "(subquery"]
        let statements = traced.statements.filter { sql in ["SELECT", "UPDATE", "DELETE", "INSERT"].contains { sql.hasPrefix($0) } }
        #expect(statements.count > 60, "\(statements.count)")
        for sql in statements {
            for step in try test.registry.store.writerRead({ try Self.plan($0.database, sql) }) {
                #expect(!step.contains("TEMP B-TREE"), "\(sql): \(step)")
                guard step.hasPrefix("SCAN") else { continue }
                let isIndex = step.contains("USING") || step == "SCAN events" || step == "SCAN CONSTANT ROW"
                #expect(isIndex || allowed.contains { step.contains($0) }, "\(sql): \(step)")
            }
        }
    }

    private static func plan(_ database: DatabaseQueue, _ sql: String, _ arguments: StatementArguments) throws -> [String] {
        try database.read { try self.plan($0, sql, arguments) }
    }

    private static func plan(_ db: Database, _ sql: String, _ arguments: StatementArguments? = nil) throws -> [String] {
        let statement = try db.makeStatement(sql: "EXPLAIN QUERY PLAN " + sql)
        if let arguments { try statement.setArguments(arguments) }
        return try Row.fetchAll(statement).map { $0["detail"] }
    }
}

extension StoreAccess {
    fileprivate var database: Database { get throws { try #require(self.connection as? SQLiteStoreConnection).database } }
}

/// The distinct statements that a connection ran, with values filled in.
private final class Traced: @unchecked Sendable {
    // Filled only on the connection's queue, read when nothing runs on it.
    private(set) var statements: Set<String> = []
    func add(_ event: Database.TraceEvent) { self.statements.insert(event.expandedDescription) }
}
