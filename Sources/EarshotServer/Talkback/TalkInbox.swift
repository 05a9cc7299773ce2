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
        var dropped: UInt64 = 0
    }

    private let box = Mutex(Box())
    /// A tick fetches one or two; three seconds' worth of the shortest runs.
    private static let limit = 512

    /// Frames that nobody fetched.
    var dropped: UInt64 { self.box.withLock { $0.dropped } }

    func take(_ items: [TapItem]) {
        let nowUs = TalkClock.nowUs
        self.box.withLock { box in
            for item in items { box.items.append(Item(item: item, arrivalUs: nowUs)) }
            let excess = box.items.count - Self.limit
            guard excess > 0 else { return }
            box.items.removeFirst(excess)
            box.dropped += UInt64(excess)
        }
    }

    func drain() -> [Item] {
        self.box.withLock { box in
            guard !box.items.isEmpty else { return [] }
            defer { box.items = [] }
            return box.items
        }
    }
}
