import Access
import LinkTransport
import Logging
import NIOCore
package import Relay
package import RoomRegistry
package import Rooms
package import ServerConfiguration
import ServiceLifecycle
package import Streaming
package import Support
import Synchronization

/// The links to other servers. Any thread.
package final class LinkTable: Sendable {
    let config: Live<ServerConfig>
    let rooms: RoomRegistry
    let admission: RoomAdmission
    let connections: Connections
    private let rows = Mutex<[Int64: RunningLink]>([:])
    /// Addresses that no key opens, or that are none, by link; each is told of once.
    private let failed = Mutex<[Int64: String]>([:])
    /// Created for the first link.
    private let vaults = Mutex<URLVault?>(nil)

    package init(_ config: Live<ServerConfig>, _ rooms: RoomRegistry, _ admission: RoomAdmission, _ connections: Connections) {
        self.config = config
        self.rooms = rooms
        self.admission = admission
        self.connections = connections
    }

    var streams: LiveStreams { self.admission.streams }
    var log: Logger { self.connections.log }

    package var all: [RunningLink] { self.rows.withLock { $0.values.sorted { $0.link.id < $1.link.id } } }

    package func find(_ id: Int64) -> RunningLink? { self.rows.withLock { $0[id] } }

    /// Number of links that publish a stream here now.
    package var publishing: Int { self.all.count { $0.isPublishing } }

    /// Bytes that each stream got from its present link.
    package var received: [(path: String, bytes: UInt64)] { self.all.compactMap(\.received) }

    /// The vault that seals addresses for the store. Reads or creates its key, off the caller's thread. Throws ``KeyFileError``.
    private func vault() async throws -> URLVault {
        if let vault = self.vaults.withLock({ $0 }) { return vault }
        let config = self.config.current
        let vault = try await DiskWork.run { Result { try URLVault(ClusterKey(config), directory: config.data.directory) } }.get()
        self.vaults.withLock { $0 = vault }
        return vault
    }

    /// Stores a new link and runs it.
    package func create(
        _ direction: Link.Direction, _ path: StreamPath, url: String, onDemand: Bool,
        keeping: KeptAnswer<Link>? = nil
    ) async throws -> Link {
        let sealed = try await self.vault().seal(url, direction, path)
        let link = try await self.rooms.createLink(direction, path, url: sealed, onDemand: onDemand, keeping: keeping)
        _ = try self.add(link.with(url: url))
        return link
    }

    /// Runs the stored links. Seals addresses anew that an earlier version stored unsealed, or that were sealed with a former key.
    func start() async throws { for link in try await self.rooms.links() { await self.run(link) } }

    /// Runs links that other nodes have created, and ends those that they have deleted. Does nothing where the rooms are not shared.
    func follow() async {
        // What this server creates or deletes during the read stays as it is.
        let known = Set(self.all.map(\.link.id))
        guard self.rooms.isShared, let stored = try? await self.rooms.links() else { return }
        let ids = Set(stored.map(\.id))
        for id in known where !ids.contains(id) { self.remove(id) }
        let failed = self.failed.withLock { failed in
            failed = failed.filter { ids.contains($0.key) }
            return failed
        }
        for link in stored where !known.contains(link.id) && self.find(link.id) == nil && failed[link.id] != link.url {
            await self.run(link)
        }
    }

    private func run(_ link: Link) async {
        do {
            let vault = try await self.vault()
            guard let url = URLVault.isSealed(link.url) ? vault.open(link.url, link.direction, link.path) : link.url else {
                self.failed.withLock { $0[link.id] = link.url }
                throw KeyFileError("its address was sealed with another key than \(vault.origin); delete the link and create it again")
            }
            do throws(LinkError) {
                _ = try self.add(link.with(url: url))
            } catch {
                self.failed.withLock { $0[link.id] = link.url }
                throw error
            }
            // It runs, whether or not the store takes this now.
            if vault.isOutdated(link.url, link.direction, link.path) {
                try await self.rooms.setLink(link.id, url: try vault.seal(url, link.direction, link.path))
            }
        } catch {
            self.log.error("Link", metadata: ["link": "\(link.id)", "error": "\(error)"])
        }
    }

    /// Runs a stored link unless it runs already; its address is unsealed.
    private func add(_ link: Link) throws(LinkError) -> RunningLink {
        let running = try RunningLink(link, of: self)
        let known = self.rows.withLock { rows in
            defer { if rows[link.id] == nil { rows[link.id] = running } }
            return rows[link.id]
        }
        if known == nil { running.begin() }
        return known ?? running
    }

    package func remove(_ id: Int64) {
        let link = self.rows.withLock { $0.removeValue(forKey: id) }
        link?.delete("deleted")
    }

    package func publishBegan(_ stream: Relay.Stream) { self.streamBegan(stream.path) }

    func streamBegan(_ path: String) { for link in self.links(of: path) { link.streamBegan() } }

    /// Starts the stream's on-demand pulls for a player. Returns whether a link may bring the stream.
    @discardableResult
    package func wanted(_ path: String) -> Bool {
        let links = self.links(of: path).filter { $0.link.direction == .pull && $0.link.onDemand }
        for link in links { link.wanted() }
        return !links.isEmpty
    }

    private func links(of path: String) -> [RunningLink] {
        self.rows.withLock { rows in rows.isEmpty ? [] : rows.values.filter { $0.link.path.description.exact == path.exact } }
    }

    func sweep() {
        let nowMs = LoopSweeper.nowMs
        for link in self.all { link.sweep(nowMs: nowMs) }
    }

    /// Stops all links and releases them, because each holds the table.
    func stopAll() { for link in self.rows.exchange([:]).values { link.delete("server_shutdown") } }
}

/// Runs the stored links when the server starts.
package struct LinkService: Service {
    private let table: LinkTable

    package init(_ table: LinkTable) { self.table = table }

    private static let sweepInterval = Duration.seconds(1)
    /// How often it looks for what other nodes have changed, in sweeps.
    private static let roundsPerPoll = 2

    package func run() async throws {
        try await self.table.start()
        await cancelWhenGracefulShutdown {
            var rounds = 0
            while !Task.isCancelled {
                self.table.sweep()
                rounds += 1
                if rounds.isMultiple(of: Self.roundsPerPoll) { await self.table.follow() }
                // Cancelled: the server shuts down.
                do { try await Task.sleep(for: Self.sweepInterval) } catch { return }
            }
        }
        self.table.stopAll()
    }
}
