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

    package init(rooms: Int64, counters: Int64, liveRooms: Int64, liveCounter: Int64, openPushes: Int64) {
        self.rooms = rooms
        self.counters = counters
        self.liveRooms = liveRooms
        self.liveCounter = liveCounter
        self.openPushes = openPushes
    }
}
