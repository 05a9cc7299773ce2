import Logging
import NIOCore
import Relay
import RoomRegistry
import Rooms
import ServiceLifecycle
import Streaming

/// Runs the room registry: reports viewers and watches the clock. On shutdown it lets the last facts reach the store.
///
/// First in the group, so that it stops last, after all connections have reported how their pushes ended.
struct RoomService: Service {
    let rooms: RoomRegistry
    let control: LiveControl
    let streams: LiveStreams
    let storeWatch: StoreWatch
    let log: Logger

    private static let reportInterval = Duration.seconds(2)
    private static let watchInterval = TimeAmount.seconds(1)

    func run() async throws {
        let rooms = self.rooms
        let watch = self.streams.allLoops.first?.relay.eventLoop.scheduleRepeatedTask(
            initialDelay: Self.watchInterval, delay: Self.watchInterval
        ) { _ in rooms.watchClock() }
        defer { watch?.cancel() }
        await cancelWhenGracefulShutdown {
            var clockWatch = ClockWatch()
            while !Task.isCancelled {
                self.control.reportViewers()
                if let aheadMs = rooms.nodeStatus?.clockAheadMs, let isApart = clockWatch.check(aheadMs) { self.tell(isApart, aheadMs) }
                self.storeWatch.check(rooms.storeStatus, commits: rooms.counters.commits)
                // Cancelled: the server shuts down.
                do { try await Task.sleep(for: Self.reportInterval) } catch { return }
            }
        }
        await self.rooms.stop()
        if let problem = self.rooms.endProblem {
            self.log.warning("The store was not closed cleanly; the next start repairs it", metadata: ["problem": "\(problem)"])
        }
    }

    private func tell(_ isApart: Bool, _ aheadMs: Int64) {
        let ahead: Logger.Metadata = ["databaseAheadSeconds": "\(Double(aheadMs / 100) / 10)"]
        guard isApart else { return self.log.notice("This machine's clock is the database's again", metadata: ahead) }
        self.log.warning(
            "This machine's clock is not the database's: signed URLs, tokens and tickets end too early or too late here; set it by NTP",
            metadata: ahead)
    }
}
