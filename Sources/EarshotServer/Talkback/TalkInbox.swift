import Media
import Relay
import Synchronization

/// Takes a talker's frames from its stream's home loop to the channel's thread, each with the time at which it came. Bounded: of what nobody
/// fetches, the oldest goes.
///
/// Any thread.
final class TalkInbox: StreamTap {
    /// What came, and when: microseconds of the monotonic clock.
    struct Item: Sendable {
        let item: TapItem
        let arrivalUs: Int64
    }

    private struct Box {
        var items: [Item] = []
        /// Since they were fetched last.
        var dropped = 0
    }

    private let box = Mutex(Box())
    /// A tick fetches one or two; after the longest stall that a recording outlives there are 1,400 of AAC.
    private static let limit = 2_048

    private let nowUs: @Sendable () -> Int64

    /// `nowUs`: the clock that ticks go by.
    init(nowUs: @escaping @Sendable () -> Int64 = { TalkClock.nowUs }) { self.nowUs = nowUs }

    /// Frames that wait.
    var count: Int { self.box.withLock { $0.items.count } }

    func take(_ items: [TapItem]) {
        let nowUs = self.nowUs()
        self.box.withLock { box in
            for item in items { box.items.append(Item(item: item, arrivalUs: nowUs)) }
            let excess = box.items.count - Self.limit
            guard excess > 0 else { return }
            box.items.removeFirst(excess)
            box.dropped += excess
        }
    }

    /// What came since the last time, and how many frames before it found no place.
    func drain() -> (items: [Item], dropped: Int) {
        self.box.withLock { box in
            guard !box.items.isEmpty else { return ([], 0) }
            defer { box = Box() }
            return (box.items, box.dropped)
        }
    }
}
