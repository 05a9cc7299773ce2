import Access
package import Delivery
import Logging
import NIOCore
package import Relay
package import RoomRegistry
package import Rooms
package import ServerConfiguration
import ServiceLifecycle
package import Support
import Synchronization
import Upstream

/// The links to other servers, by task. Any thread.
package final class RelayTasks: Sendable {
    let config: Live<ServerConfig>
    let rooms: RoomRegistry
    let admission: RoomAdmission
    let connections: Connections
    private let rows = Mutex<[Int64: ForwardLink]>([:])
    /// Addresses that no key opens, or that are none, by task; each is told of once.
    private let failed = Mutex<[Int64: String]>([:])
    /// Created for the first task.
    private let vaults = Mutex<URLVault?>(nil)

    package init(_ config: Live<ServerConfig>, _ rooms: RoomRegistry, _ admission: RoomAdmission, _ connections: Connections) {
        self.config = config
        self.rooms = rooms
        self.admission = admission
        self.connections = connections
    }

    var streams: LiveStreams { self.admission.streams }
    var log: Logger { self.connections.log }

    package var all: [ForwardLink] { self.rows.withLock { $0.values.sorted { $0.task.id < $1.task.id } } }

    package func find(_ id: Int64) -> ForwardLink? { self.rows.withLock { $0[id] } }

    /// Number of links that publish a stream here now.
    package var publishing: Int { self.all.count { $0.isPublishing } }

    /// Bytes that each stream got from its present link.
    package var received: [(path: String, bytes: UInt64)] {
        self.all.compactMap(\.received)
    }

    /// The vault that seals addresses for the store. Reads or creates its key, off the caller's thread. Throws ``KeyFileError``.
    private func vault() async throws -> URLVault {
        if let vault = self.vaults.withLock({ $0 }) { return vault }
        let config = self.config.current
        let vault = try await DiskWork.run { Result { try URLVault(ClusterKey(config), directory: config.data.directory) } }.get()
        self.vaults.withLock { $0 = vault }
        return vault
    }

    /// Stores a new task and runs it.
    package func create(
        _ direction: RelayTask.Direction, _ path: StreamPath, url: String, onDemand: Bool,
        keeping: KeptAnswer<RelayTask>? = nil
    ) async throws -> RelayTask {
        let sealed = try await self.vault().seal(url, direction, path)
        let task = try await self.rooms.createRelayTask(direction, path, url: sealed, onDemand: onDemand, keeping: keeping)
        _ = try self.add(task.with(url: url))
        return task
    }

    /// Runs the stored tasks. Seals addresses anew that an earlier version stored unsealed, or that were sealed with a former key.
    func start() async throws {
        for task in try await self.rooms.relayTasks() { await self.run(task) }
    }

    /// Runs tasks that other nodes have created, and ends those that they have deleted. Does nothing where the rooms are not shared.
    func follow() async {
        // What this server creates or deletes during the read stays as it is.
        let known = Set(self.all.map(\.task.id))
        guard self.rooms.isShared, let stored = try? await self.rooms.relayTasks() else { return }
        let ids = Set(stored.map(\.id))
        for id in known where !ids.contains(id) { self.remove(id) }
        let failed = self.failed.withLock { failed in
            failed = failed.filter { ids.contains($0.key) }
            return failed
        }
        for task in stored where !known.contains(task.id) && self.find(task.id) == nil && failed[task.id] != task.url {
            await self.run(task)
        }
    }

    private func run(_ task: RelayTask) async {
        do {
            let vault = try await self.vault()
            guard let url = URLVault.isSealed(task.url) ? vault.open(task.url, task.direction, task.path) : task.url else {
                self.failed.withLock { $0[task.id] = task.url }
                throw KeyFileError("its address was sealed with another key than \(vault.origin); delete the task and create it again")
            }
            do throws(UpstreamError) {
                _ = try self.add(task.with(url: url))
            } catch {
                self.failed.withLock { $0[task.id] = task.url }
                throw error
            }
            // It runs, whether or not the store takes this now.
            if vault.isOutdated(task.url, task.direction, task.path) {
                try await self.rooms.setRelayTask(task.id, url: try vault.seal(url, task.direction, task.path))
            }
        } catch {
            self.log.error("Relay task", metadata: ["task": "\(task.id)", "error": "\(error)"])
        }
    }

    /// Runs a stored task unless it runs already; its address is unsealed.
    private func add(_ task: RelayTask) throws(UpstreamError) -> ForwardLink {
        let link = try ForwardLink(task, of: self)
        let known = self.rows.withLock { rows in
            defer { if rows[task.id] == nil { rows[task.id] = link } }
            return rows[task.id]
        }
        if known == nil { link.begin() }
        return known ?? link
    }

    package func remove(_ id: Int64) {
        let link = self.rows.withLock { $0.removeValue(forKey: id) }
        link?.delete("deleted")
    }

    package func publishBegan(_ stream: Relay.Stream) { self.streamBegan(stream.path) }

    func streamBegan(_ path: String) {
        for link in self.links(of: path) { link.streamBegan() }
    }

    /// Starts the stream's on-demand pulls for a player. Returns whether a link may bring the stream.
    @discardableResult
    package func wanted(_ path: String) -> Bool {
        let links = self.links(of: path).filter { $0.task.direction == .pull && $0.task.onDemand }
        for link in links { link.wanted() }
        return !links.isEmpty
    }

    private func links(of path: String) -> [ForwardLink] {
        self.rows.withLock { rows in rows.isEmpty ? [] : rows.values.filter { $0.task.path.description.exact == path.exact } }
    }

    func sweep() {
        let nowMs = LoopSweeper.nowMs
        for link in self.all { link.sweep(nowMs: nowMs) }
    }

    /// Stops all links and releases them, because each holds the tasks.
    func stopAll() {
        for link in self.rows.exchange([:]).values { link.delete("server_shutdown") }
    }
}

/// Runs the stored links when the server starts.
package struct RelayTaskService: Service {
    private let tasks: RelayTasks

    package init(_ tasks: RelayTasks) {
        self.tasks = tasks
    }

    private static let sweepInterval = Duration.seconds(1)
    /// How often it looks for what other nodes have changed, in sweeps.
    private static let roundsPerPoll = 2

    package func run() async throws {
        try await self.tasks.start()
        await cancelWhenGracefulShutdown {
            var rounds = 0
            while !Task.isCancelled {
                self.tasks.sweep()
                rounds += 1
                if rounds.isMultiple(of: Self.roundsPerPoll) { await self.tasks.follow() }
                // Cancelled: the server shuts down.
                do { try await Task.sleep(for: Self.sweepInterval) } catch { return }
            }
        }
        self.tasks.stopAll()
    }
}
