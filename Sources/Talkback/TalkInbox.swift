import Media
import Relay
import Synchronization

/// Passes a talker's frames from the stream's home loop to the channel's thread, with their arrival times. Bounded: drops the oldest frames if nobody
/// fetches them.
///
/// Any thread.
final class TalkInbox: StreamTap {
    /// An item and its arrival, in microseconds of the monotonic clock.
    struct Item: Sendable {
        let item: TapItem
        let arrivalUs: Int64
    }

    private struct Box {
        var items: [Item] = []
        /// Items dropped since the last fetch.
        var dropped = 0
    }

    private let box = Mutex(Box())
    /// Most items kept. A tick fetches one or two; the longest stall that a recording survives brings 1,400 frames of AAC.
    private static let limit = 2_048

    private let nowUs: @Sendable () -> Int64

    /// `nowUs`: the clock of the ticks.
    init(nowUs: @escaping @Sendable () -> Int64 = { TalkClock.nowUs }) { self.nowUs = nowUs }

    /// Frames that wait.
    var count: Int { self.box.withLock { $0.items.count } }

    func receive(_ items: [TapItem]) {
        let nowUs = self.nowUs()
        self.box.withLock { box in
            for item in items { box.items.append(Item(item: item, arrivalUs: nowUs)) }
            let excess = box.items.count - Self.limit
            guard excess > 0 else { return }
            box.items.removeFirst(excess)
            box.dropped += excess
        }
    }

    /// Removes and returns the items that arrived, and the number of items dropped before them.
    func drain() -> (items: [Item], dropped: Int) {
        self.box.withLock { box in
            guard !box.items.isEmpty else { return ([], 0) }
            defer { box = Box() }
            return (box.items, box.dropped)
        }
    }
}
