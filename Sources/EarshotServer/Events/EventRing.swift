import NIOCore
import Rooms

/// The newest events as frames that are ready to send: one copy for all subscribers of a loop, each of which has only a position in it.
/// A value; bounded in number and bytes.
struct EventRing {
    struct Entry: Sendable {
        let id: Int64
        let room: RoomID?
        /// The whole WebSocket frame.
        let frame: ByteBuffer
    }

    static let entryLimit = 1_000
    static let byteLimit = 1 << 20

    private var entries = CircularBuffer<Entry>()
    private(set) var bytes = 0
    /// The ring holds every event after this one; nil before the first.
    private(set) var base: Int64?
    /// The newest event; nil before the first.
    private(set) var head: Int64?

    var count: Int { self.entries.count }

    /// In the order of their ids; older ones than the head are there already.
    mutating func append(_ entry: Entry) {
        if let head, entry.id <= head { return }
        // Ids grow, and events come here in their order without a hole: whatever precedes the first one is older.
        if self.base == nil { self.base = entry.id - 1 }
        self.head = entry.id
        self.entries.append(entry)
        self.bytes += entry.frame.readableBytes
        while self.entries.count > Self.entryLimit || (self.bytes > Self.byteLimit && self.entries.count > 1) {
            guard let oldest = self.entries.popFirst() else { break }
            self.bytes -= oldest.frame.readableBytes
            self.base = oldest.id
        }
    }

    mutating func clear() { self = EventRing() }

    /// The first entry after this id; nil when there is none. The position must be within the ring: not before `base`.
    func first(after id: Int64) -> Entry? {
        var low = 0
        var high = self.entries.count
        while low < high {
            let middle = (low + high) / 2
            if self.entry(middle).id <= id { low = middle + 1 } else { high = middle }
        }
        return low < self.entries.count ? self.entry(low) : nil
    }

    private func entry(_ offset: Int) -> Entry { self.entries[self.entries.index(self.entries.startIndex, offsetBy: offset)] }
}

/// Where a subscriber is in the sequence of events, and where it gets the next one from: the ring, or the store when it is behind the
/// ring. A value, without a clock.
struct FeedCursor: Equatable {
    enum Step: Equatable {
        /// Send the ring's first event after the position, if the room fits; then `sent`.
        case takeFromRing
        /// Ask the store for what comes after this id; then `pageArrived` or `pageFailed`.
        case readStore(after: Int64)
        case wait
    }

    /// The last event that was sent, or need not be.
    private(set) var position: Int64
    /// The first read brings what was stored between the hello and the subscription.
    private var mustRead = true
    private(set) var isReading = false
    /// Once it has: what it reads from the store is what it was too slow for.
    var hasCaughtUp: Bool { !self.mustRead }
    /// The ring's head when the read began: everything up to there is in the store.
    private var headBefore: Int64?

    init(after position: Int64) { self.position = position }

    mutating func next(_ ring: EventRing) -> Step {
        if self.isReading { return .wait }
        if self.mustRead || self.position < ring.base ?? self.position {
            self.isReading = true
            self.headBefore = ring.head
            return .readStore(after: self.position)
        }
        return self.position < ring.head ?? self.position ? .takeFromRing : .wait
    }

    /// Sent, or passed over because it is another room's.
    mutating func sent(_ id: Int64) { self.position = max(self.position, id) }

    /// `last`: the page's last id, nil for an empty one. `isFull`: there may be more after it.
    mutating func pageArrived(last: Int64?, isFull: Bool) {
        self.isReading = false
        if let last { self.sent(last) }
        guard !isFull else { return }
        self.mustRead = false
        // The store was asked after that event had been stored: there is nothing (of the room) left up to it.
        if let headBefore { self.sent(headBefore) }
    }

    mutating func pageFailed() { self.isReading = false }
}
