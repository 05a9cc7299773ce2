/// The store's counters and the rows they count, from one snapshot.
package struct RoomCounts: Sendable, Equatable {
    /// Room rows, and the sum of the maintained counters.
    package let rooms: Int64
    package let counters: Int64
    /// Rows of live rooms, and the maintained counter of that state.
    package let liveRooms: Int64
    package let liveCounter: Int64
    /// Pushes that have not ended.
    package let openPushes: Int64
}

extension StoreAccess {
    func counts() throws -> RoomCounts {
        let live = RoomState.live.rawValue
        return RoomCounts(
            rooms: try self.number("SELECT count(*) FROM rooms") ?? 0,
            counters: try self.number("SELECT sum(n) FROM room_counts WHERE owner = ''") ?? 0,
            liveRooms: try self.number("SELECT count(*) FROM rooms WHERE state = ?", [live]) ?? 0,
            liveCounter: try self.number("SELECT sum(n) FROM room_counts WHERE owner = '' AND state = ?", [live]) ?? 0,
            openPushes: try self.number("SELECT count(*) FROM pushes WHERE ended_at IS NULL") ?? 0)
    }
}

extension RoomRegistry {
    /// Counts every room: for the self-check, too slow for regular calls.
    package nonisolated func counts() async throws(RegistryError) -> RoomCounts { try await self.store.read { try $0.counts() } }
}
