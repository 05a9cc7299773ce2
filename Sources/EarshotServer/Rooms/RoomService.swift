import Rooms
import ServiceLifecycle

/// The room registry's life among the services: reports viewers while the server runs, and lets the last facts reach the store at its end.
///
/// First in the group: so it stops last, when all connections have said how their pushes ended.
struct RoomService: Service {
    let core: ServerCore

    private static let reportInterval = Duration.seconds(2)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                self.core.reportViewers()
                // Cancelled: the server goes.
                do { try await Task.sleep(for: Self.reportInterval) } catch { return }
            }
        }
        await self.core.rooms.stop()
    }
}
