import Foundation
import PostgresTestSupport
import Synchronization
import TestSupport

@testable import RoomRegistry
@testable import Store
@testable import Rooms

/// Registries that share a database, each as a node of its own, with real clocks.
final class TestCluster: Sendable {
    /// A process that no test can see the end of, on another machine.
    static let foreignProcess = "elsewhere 1 1"

    let location: PostgresLocation
    private let folder: String
    private let nodes = Mutex<[String: TestNode]>([:])
    /// Killed ones whose name another has by now.
    private let former = Mutex<[TestNode]>([])

    init() throws {
        self.folder = NSTemporaryDirectory() + "earshot-cluster-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: true)
        var location = try TestPostgres.location(of: self.folder).orThrow()
        location.folder = nil
        location.cluster = "fingerprint"
        location.readers = 2
        self.location = location
    }

    subscript(name: String) -> TestNode {
        guard let node = self.nodes.withLock({ $0[name] }) else { preconditionFailure("no node \(name)") }
        return node
    }

    /// `proxied`: its way to the database is the node's proxy.
    func join(_ name: String, proxied: Bool = false) async throws {
        var location = self.location
        location.node = name
        let node = try TestNode(name, location, proxied: proxied)
        try await node.registry.start()
        if let killed = self.nodes.withLock({ $0.updateValue(node, forKey: name) }) { self.former.withLock { $0.append(killed) } }
    }

    /// The node does nothing more, and gives nothing up.
    func kill(_ name: String) async {
        let node = self[name]
        await node.registry.abandon()
    }

    /// Lets the node's lease end, as if it could not renew it, until it has been fenced.
    func expireLease(of name: String) async throws {
        try await eventually("the fence") {
            try self.sql("UPDATE nodes SET expires_at = clock_timestamp() - interval '1 s' WHERE name = '\(name)' AND state = 'running'")
            return try self.value("SELECT state FROM nodes WHERE name = '\(name)'") != "running"
        }
    }

    func sql(_ sql: String) throws {
        let connection = try TestPostgres.connect(self.folder).orThrow()
        defer { connection.close() }
        try connection.runScript(sql)
        try connection.flush()
    }

    /// Has its turn to write for so long, as a node at a wave of pushes. On a thread of its own: what blocks, as a start does, may have all of the tasks'.
    func holdWrites(seconds: Double) throws {
        let connection = try TestPostgres.connect(self.folder).orThrow()
        try connection.begin()
        try connection.run("SET LOCAL idle_in_transaction_session_timeout = 0")
        try connection.run("SELECT pg_advisory_xact_lock($1)", [FirstSchemaOfPostgres.writeLock])
        try connection.flush()
        Thread.detachNewThread {
            Thread.sleep(forTimeInterval: seconds)
            connection.rollback()
            connection.close()
        }
    }

    func value(_ sql: String) throws -> String? {
        let connection = try TestPostgres.connect(self.folder).orThrow()
        defer { connection.close() }
        return try StoreAccess(connection).first(sql) { (row: inout RowReader) -> String? in row.optional() } ?? nil
    }

    /// Throws unless every stream has one owner at most, and events and signals have no gap.
    func check() throws {
        let owners = try self.value(
            "SELECT string_agg(app || '/' || name, ', ') FROM (SELECT app, name FROM pushes WHERE ended_at IS NULL GROUP BY app, name HAVING count(*) > 1) p"
        )
        let gaps = try self.value(
            """
            SELECT (SELECT event FROM heads) - (SELECT count(*) FROM events)
                + coalesce((SELECT max(id) - min(id) + 1 - count(*) FROM signals), 0)
            """)
        guard owners == nil, gaps == "0" else {
            throw TimedOut(description: "two owners: \(owners ?? "none"); missing events or signals: \(gaps ?? "")")
        }
    }

    func room(_ id: String, _ policy: RoomPolicy = RoomPolicy()) -> NewRoom {
        var new = NewRoom(policy: policy)
        new.id = RoomID(stored: id)
        return new
    }

    /// Runs registries with these names, and removes the cluster afterwards.
    static func with(_ names: [String] = ["a", "b", "c"], proxied: Bool = false, _ body: (TestCluster) async throws -> Void) async throws {
        let cluster = try TestCluster()
        do {
            for name in names { try await cluster.join(name, proxied: proxied) }
            try await body(cluster)
        } catch {
            await cluster.remove()
            throw error
        }
        await cluster.remove()
    }

    func remove() async {
        for node in self.nodes.withLock({ Array($0.values) }) + self.former.withLock({ $0 }) {
            node.proxy?.mode = .passing
            await node.registry.stop()
            node.proxy?.close()
        }
        TestPostgres.remove(self.folder)
        try? FileManager.default.removeItem(atPath: self.folder)
    }
}

/// One of the cluster's registries, and what it has published.
final class TestNode: Sendable {
    let name: String
    let registry: RoomRegistry
    let proxy: TestProxy?
    private let told = Mutex<[RoomOutcome]>([])

    init(_ name: String, _ location: PostgresLocation, proxied: Bool = false) throws {
        self.name = name
        var location = location
        if proxied {
            let port = try (URLComponents(string: location.url)?.port).orThrow()
            let proxy = try TestProxy(to: UInt16(port))
            location.url = location.url.replacingOccurrences(of: ":\(port)/", with: ":\(proxy.port)/")
            // Texts show in every message: the proxy looks for COMMIT.
            location.prepares = false
            self.proxy = proxy
        } else {
            self.proxy = nil
        }
        self.registry = try RoomRegistry(.postgres(location), settings: .init())
        self.registry.onOutcome { [weak self] outcomes in self?.told.withLock { $0 += outcomes } }
    }

    /// The ids of its own and the others' events, in the order in which it published them.
    var events: [Int64] {
        self.told.withLock { outcomes in
            outcomes.compactMap { outcome in
                switch outcome {
                case .event(let event), .eventElsewhere(let event): event.id
                case .eventMark(let mark): mark.id
                default: nil
                }
            }
        }
    }

    /// Events of other nodes that it did not read, in their order.
    var marks: [EventMark] {
        self.told.withLock { outcomes in outcomes.compactMap { if case .eventMark(let mark) = $0 { mark } else { nil } } }
    }

    var cuts: [String] {
        self.told.withLock { outcomes in
            outcomes.compactMap { outcome in
                guard case .cut(let path, let sequence, let end, _) = outcome else { return nil }
                return "\(path) \(sequence.map { String($0.rawValue) } ?? "-") \(end.rawValue)"
            }
        }
    }

    var drains: [DrainOrder] {
        self.told.withLock { outcomes in outcomes.compactMap { if case .drainAsked(let order) = $0 { order } else { nil } } }
    }

    func push(
        _ path: String, as identity: String, rank: Int64 = 0, _ takeover: PushClaim.Takeover = .sameIdentity,
        isWanted: @escaping @Sendable () -> Bool = { true }
    ) async -> Result<PushGrant, PushRefusal> {
        guard let path = StreamPath(path) else { return .failure(.noRoom) }
        return await self.registry.admitPush(
            PushRequest(
                path: path, clientAddress: "192.0.2.1", session: 7, parameters: "", mayCreateRoom: false,
                claim: PushClaim(identity: identity, rank: rank, takeover: takeover)), isWanted: isWanted)
    }

    func settle() async { _ = await self.registry.result { _ in } }
}

extension RoomRegistry {
    /// As after a kill.
    func abandon() async {
        self.isRunning = false
        await self.pausePolling(true)
        self.store.membership?.lease.stop()
    }

    /// Returns when no look is under way any more.
    func pausePolling(_ yes: Bool) async {
        self.follower?.cancel()
        await self.follower?.value
        self.follower = nil
        if !yes { self.followOthers() }
    }
}

extension Result {
    var isSuccess: Bool { if case .success = self { true } else { false } }
}
