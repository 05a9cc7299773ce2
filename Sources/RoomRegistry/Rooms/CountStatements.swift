import Rooms
import Store

extension StoreAccess {
    func figures() throws -> StoreFigures {
        StoreFigures(
            rooms: try self.roomCounts(),
            waitingDeliveries: Int(
                try self.number(
                    "SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries WHERE state = 'pending' LIMIT $1) AS waiting",
                    [StoreFigures.mostCounted])
                    ?? 0),
            oldestDeliveryAt: try self.number("SELECT min(at) FROM webhook_deliveries WHERE state = 'pending'"))
    }

    func counts() throws -> RoomCounts {
        let live = RoomState.live.rawValue
        return RoomCounts(
            rooms: try self.number("SELECT count(*) FROM rooms") ?? 0,
            counters: try self.number("SELECT sum(n) FROM room_counts WHERE owner = ''") ?? 0,
            liveRooms: try self.number("SELECT count(*) FROM rooms WHERE state = $1", [live]) ?? 0,
            liveCounter: try self.number("SELECT sum(n) FROM room_counts WHERE owner = '' AND state = $1", [live]) ?? 0,
            openPushes: try self.number("SELECT count(*) FROM pushes WHERE ended_at IS NULL AND \(self.isMine)") ?? 0)
    }
}
