import Foundation
import GRDB
import PostgresTestSupport
import Support
import Synchronization

@testable import RoomRegistry
@testable import Store
@testable import Rooms

/// A registry on a real file in a folder of its own, or on a database of its own, with a clock that tests set.
final class TestRegistry: Sendable {
    let directory: String
    let registry: RoomRegistry
    private let time: TestTime
    private let told = Mutex<[RoomOutcome]>([])

    /// Start of every test, in milliseconds since 1970: 2026-11-21T10:00:00Z.
    static let start: Int64 = 1_795_255_200_000

    /// With `clock`, time comes from it instead of `time`.
    init(
        directory: String? = nil, time: TestTime = TestTime(), clock: RoomClock? = nil,
        _ change: (inout RoomRegistry.Settings) -> Void = { _ in }
    ) throws {
        let folder = directory ?? NSTemporaryDirectory() + "earshot-rooms-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        self.directory = folder
        self.time = time
        var settings = RoomRegistry.Settings()
        settings.isExclusive = false
        change(&settings)
        let location = try TestPostgres.store(in: folder)
        self.registry = try RoomRegistry(location, settings: settings, clock: clock ?? RoomClock(now: { time.now }))
        self.registry.onOutcome { [weak self] outcomes in self?.told.withLock { $0 += outcomes } }
    }

    /// Opens the same folder again as after a kill: the first registry finishes nothing.
    func restarted(_ change: (inout RoomRegistry.Settings) -> Void = { _ in }) async throws -> TestRegistry {
        let next = try TestRegistry(directory: self.directory, time: self.time, change)
        try await next.registry.start()
        return next
    }

    var now: Int64 { self.time.now }

    /// Lets time pass and applies what becomes due.
    func advance(_ ms: Int64) async {
        self.time.advance(ms)
        await self.registry.runDue()
    }

    /// Lets time pass without the timer.
    func pass(_ ms: Int64) { self.time.advance(ms) }

    var outcomes: [RoomOutcome] { self.told.withLock { $0 } }
    var events: [RoomEvent] { self.outcomes.compactMap { if case .event(let event) = $0 { event } else { nil } } }
    var kinds: [RoomEvent.Kind] { self.events.map(\.kind) }
    var cuts: [String] {
        self.outcomes.compactMap { outcome in
            guard case .cut(let path, let sequence, let end, let endsViewers) = outcome else { return nil }
            return "\(path) \(sequence.map { String($0.rawValue) } ?? "-") \(end.rawValue)\(endsViewers ? " viewers" : "")"
        }
    }

    /// How long streams are awaited, in seconds since the start, and whether their room ends then.
    var waits: [String] {
        self.outcomes.compactMap { outcome in
            guard case .waits(let path, let wait) = outcome else { return nil }
            return "\(path) \((wait.untilMs - Self.start) / 1_000)\(wait.endsRoom ? " room" : "")"
        }
    }

    /// Waits until everything submitted before is on disk.
    func settle() async { _ = await self.registry.result { _ in } }

    func remove() {
        TestPostgres.remove(self.directory)
        try? FileManager.default.removeItem(atPath: self.directory)
    }

    /// Queries the file or database beside the registry.
    func sql<T: DatabaseValueConvertible>(_ type: T.Type = T.self, _ sql: String) throws -> T? {
        if let connection = try TestPostgres.connect(self.directory) {
            let value = try StoreAccess(connection).first(sql) { (row: inout RowReader) -> String? in row.optional() } ?? nil
            return value.flatMap { T.fromDatabaseValue(Int64($0)?.databaseValue ?? $0.databaseValue) }
        }
        return try DatabaseQueue(path: self.directory + "/earshot.db").read { db in try T.fetchOne(db, sql: sql) }
    }

    func execute(_ sql: String) throws {
        if let connection = try TestPostgres.connect(self.directory) {
            try connection.runScript(sql)
            return try connection.flush()
        }
        var configuration = Configuration()
        configuration.busyMode = .timeout(5)
        try DatabaseQueue(path: self.directory + "/earshot.db", configuration: configuration).writeWithoutTransaction { db in
            try db.execute(sql: sql)
        }
    }

    // MARK: - Shorthand

    @discardableResult
    func create(_ id: String? = nil, _ change: (inout NewRoom) -> Void = { _ in }) async throws -> Room {
        var new = NewRoom(policy: RoomPolicy())
        if let id { new.id = try RoomID(checking: id) }
        change(&new)
        return try await self.registry.create(new, by: Actor("test"))
    }

    func push(_ path: String, from address: String = "192.0.2.1", mayCreateRoom: Bool = false, room: String? = nil) async
        -> Result<PushGrant, PushRefusal>
    {
        guard let path = StreamPath(path) else { return .failure(.noRoom) }
        return await self.registry.admitPush(
            PushRequest(path: path, clientAddress: address, session: 7, parameters: "a=1", mayCreateRoom: mayCreateRoom, room: room))
    }

    /// Pushes media to a stream: the room is live when this returns.
    @discardableResult
    func goLive(_ path: String) async throws -> PushGrant {
        let grant = try await self.push(path).get()
        self.registry.mediaArrived(grant.sequence, MediaSummary())
        await self.settle()
        return grant
    }

    @discardableResult
    func apply(_ input: RoomInput, _ id: String, _ action: String = "test") async throws -> Room {
        try await self.registry.apply(input, to: id, action: action, by: Actor("test"))
    }
}

/// A clock that stands still until it is advanced. Any thread.
final class TestTime: Sendable {
    private let ms = Mutex(TestRegistry.start)
    var now: Int64 { self.ms.withLock { $0 } }
    func advance(_ ms: Int64) { self.ms.withLock { $0 += ms } }
}

/// A format that rooms and their store know nothing of.
extension WebhookTarget.Format {
    static let vendor = Self(rawValue: "vendor")
}

/// An event's data, for comparison.
func fields(_ event: RoomEvent) throws -> [String: String] {
    let object = try JSONSerialization.jsonObject(with: Data(event.data.utf8)) as? [String: Any]
    return (object ?? [:]).mapValues { "\($0)" }
}

/// The field error with which a call is refused. Nil when it succeeds or fails for another reason.
func fieldError<T>(_ body: () async throws -> T) async -> FieldError? {
    do {
        _ = try await body()
        return nil
    } catch let error as RegistryError {
        return if case .invalid(let error) = error { error } else { nil }
    } catch {
        return nil
    }
}

extension TestPostgres {
    /// A connection beside the registry's. Nil where the tests run on SQLite.
    static func connect(_ folder: String) throws -> PostgresConnection? {
        guard let location = try self.location(of: folder) else { return nil }
        let connection = PostgresConnection(.init(url: location.url))
        try connection.open()
        return connection
    }
}

/// What tests need to say in the words of the store that they run on.
enum StoreWords {
    /// The store's failure when it takes no writes.
    static let readOnly = TestPostgres.isOn ? "PostgreSQL 25006" : "SQLite 8: attempt to write a readonly database"

    /// One line of all values, in their order.
    static func list(_ column: String, from query: String) -> String {
        TestPostgres.isOn
            ? "SELECT string_agg(\(column)::text, ',') FROM (\(query)) AS listed" : "SELECT group_concat(\(column)) FROM (\(query))"
    }
}

extension TestRegistry {
    /// Makes the store refuse writes, or take them again.
    func refuseWrites(_ refuses: Bool) throws {
        guard let other = try TestPostgres.connect(self.directory) else { return try self.pragma("query_only = \(refuses ? 1 : 0)") }
        // For this connection and for those to come: one that cannot write is given up.
        try other.run("SET default_transaction_read_only = off")
        let name = try StoreAccess(other).first("SELECT current_database()") { (row: inout RowReader) -> String in row.next() }
        try other.run("ALTER DATABASE \(name ?? "") SET default_transaction_read_only = \(refuses ? "on" : "off")")
        try other.flush()
        try self.registry.store.writerRead { store in
            try store.run("SET default_transaction_read_only = \(refuses ? "on" : "off")")
            try store.connection.flush()
        }
    }

    /// Leaves the store no room for new rooms, or gives it room again.
    func fill(_ isFull: Bool) throws {
        guard let connection = try TestPostgres.connect(self.directory) else {
            return try self.pragma("max_page_count = \(isFull ? try self.sql(Int.self, "PRAGMA page_count") ?? 0 : 1_000_000_000)")
        }
        guard isFull else { return try connection.runDefinitions("DROP TRIGGER test_full ON rooms") }
        try connection.runDefinitions(
            """
            CREATE OR REPLACE FUNCTION test_full() RETURNS TRIGGER LANGUAGE plpgsql AS $$
            BEGIN RAISE EXCEPTION 'could not extend file: the disk is full' USING ERRCODE = '53100'; END $$;
            CREATE TRIGGER test_full BEFORE INSERT ON rooms FOR EACH ROW EXECUTE FUNCTION test_full()
            """)
    }
}
