import Logging
import NIOCore
import Rooms
import ServiceLifecycle
import Synchronization
import Upstream

/// The links to other servers, by task. Any thread.
final class RelayTasks: Sendable {
    private let rows = Mutex<[Int64: RelayLink]>([:])

    var all: [RelayLink] { self.rows.withLock { $0.values.sorted { $0.task.id < $1.task.id } } }

    func find(_ id: Int64) -> RelayLink? { self.rows.withLock { $0[id] } }

    /// Links that publish a stream here now.
    var publishing: Int { self.all.count { $0.isPublishing } }

    /// Runs a task that is in the store.
    func add(_ task: RelayTask, core: ServerCore) throws(UpstreamError) -> RelayLink {
        let link = try RelayLink(task, core: core)
        self.rows.withLock { $0[task.id] = link }
        link.begin()
        return link
    }

    func remove(_ id: Int64) {
        let link = self.rows.withLock { $0.removeValue(forKey: id) }
        link?.delete()
    }

    func streamBegan(_ path: String, of core: ServerCore) {
        for link in self.links(of: path) { link.streamBegan() }
    }

    /// Somebody plays, or tries to. True: a link may bring the stream.
    @discardableResult
    func wanted(_ path: String) -> Bool {
        let links = self.links(of: path).filter { $0.task.direction == .pull && $0.task.onDemand }
        for link in links { link.wanted() }
        return !links.isEmpty
    }

    private func links(of path: String) -> [RelayLink] {
        self.rows.withLock { rows in rows.isEmpty ? [] : rows.values.filter { $0.task.path.description == path } }
    }

    func sweep() {
        let nowMs = LoopSweeper.nowMs
        for link in self.all { link.sweep(nowMs: nowMs) }
    }

    func stopAll() {
        for link in self.all { link.delete() }
    }
}

/// The links' life among the services: those in the store run from the start.
struct RelayTaskService: Service {
    let core: ServerCore

    private static let sweepInterval = Duration.seconds(1)

    func run() async throws {
        for task in try await self.core.rooms.relayTasks() {
            do throws(UpstreamError) {
                _ = try self.core.relayTasks.add(task, core: self.core)
            } catch {
                self.core.log.error("Relay task", metadata: ["task": "\(task.id)", "error": "\(error)"])
            }
        }
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                self.core.relayTasks.sweep()
                // Cancelled: the server goes.
                do { try await Task.sleep(for: Self.sweepInterval) } catch { return }
            }
        }
        self.core.relayTasks.stopAll()
    }
}
