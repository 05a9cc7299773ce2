import PostgresTestSupport
import Testing

@testable import RoomRegistry
@testable import Store
@testable import Rooms
@testable import Support

/// Deliveries, stored answers, tokens, and the deletion of old history.
@Suite struct RoomStoreDeliveryTests {
    static let earshot = WebhookTarget(url: "http://a/", format: .earshot)
    static let vendor = WebhookTarget(url: "http://a/", format: .vendor)
    static let other = WebhookTarget(url: "http://b/", format: .earshot)

    private func due(_ test: TestRegistry, _ target: WebhookTarget) async throws -> [String] {
        try await test.registry.dueDeliveries(limit: 100).due.filter { $0.target == target }
            .map { "\($0.event.roomID?.rawValue ?? "-") \($0.event.kind.rawValue)" }
    }

    /// Back from a later version, whose events this one does not know: what waits behind them goes out, and feed and lists go on without them.
    @Test func unknownEventsHoldUpNothing() async throws {
        let test = try TestRegistry { $0.webhooks = [Self.earshot] }
        defer { test.remove() }
        try await test.create("cam1")
        try await test.create("cam2")
        try await test.goLive("live/cam1")
        await test.settle()
        for table in ["webhook_deliveries", "events"] {
            try test.execute("UPDATE \(table) SET kind = 'room.painted' WHERE room_id = 'cam1' AND kind = 'room.created'")
        }
        await test.registry.stop()
        let next = try await test.restarted { ($0.webhooks, $0.isExclusive) = ([Self.earshot], true) }
        #expect(next.registry.notices.count == 1 && next.registry.notices[0].hasPrefix("1 webhook deliveries"), "\(next.registry.notices)")
        #expect(try await self.due(next, Self.earshot) == ["cam2 room.created", "cam1 stream.begin"])
        let kinds = try await next.registry.events(after: 0, room: "cam1", limit: 10).map(\.kind)
        #expect(kinds.first == .streamBegin && !kinds.contains(.roomCreated))
        #expect(try await next.registry.events(before: .max, room: "cam1", limit: 10).map(\.kind) == kinds.reversed())
        #expect(try await next.registry.deliveries(state: .failed, room: nil, before: nil, limit: 10).isEmpty)
        #expect(
            try next.sql(String.self, "SELECT state FROM webhook_deliveries WHERE kind = 'room.painted'") == "failed",
            "kept for the later version")
    }

    @Test func aRoomsDeliveriesGoInOrder() async throws {
        let test = try TestRegistry {
            $0.webhooks = [Self.earshot, Self.vendor, Self.other]
            $0.notifies = { $0.format == .earshot || $1 == .streamBegin || $1 == .streamEnd }
        }
        defer { test.remove() }
        try await test.create("cam1")
        try await test.create("cam2")
        let grant = try await test.goLive("live/cam1")
        test.registry.pushEnded(grant.sequence, .clientStopped)
        await test.settle()
        #expect(try await self.due(test, Self.earshot) == ["cam1 room.created", "cam2 room.created"])
        // This target takes only stream events.
        #expect(try await self.due(test, Self.vendor) == ["cam1 stream.begin"])
        let first = try #require(try await test.registry.dueDeliveries(limit: 100).due.first { $0.target == Self.earshot })
        #expect(first.event == test.events[0] && first.attempts == 0 && first.state == .pending)
        // A failure holds up only its own room and target.
        try await test.registry.recordAttempt(first.id, status: 500, error: "no", durationMs: 12, retryAt: test.now + 60_000)
        #expect(try await self.due(test, Self.earshot) == ["cam2 room.created"])
        #expect(try await self.due(test, Self.other).count == 2)
        #expect(try await test.registry.dueDeliveries(limit: 100).nextAt == test.now + 60_000)
        test.pass(60_000)
        #expect(try await self.due(test, Self.earshot) == ["cam2 room.created", "cam1 room.created"])
        try await test.registry.recordAttempt(first.id, status: 200, error: nil, durationMs: 5, retryAt: nil)
        #expect(try await self.due(test, Self.earshot) == ["cam2 room.created", "cam1 stream.begin"])
        let delivered = try #require(try await test.registry.deliveries(state: .delivered, room: "cam1", before: nil, limit: 10).first)
        #expect(delivered.id == first.id && delivered.attempts == 2 && delivered.deliveredAt == test.now && delivered.lastStatus == 200)
        // Given up: the next one is sent.
        let begin = try #require(try await test.registry.dueDeliveries(limit: 100).due.first { $0.target == Self.vendor })
        try await test.registry.recordAttempt(begin.id, status: nil, error: "timeout", durationMs: 20_000, retryAt: nil)
        #expect(try await self.due(test, Self.vendor) == ["cam1 stream.end"])
        #expect(try await test.registry.deliveries(state: .failed, room: nil, before: nil, limit: 10).map(\.id) == [begin.id])
        // An attempt recorded twice counts once.
        try await test.registry.recordAttempt(begin.id, status: 200, error: nil, durationMs: 1, retryAt: nil)
        #expect(try await test.registry.deliveries(state: .failed, room: nil, before: nil, limit: 10).first?.lastError == "timeout")
        let copy = try #require(try await test.registry.redeliver(begin.id))
        #expect(copy.event == begin.event && copy.state == .pending && copy.id > begin.id && copy.attempts == 0)
        #expect(try await self.due(test, Self.vendor) == ["cam1 stream.end"])
        #expect(try await test.registry.redeliver(.max) == nil)
        let all = try await test.registry.deliveries(state: nil, room: nil, before: nil, limit: 1_000)
        #expect(all.map(\.id) == all.map(\.id).sorted().reversed())
        #expect(try await test.registry.deliveries(state: nil, room: nil, before: all[3].id, limit: 2).map(\.id) == [all[4].id, all[5].id])
    }

    /// A target made by a call takes the events that it asked for, and of these the ones that its format has words for.
    @Test func aMadeTargetTakesWhatItAskedFor() async throws {
        let test = try TestRegistry { $0.notifies = { $0.format == .earshot || $1 == .streamBegin || $1 == .streamEnd } }
        defer { test.remove() }
        func made(_ format: WebhookTarget.Format, _ kinds: [RoomEvent.Kind]) async throws -> WebhookTarget {
            try await test.registry.create(
                StoredWebhook(
                    id: 0, name: format.rawValue, url: "http://c/", format: format, kinds: kinds, rooms: [], isPaused: false, secret: "s",
                    createdAt: 0)
            ).target
        }
        let some = try await made(.earshot, [.roomCreated, .streamBegin])
        let vendor = try await made(.vendor, [])
        try await test.create("cam1")
        _ = try await test.goLive("live/cam1")
        try await test.registry.delete("cam1", by: Actor("t"))
        func kinds(_ target: WebhookTarget) async throws -> [RoomEvent.Kind] {
            try await test.registry.deliveries(state: .pending, room: "cam1", before: nil, limit: 100).filter { $0.target == target }
                .map(\.event.kind).reversed()
        }
        #expect(try await kinds(some) == [.roomCreated, .streamBegin])
        #expect(try await kinds(vendor) == [.streamBegin, .streamEnd])
    }

    /// Of a dead target the oldest are given up, and what is behind them is next. Other targets keep theirs.
    @Test func theOldestOfADeadTargetAreGivenUp() async throws {
        let test = try TestRegistry { $0.webhooks = [Self.earshot, Self.vendor, Self.other] }
        defer { test.remove() }
        for room in ["cam1", "cam2"] {
            try await test.create(room)
            try await test.apply(.renew(byMs: 1), room)
        }
        let hook = try await test.registry.create(
            StoredWebhook(
                id: 0, name: "x", url: "http://c/", format: .earshot, kinds: [], rooms: [], isPaused: true, secret: "s", createdAt: 0)
        ).target
        try await test.create("cam3")
        func waiting() async throws -> [String: Int] {
            Dictionary(uniqueKeysWithValues: try await test.registry.pendingDeliveries().map { ($0.target.id, $0.count) })
        }
        #expect(try await waiting() == [Self.earshot.id: 5, Self.vendor.id: 5, Self.other.id: 5, hook.id: 1])
        #expect(try await test.registry.pendingDeliveries().contains { $0.target == hook }, "with its URL")
        #expect(try await test.registry.giveUpOldest(3, of: Self.earshot) == 3)
        #expect(try await waiting() == [Self.earshot.id: 2, Self.vendor.id: 5, Self.other.id: 5, hook.id: 1])
        #expect(try await self.due(test, Self.earshot) == ["cam2 room.renewed", "cam3 room.created"])
        let failed = try await test.registry.deliveries(state: .failed, room: nil, before: nil, limit: 10)
        #expect(failed.map(\.event.kind) == [.roomCreated, .roomRenewed, .roomCreated])
        #expect(failed.allSatisfy { $0.target == Self.earshot && $0.lastError?.hasPrefix("given up: too many") == true })
        #expect(try await test.registry.giveUpOldest(99, of: Self.earshot) == 2)
        #expect(try await test.registry.giveUpOldest(99, of: Self.earshot) == 0)
    }

    /// Failed deliveries of any targets are sent again, each once, and their age starts anew.
    @Test func failedOnesAreQueuedAgain() async throws {
        let test = try TestRegistry { $0.webhooks = [Self.earshot, Self.vendor, Self.other] }
        defer { test.remove() }
        for room in ["cam1", "cam2"] { try await test.create(room) }
        for entry in try await test.registry.dueDeliveries(limit: 100).due {
            #expect(entry.queuedAt == entry.event.at)
            try await test.registry.recordAttempt(entry.id, status: 500, error: "no", durationMs: 1, retryAt: nil)
        }
        test.pass(90_000_000)
        func again(_ targets: [WebhookTarget], limit: Int = 1_000, from: Int64? = nil) async throws -> Int {
            var query = RedeliveryQuery()
            (query.limit, query.fromMs) = (limit, from)
            return try await test.registry.redeliver(to: targets, query)
        }
        #expect(try await again([Self.earshot], from: test.now) == 0)
        // The other format's are not touched, though its URL is the same.
        #expect(try await again([Self.earshot]) == 2)
        #expect(try await self.due(test, Self.earshot).count == 2)
        #expect(try await self.due(test, Self.vendor).isEmpty)
        let copy = try #require(try await test.registry.dueDeliveries(limit: 100).due.first)
        #expect(copy.queuedAt == test.now && copy.event.at == test.now - 90_000_000)
        #expect(try await again([Self.earshot, Self.vendor, Self.other], limit: 3) == 3)
        #expect(try await again([Self.earshot, Self.vendor, Self.other], limit: 3) == 1)
        #expect(try await again([Self.earshot, Self.vendor, Self.other]) == 0)
    }

    @Test func deliveriesAreStoredWithTheirEvents() async throws {
        let test = try TestRegistry { $0.webhooks = [Self.earshot] }
        defer { test.remove() }
        try await test.create("cam1")
        try await test.registry.delete("cam1", by: Actor("t"))
        let events = try await test.registry.events(after: 0, room: nil, limit: 10)
        #expect(events.map(\.kind) == [.roomCreated, .roomClosed, .roomDeleted])
        #expect(try await test.registry.deliveries(state: .pending, room: "cam1", before: nil, limit: 10).map(\.event) == events.reversed())
    }

    /// A target that answers again gets what its outage had put off soon, not after the longest wait. What it refused, and other targets', waits on.
    @Test func whatAnOutagePutOffIsDueSoon() async throws {
        let test = try TestRegistry { $0.webhooks = [Self.earshot, Self.other] }
        defer { test.remove() }
        for room in ["lost", "broken", "refused", "soon", "fresh"] { try await test.create(room) }
        let tries: [String: (status: Int?, after: Int64)] = [
            "lost": (nil, 900_000), "broken": (503, 900_000), "refused": (422, 900_000), "soon": (500, 5_000),
        ]
        for entry in try await test.registry.dueDeliveries(limit: 100).due {
            guard let room = entry.event.roomID?.rawValue, let attempt = tries[room] else { continue }
            try await test.registry.recordAttempt(
                entry.id, status: attempt.status, error: "no", durationMs: 1, retryAt: test.now + attempt.after)
        }
        #expect(try await test.registry.hastenAfterOutage(of: Self.earshot, spreadMs: 10_000) == 2)
        #expect(try await test.registry.hastenAfterOutage(of: Self.earshot, spreadMs: 10_000) == 0, "once")
        func waits(_ target: WebhookTarget) async throws -> [String: Int64] {
            let list = try await test.registry.deliveries(state: .pending, room: nil, target: target, before: nil, limit: 100)
            return Dictionary(uniqueKeysWithValues: list.map { ($0.event.roomID?.rawValue ?? "-", $0.dueAt - test.now) })
        }
        let own = try await waits(Self.earshot)
        for room in ["lost", "broken"] { #expect((0..<10_000).contains(own[room] ?? -1), "\(own)") }
        #expect(own["refused"] == 900_000 && own["soon"] == 5_000 && own["fresh"] == 0, "\(own)")
        #expect(try await waits(Self.other)["lost"] == 900_000)
    }

    /// A delivery that still waits is not copied: it is due now, and so is what it waits behind.
    @Test func oneThatWaitsIsDueNowInsteadOfCopied() async throws {
        let test = try TestRegistry { $0.webhooks = [Self.earshot] }
        defer { test.remove() }
        try await test.create("cam1")
        try await test.apply(.renew(byMs: 1), "cam1")
        let head = try #require(try await test.registry.dueDeliveries(limit: 10).due.first)
        try await test.registry.recordAttempt(head.id, status: 500, error: "no", durationMs: 1, retryAt: test.now + 900_000)
        let all = try await test.registry.deliveries(state: .pending, room: nil, before: nil, limit: 10)
        let behind = try #require(all.first)
        #expect(all.count == 2 && behind.id != head.id)
        #expect(try await self.due(test, Self.earshot).isEmpty)
        #expect(try await test.registry.redeliver(behind.id)?.id == behind.id)
        #expect(try await self.due(test, Self.earshot) == ["cam1 room.created"], "in order")
        #expect(
            try await test.registry.deliveries(state: .pending, room: nil, before: nil, limit: 10).map(\.id) == all.map(\.id), "no copy")
        #expect(try await test.registry.redeliver(head.id)?.attempts == 1)
    }

    // MARK: - Idempotency

    /// Makes a room as a call with a key does.
    private func create(_ id: String?, _ key: IdempotencyKey, _ test: TestRegistry) async throws -> Room {
        var new = NewRoom(policy: RoomPolicy())
        new.id = id.map { RoomID(stored: $0) }
        let keeping = KeptAnswer<Room>(key: key) { StoredAnswer(status: 201, body: "{\"a\":'\($0.id)") }
        return try await test.registry.create(new, by: Actor("t"), keeping: keeping)
    }

    @Test func aKeyWorksOnce() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let key = IdempotencyKey(tokenID: 1, key: "k'1", fingerprint: "f")
        #expect(try await test.registry.storedAnswer(key) == nil)
        _ = try await self.create("cam1", key, test)
        // The answer is stored together with the effect.
        #expect(try await test.registry.storedAnswer(key) == StoredAnswer(status: 201, body: "{\"a\":'cam1"))
        await #expect(throws: RegistryError.keyBusy("k'1")) { try await self.create("cam2", key, test) }
        let reused = IdempotencyKey(tokenID: 1, key: "k'1", fingerprint: "g")
        await #expect(throws: RegistryError.keyReused("k'1")) { try await test.registry.storedAnswer(reused) }
        await #expect(throws: RegistryError.keyReused("k'1")) { try await self.create("cam2", reused, test) }
        await #expect(throws: RegistryError.keyReused("k'1")) {
            try await test.registry.keep(StoredAnswer(status: 200, body: ""), for: reused)
        }
        #expect(test.kinds == [.roomCreated])
        // Another token's key is another key; a refused call uses none.
        let other = IdempotencyKey(tokenID: 2, key: "k'1", fingerprint: "f")
        await #expect(throws: RegistryError.self) { try await self.create("cam1", other, test) }
        #expect(try await test.registry.storedAnswer(other) == nil)
        try await test.registry.start()
        await test.advance(StoreAccess.answersMs + 60_001)
        #expect(try await test.registry.storedAnswer(key) == nil)
    }

    /// An effect is not stored without its answer.
    @Test func anAnswerThatCannotBeMadeUndoesItsCall() async throws {
        struct Unspeakable: Error {}
        let test = try TestRegistry()
        defer { test.remove() }
        let key = IdempotencyKey(tokenID: 1, key: "k", fingerprint: "f")
        var new = NewRoom(policy: RoomPolicy())
        new.id = RoomID(stored: "cam1")
        let room = new
        await #expect(throws: RegistryError.self) {
            try await test.registry.create(room, by: Actor("t"), keeping: KeptAnswer(key: key) { _ in throw Unspeakable() })
        }
        #expect(test.kinds == [])
        await #expect(throws: RegistryError.noSuchRoom("cam1")) { try await test.registry.room("cam1") }
        #expect(try await self.create("cam1", key, test).id.rawValue == "cam1")
    }

    /// A key that an earlier version stored without an answer. Its call was carried out and is not repeated.
    @Test func aKeyWithoutItsAnswerIsTold() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let key = IdempotencyKey(tokenID: 1, key: "k", fingerprint: "f")
        try test.registry.store.transaction {
            try $0.run("INSERT INTO answers (token_id, key, fingerprint, created_at) VALUES (1, 'k', 'f', \(test.now))")
        }
        await #expect(throws: RegistryError.keyOutcomeUnknown("k")) { try await test.registry.storedAnswer(key) }
        await #expect(throws: RegistryError.keyOutcomeUnknown("k")) { try await self.create("cam1", key, test) }
        #expect(test.kinds == [])
        try await test.registry.start()
        await test.advance(StoreAccess.answersMs + 60_001)
        #expect(try await test.registry.storedAnswer(key) == nil)
    }

    @Test func twoRequestsWithOneKeyHaveOneEffect() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let key = IdempotencyKey(tokenID: 1, key: "k", fingerprint: "f")
        let made = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<20 { group.addTask { (try? await self.create(nil, key, test)) != nil } }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(made == 1 && test.kinds == [.roomCreated])
    }

    // MARK: - Tokens

    @Test func tokensAreHashedAndRevoked() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        let (token, secret) = try await test.registry.createToken(name: "ops'; --", role: .ops)
        #expect(secret.hasPrefix("earshot_") && secret.utf8.count == 40)
        #expect(try await test.registry.token(secret: secret) == token)
        #expect(try await test.registry.token(secret: secret + "x") == nil)
        #expect(try await test.registry.token(secret: "' OR 1=1 --") == nil)
        #expect(try test.sql(Int.self, "SELECT count(*) FROM tokens WHERE hash LIKE '%earshot_%' OR length(hash) <> 64") == 0)
        #expect(await fieldError { try await test.registry.createToken(name: "ops'; --", role: .backend) }?.field == "name")
        #expect(await fieldError { try await test.registry.createToken(name: "", role: .backend) }?.field == "name")
        #expect(await fieldError { try await test.registry.createToken(name: "a\nb", role: .backend) }?.field == "name")
        // The command line's store, beside the server.
        let store = try TokenStore(try TestPostgres.store(in: test.directory))
        defer { store.close() }
        #expect(try store.list() == [token])
        let (second, secondSecret) = try store.create(name: "app", role: .backend)
        #expect(try await test.registry.token(secret: secondSecret)?.id == second.id)
        #expect(try store.revoke(token.id)?.revokedAt != nil)
        #expect(try store.revoke(99) == nil)
        #expect(try await test.registry.token(secret: secret) == nil)
        #expect(try await test.registry.tokens().map(\.revokedAt).map { $0 == nil } == [false, true])
        // A revoked token's name is free again.
        _ = try await test.registry.createToken(name: "ops'; --", role: .admin)
    }

    // MARK: - Forgetting

    @Test func oldHistoryIsForgottenInSteps() async throws {
        let test = try TestRegistry {
            $0.webhooks = [Self.earshot]
            $0.historyMs = 1_000_000
        }
        defer { test.remove() }
        try await test.registry.start()
        try await test.create("cam1") { $0.policy.neverStartedMs = 7 * 86_400_000 }
        for _ in 0..<300 { _ = try await test.apply(.renew(byMs: 1), "cam1") }
        let grant = try await test.push("live/cam1").get()
        test.registry.pushEnded(grant.sequence, .clientStopped)
        await test.settle()
        await test.advance(1_000_001)
        for _ in 0..<5 { await test.advance(101) }
        #expect(try test.sql(Int.self, "SELECT count(*) FROM events") == 0)
        #expect(try test.sql(Int.self, "SELECT count(*) FROM pushes") == 0)
        // Its target never answered in all that time: given up, then deleted.
        #expect(try test.sql(Int.self, "SELECT count(*) FROM webhook_deliveries WHERE state = 'pending'") == 0)
        // Deleted numbers are not reused.
        try await test.apply(.close, "cam1")
        #expect(test.events.last?.number == 302 && test.events.last?.id == 302)
        #expect(try await test.registry.lastEventID() == 302)
        #expect(try await test.push("live/new", mayCreateRoom: true).get().sequence > grant.sequence)
    }
}

/// JSON text that the store writes and accepts.
@Suite struct JSONTextTests {
    @Test(arguments: [
        ("{}", true), (" { \"a\" : [ 1 , -0.5e+3 , true , null , \"\\u00e9\\n\" ] } ", true), ("{\"a\":{}}", true), ("", false),
        ("[]", false),
        ("null", false), ("{\"a\":1,}", false), ("{a:1}", false), ("{\"a\":01}", false), ("{\"a\":1.}", false), ("{\"a\":+1}", false),
        ("{\"a\":\"\t\"}", false), ("{\"a\":\"\\x\"}", false), ("{\"a\":\"\\u12g4\"}", false), ("{\"a\":tru}", false),
        ("{\"a\":1}x", false),
        ("{\"a\"}", false), ("{\"a\":\"", false), ("{\"a\":[1}", false), ("{\"a\":NaN}", false), ("\u{FEFF}{}", false), ("{", false),
    ]) func objectsAreTold(_ text: String, _ isObject: Bool) {
        #expect(JSONParser.isObject(text, deepest: 3) == isObject)
    }

    @Test func depthIsBounded() {
        #expect(JSONParser.isObject(#"{"a":[[1]]}"#, deepest: 3))
        #expect(!JSONParser.isObject(#"{"a":[[[1]]]}"#, deepest: 3))
    }

    @Test func whatIsWrittenIsRead() throws {
        var text: [JSONValue.Member] = []
        text.add("a\"", "q\"\\\n\t\r\u{1}\u{7F}é💥")
        text.add("n", Int64.min)
        text.add("none", nil as String?)
        text.add("list", ["x", "\u{0}"])
        #expect(JSONParser.isObject(text.text, deepest: 2))
        let event = RoomEvent(id: 1, number: 1, kind: .roomUpdated, roomID: nil, instance: 1, at: 0, data: text.text)
        let data = try fields(event)
        #expect(data["a\""] == "q\"\\\n\t\r\u{1}\u{7F}é💥" && data["n"] == "-9223372036854775808" && data["none"] == nil)
    }
}
