import Listening
import RoomRegistry
import ServiceLifecycle
import Streaming
import Support
import UnixSignals

/// Reports to the service manager that the server is ready, its status, that it still works, and that it ends.
///
/// The first service of a group: it ends last, and reports while the others end.
struct ServiceReports: Service {
    let manager: ServiceManager
    /// Longest time that a shutdown takes.
    let stopsWithinMs: @Sendable () -> Int64
    /// Returns when all event loops and queues have run a task. If one of them is stuck, it does not return, and the reports stop.
    let proof: @Sendable () async throws -> Void
    /// One line for people.
    let status: @Sendable () async -> String

    private static let mostPauseMs = 10_000

    /// Three reports within the manager's limit, so that a single late one does no harm.
    private var pause: Duration { .milliseconds(max(1, min(Self.mostPauseMs, (self.manager.watchdogMs ?? Int.max) / 3))) }

    func run() async throws {
        // A manager whose queue is full gets this state with the next report.
        // A program that was started in place of another one has been given more time than usual.
        let watchdog = self.manager.watchdogMs.map { [ServiceState.watchdog(everyMs: Int64($0))] } ?? []
        let isReady = self.manager.send([.ready, .status(await self.status())] + watchdog)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.announceStop() }
            group.addTask { await cancelWhenGracefulShutdown { await self.report(isReady) } }
            await group.waitForAll()
        }
    }

    private func report(_ hasSaidReady: Bool) async {
        var isReady = hasSaidReady
        var last = ""
        while !Task.isCancelled {
            do {
                try await Task.sleep(for: self.pause)
                try await self.proof()
            } catch {
                // The server ends, or its loops have ended: there is nothing left to check.
                return
            }
            var states: [ServiceState] = self.manager.watchdogMs == nil ? [] : [.alive]
            if !isReady { states.append(.ready) }
            let status = await self.status()
            if status != last { states.append(.status(status)) }
            guard !states.isEmpty, self.manager.send(states) else { continue }
            isReady = true
            last = status
        }
    }

    /// Called at the signal itself, because the group's shutdown reaches this service last.
    private func announceStop() async {
        for await _ in await UnixSignalsSequence(trapping: .sigterm, .sigint).cancelOnGracefulShutdown() {
            self.manager.send([.stopping(withinMs: self.stopsWithinMs()), .status("Stopping")])
        }
    }
}

extension ServiceReports {
    /// The watchdog watches the event loops and the registry of rooms.
    init(
        _ manager: ServiceManager, _ parts: ServerParts, stopsWithinMs: @escaping @autoclosure @Sendable () -> Int64,
        isRestarting: @escaping @Sendable () -> Bool = { false }
    ) {
        self.init(
            manager: manager, stopsWithinMs: stopsWithinMs,
            proof: {
                _ = try await parts.streams.collect { _ in [()] }
                await parts.rooms.turn()
            },
            status: { isRestarting() ? "Restarting" : Self.status(of: parts) })
    }

    private static func status(of parts: ServerParts) -> String {
        if parts.streams.draining { return "Stopping" }
        let publishers = parts.connections.admission.current.publishers
        let viewers = parts.streams.viewers
        let figures = "\(publishers) \(publishers == 1 ? "publisher" : "publishers"), \(viewers) \(viewers == 1 ? "viewer" : "viewers")"
        return parts.rooms.storeStatus.problem.map { "\(figures); nothing new can begin: \($0)" } ?? figures
    }
}
