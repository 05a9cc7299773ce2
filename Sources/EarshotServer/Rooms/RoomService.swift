import Logging
import NIOCore
import Relay
import Rooms
import ServiceLifecycle

/// The room registry's life among the services: reports viewers and watches the clock while the server runs, and lets the last facts reach
/// the store at its end.
///
/// First in the group: so it stops last, when all connections have said how their pushes ended.
struct RoomService: Service {
    let core: ServerCore

    private static let reportInterval = Duration.seconds(2)
    private static let watchInterval = TimeAmount.seconds(1)

    func run() async throws {
        let rooms = self.core.rooms
        let watch = self.core.allLoops.first?.relay.eventLoop.scheduleRepeatedTask(
            initialDelay: Self.watchInterval, delay: Self.watchInterval
        ) { _ in rooms.watchClock() }
        defer { watch?.cancel() }
        await cancelWhenGracefulShutdown {
            var watch = StoreWatch(log: self.core.log)
            while !Task.isCancelled {
                self.core.reportViewers()
                watch.look(self.core.rooms.storeStatus)
                // Cancelled: the server goes.
                do { try await Task.sleep(for: Self.reportInterval) } catch { return }
            }
        }
        await self.core.rooms.stop()
        if let problem = self.core.rooms.endProblem {
            self.core.log.warning("The store was not closed cleanly; the next start mends that", metadata: ["problem": "\(problem)"])
        }
    }
}

/// Tells of a store in trouble once when that begins, and once when it is over. A value.
struct StoreWatch {
    private let log: Logger
    private var isInTrouble = false
    private var toldDropped = 0

    init(log: Logger) { self.log = log }

    mutating func look(_ status: StoreStatus) {
        switch (status.problem, self.isInTrouble) {
        case (let problem?, false):
            self.isInTrouble = true
            self.log.error("The store is in trouble; what runs goes on, nothing new begins", metadata: ["problem": "\(problem)"])
        case (nil, true):
            self.isInTrouble = false
            self.log.notice("The store is well again", metadata: ["droppedFacts": "\(status.droppedFacts - self.toldDropped)"])
            self.toldDropped = status.droppedFacts
        default: break
        }
    }
}
