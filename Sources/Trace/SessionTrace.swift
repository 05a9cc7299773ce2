/// The flight recorder of one session: its newest commands, states and message headers. Loop-bound, owned by the session.
///
/// Commands and headers are in rings of their own, so that media does not push the commands out. Memory comes from a ``TraceStore`` as the session
/// needs it, and is returned with the trace.
package final class SessionTrace {
    private let store: TraceStore
    private var share: TraceShare
    private var events: EventRing
    /// The ring of a publisher's messages, which its connection writes; freed with the trace.
    package private(set) var recorder: HeaderRecorder?
    /// Time of the newest lasting entry; see ``isQuiet(nowMs:)``.
    private var newestMs: Int64 = 0
    private static let eventStep = 64
    /// Most bytes of the ring for commands and states.
    private var eventLimit = TraceStore.viewerEventBytes
    private var secondMs: Int64 = 0
    private var thisSecond = 0
    private var leftOut = 0
    /// Bytes charged to the store.
    private var charged: Int

    /// Entries a second, not counting headers of media. The limit keeps a peer from making the server render everything that it sends.
    package static let perSecond = 64
    /// How long a trace is kept after its newest entry, in milliseconds.
    package static let keptMs: Int64 = 30_000

    /// Nil if the store has no room.
    package init?(_ store: TraceStore, nowMs: Int64) {
        let rings = TraceRings(events: EventRing(capacity: EventRing.leastCapacity))
        guard store.reserve(rings.bytes, for: .viewer) else { return nil }
        self.store = store
        self.share = .viewer
        self.events = rings.events
        self.charged = rings.bytes
        self.newestMs = nowMs
    }

    deinit {
        self.recorder?.free()
        self.store.give(self.charged, of: self.share)
    }

    /// Adds an entry. An entry that does not last, such as a ping, does not keep a quiet session's trace alive.
    package func add(_ entry: TraceEntry, lasts: Bool = true) {
        if entry.atMs - self.secondMs >= 1_000 {
            if self.leftOut > 0 {
                let text = "\(self.leftOut) entries, more than \(Self.perSecond) a second"
                self.append(TraceEntry(atMs: entry.atMs, .here, .state, "leftOut", text))
            }
            (self.secondMs, self.thisSecond, self.leftOut) = (entry.atMs, 0, 0)
        }
        guard self.thisSecond < Self.perSecond else {
            self.leftOut += 1
            return
        }
        self.thisSecond += 1
        if lasts { self.newestMs = entry.atMs }
        if entry.kind == .message, entry.direction == .received, let header = entry.header, let recorder = self.recorder,
            HeaderRecorder.holds(header)
        {
            recorder.begin(nowMs: entry.atMs)
            recorder.add(
                type: header.type, timestamp: header.timestamp, length: Int(header.length), streamID: header.streamID, flags: header.flags)
        } else {
            self.append(entry)
        }
    }

    /// Whether this second's entries are used up, so that rendering another one is pointless.
    package func isFull(nowMs: Int64) -> Bool {
        guard nowMs - self.secondMs < 1_000, self.thisSecond >= Self.perSecond else { return false }
        self.leftOut += 1
        return true
    }

    private func append(_ entry: TraceEntry) {
        while !self.events.hasSpace(for: entry), self.growEvents() {}
        self.events.append(entry, headersBefore: self.recorder?.total ?? 0)
    }

    /// In steps: most viewers never need all. Returns whether there is more space now.
    private func growEvents() -> Bool {
        let more = min(self.eventLimit - self.events.capacity, max(Self.eventStep, self.events.capacity / 8))
        guard more > 0, self.store.reserve(more, for: self.share) else { return false }
        self.events.grow(to: self.events.capacity + more)
        self.charged += more
        return true
    }

    /// Lets the trace hold more commands: the peer announces a push, which may be refused.
    package func expectPublisher() { self.eventLimit = TraceStore.publisherEventBytes }

    /// Gives the session a publisher's share, with a ring for the headers of its media. Does nothing if there is no memory.
    package func becomePublisher() {
        guard self.share == .viewer, self.store.move(self.charged, from: .viewer, to: .publisher) else { return }
        self.share = .publisher
        self.eventLimit = TraceStore.publisherEventBytes
        let records = self.store.headersOfPublisher
        guard self.store.reserve(records * HeaderRecorder.recordBytes, for: .publisher) else { return }
        self.charged += records * HeaderRecorder.recordBytes
        self.recorder = HeaderRecorder(capacity: records)
    }

    /// Whether nothing has happened for so long that the trace may be dropped. A publisher's trace stays as long as it publishes.
    package func isQuiet(nowMs: Int64) -> Bool { nowMs - self.newestMs > Self.keptMs }

    /// All entries, oldest first.
    package var entries: [TraceEntry] { self.copy.entries }

    /// A copy of the rings, for an abnormal end.
    package var copy: TraceRings { TraceRings(events: self.events, headers: self.recorder?.copy) }
}

/// Both rings of a session. A plain value.
package struct TraceRings: Sendable {
    var events: EventRing
    var headers: HeaderList?

    /// Bytes beside the rings: the objects, and the arrays' heads.
    static let overhead = 192

    /// Approximate bytes of memory.
    package var bytes: Int {
        Self.overhead + self.events.capacity + (self.headers.map { $0.records.count * HeaderRecorder.recordBytes } ?? 0)
    }

    /// All entries, oldest first.
    package var entries: [TraceEntry] {
        let events = self.events.all()
        guard let list = self.headers else { return events.map(\.entry) }
        let headers = list.entries
        var all: [TraceEntry] = []
        all.reserveCapacity(events.count + headers.count)
        var next = 0
        for (entry, before) in events {
            // Signed, since both numbers wrap around.
            while next < headers.count, Int32(bitPattern: list.first &+ UInt32(next) &- before) < 0 {
                all.append(headers[next])
                next += 1
            }
            all.append(entry)
        }
        return all + headers[next...]
    }
}
