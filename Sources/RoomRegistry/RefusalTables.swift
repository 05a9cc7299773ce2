import Rooms
import Store

/// The streams and users that are refused now, as the store has them, and the signal up to which they hold.
struct RefusalTables: Sendable {
    let plays: [PlayTable.Change]
    let kicks: [(kick: Kick, paths: [StreamPath])]
    let lastSignal: Int64
    let lastEvent: Int64

    init(_ store: StoreAccess, now: Int64) throws {
        (self.lastSignal, self.lastEvent) = store.node == nil ? (0, 0) : (try store.lastSignal(), try store.lastEventID())
        self.plays = try store.closedStreams().map { .closed($0, true) } + store.bannedStreams().map { .banned($0, $1) }
        self.kicks = try store.kicks(now: now)
    }
}
