package import Logging
import NIOCore
import Relay
package import RoomStore
import Rooms
import ServiceLifecycle

/// Runs the room registry: reports viewers and watches the clock. On shutdown it lets the last facts reach the store.
///
/// First in the group, so that it stops last, after all connections have reported how their pushes ended.
package struct RoomService: Service {
    private let rooms: RoomRegistry
    private let control: LiveControl
    private let streams: LiveStreams
    private let storeWatch: StoreWatch
    private let log: Logger

    package init(_ rooms: RoomRegistry, _ control: LiveControl, _ streams: LiveStreams, _ storeWatch: StoreWatch, log: Logger) {
        self.rooms = rooms
        self.control = control
        self.streams = streams
        self.storeWatch = storeWatch
        self.log = log
    }

    private static let reportInterval = Duration.seconds(2)
    private static let watchInterval = TimeAmount.seconds(1)

    package func run() async throws {
        let rooms = self.rooms
        let watch = self.streams.allLoops.first?.relay.eventLoop.scheduleRepeatedTask(
            initialDelay: Self.watchInterval, delay: Self.watchInterval
        ) { _ in rooms.watchClock() }
        defer { watch?.cancel() }
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                self.control.reportViewers()
                self.storeWatch.look(rooms.storeStatus, commits: rooms.counters.commits)
                // Cancelled: the server shuts down.
                do { try await Task.sleep(for: Self.reportInterval) } catch { return }
            }
        }
        await self.rooms.stop()
        if let problem = self.rooms.endProblem {
            self.log.warning("The store was not closed cleanly; the next start repairs it", metadata: ["problem": "\(problem)"])
        }
    }
}
