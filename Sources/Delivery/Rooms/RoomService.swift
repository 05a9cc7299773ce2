import Logging
import NIOCore
import Relay
import Rooms
import ServiceLifecycle

/// Runs the room registry: reports viewers and watches the clock. On shutdown it lets the last facts reach the store.
///
/// First in the group, so that it stops last, after all connections have reported how their pushes ended.
package struct RoomService: Service {
    package let core: ServerCore

    package init(core: ServerCore) {
        self.core = core
    }

    private static let reportInterval = Duration.seconds(2)
    private static let watchInterval = TimeAmount.seconds(1)

    package func run() async throws {
        let rooms = self.core.rooms
        let watch = self.core.allLoops.first?.relay.eventLoop.scheduleRepeatedTask(
            initialDelay: Self.watchInterval, delay: Self.watchInterval
        ) { _ in rooms.watchClock() }
        defer { watch?.cancel() }
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                self.core.reportViewers()
                self.core.storeWatch.look(rooms.storeStatus, commits: rooms.counters.commits)
                // Cancelled: the server shuts down.
                do { try await Task.sleep(for: Self.reportInterval) } catch { return }
            }
        }
        await self.core.rooms.stop()
        if let problem = self.core.rooms.endProblem {
            self.core.log.warning("The store was not closed cleanly; the next start repairs it", metadata: ["problem": "\(problem)"])
        }
    }
}
