import NIOCore
import Rooms

/// Holds the newest events as frames ready to send. All subscribers of a loop share this copy; each has only a position in it. A value;
/// bounded in number and bytes.
struct EventRing {
    struct Entry: Sendable {
        let id: Int64
        let room: RoomID?
        let kind: RoomEvent.Kind
        /// For subscribers whose token covers only some apps or rooms.
        var app: String?
        var subject: String?
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

    /// Appends in order of id. Ignores ids up to the head's, which were appended before. After a gap the ring begins anew.
    mutating func append(_ entry: Entry) {
        if let head, entry.id <= head { return }
        // Between them events of other nodes were left out, while nobody read them: the store has them.
        if let head, entry.id > head + 1 { self.clear() }
        // Ids grow and events arrive in order, so everything before the first one is older.
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

    /// Returns the first entry after this id, or nil. The id must not be before `base`.
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

/// A subscriber's position in the events, and where to get the next: from the ring, or from the store if it is behind the ring. A value,
/// without a clock.
struct FeedCursor: Equatable {
    enum Step: Equatable {
        /// Send the ring's first event after the position, if the room fits; then `sent`.
        case readRing
        /// Ask the store for events after this id; then `pageArrived` or `pageFailed`.
        case readStore(after: Int64)
        case wait
    }

    /// The last event that was sent or skipped.
    private(set) var position: Int64
    /// The first read fetches what was stored between the hello and the subscription.
    private var mustRead = true
    private(set) var isReading = false
    /// Whether the first read is done. Later reads mean that the subscriber was too slow for the ring.
    var hasCaughtUp: Bool { !self.mustRead }
    /// The ring's head when the read began; the store holds everything up to it.
    private var headBefore: Int64?

    init(after position: Int64) { self.position = position }

    mutating func next(_ ring: EventRing) -> Step {
        if self.isReading { return .wait }
        if self.mustRead || self.position < ring.base ?? self.position {
            self.isReading = true
            self.headBefore = ring.head
            return .readStore(after: self.position)
        }
        return self.position < ring.head ?? self.position ? .readRing : .wait
    }

    /// Moves past an event that was sent, or skipped because it belongs to another room or is of another kind.
    mutating func sent(_ id: Int64) { self.position = max(self.position, id) }

    /// `last`: the page's last id, nil for an empty one. `isFull`: there may be more after it.
    mutating func pageArrived(last: Int64?, isFull: Bool) {
        self.isReading = false
        if let last { self.sent(last) }
        guard !isFull else { return }
        self.mustRead = false
        // The store was read after that event had been stored, so nothing (of the room) is left up to it.
        if let headBefore { self.sent(headBefore) }
    }

    mutating func pageFailed() { self.isReading = false }
}
