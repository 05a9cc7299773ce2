import Synchronization

/// The kind of session whose limit a trace's memory counts against.
package enum TraceShare: Sendable {
    /// A viewer, or a connection without a role yet.
    case viewer
    case publisher
}

/// A session that ended for an abnormal reason, with its trace. A plain value.
package struct EndedTrace: Sendable {
    package let id: UInt64
    /// The close reason's word.
    package let reason: String
    /// Whether it had published or played.
    package let hadRole: Bool
    /// Milliseconds since 1970.
    package let endedMs: Int64
    /// The same moment on the clock of the entries.
    package let endedClockMs: Int64
    package let rings: TraceRings

    package init(id: UInt64, reason: String, hadRole: Bool, endedMs: Int64, endedClockMs: Int64, rings: TraceRings) {
        self.id = id
        self.reason = reason
        self.hadRole = hadRole
        self.endedMs = endedMs
        self.endedClockMs = endedClockMs
        self.rings = rings
    }
}

/// The memory of all traces, against one limit, and the traces of the last abnormal ends. Any thread; asked once per ring, never per entry.
///
/// When memory is short, traces of ended sessions are dropped first, oldest first. Then traces do not grow, and new ones are not made, which is
/// counted. Viewers get half of the memory at most, so that a publisher finds room; beyond three quarters publishers get short rings.
package final class TraceStore: Sendable {
    /// Bytes of a publisher's trace, and of a viewer's.
    package static let publisherBytes = 32 << 10
    package static let viewerBytes = 1 << 10
    /// Bytes of a publisher's trace when three quarters of the memory are used.
    package static let shortPublisherBytes = 8 << 10
    /// Bytes for commands and states in the trace of a publisher, or of a connection that announces a push.
    package static let announcedBytes = 4 << 10
    static let publisherEventBytes = announcedBytes - TraceRings.overhead
    static let viewerEventBytes = viewerBytes - TraceRings.overhead
    /// Most abnormal ends kept: of publishers and players, and of strangers, who may be many.
    package static let endedRoles = 48
    package static let endedStrangers = 16
    /// How long these ends are kept, in milliseconds.
    package static let endedMs: Int64 = 300_000

    private struct State {
        var viewerBytes = 0
        var publisherBytes = 0
        var endedBytes = 0
        var refused: UInt64 = 0
        /// Oldest first.
        var ended: [EndedTrace] = []

        var used: Int { self.viewerBytes + self.publisherBytes + self.endedBytes }

        mutating func remove(at index: Int) { self.endedBytes -= self.ended.remove(at: index).rings.bytes }

        /// Makes room for `bytes` by dropping ended sessions.
        mutating func fits(_ bytes: Int, _ limit: Int) -> Bool {
            while self.used + bytes > limit, !self.ended.isEmpty { self.remove(at: 0) }
            return self.used + bytes <= limit
        }
    }

    /// Bytes.
    package let limit: Int
    private let state = Mutex(State())

    package init(limit: Int = 16 << 20) { self.limit = limit }

    /// Bytes in use.
    package var used: Int { self.state.withLock { $0.used } }
    /// Times that a trace was not made or did not grow for lack of memory.
    package var refused: UInt64 { self.state.withLock { $0.refused } }
    package var endedCount: Int { self.state.withLock { $0.ended.count } }

    /// Records of a new publisher's ring of headers.
    var headersOfPublisher: Int {
        let bytes = self.used > self.limit / 4 * 3 ? Self.shortPublisherBytes : Self.publisherBytes
        return (bytes - Self.announcedBytes) / HeaderRecorder.recordBytes
    }

    /// Reserves memory; false if there is none.
    func reserve(_ bytes: Int, for share: TraceShare) -> Bool {
        self.state.withLock { state in
            guard share == .publisher || state.viewerBytes + bytes <= self.limit / 2, state.fits(bytes, self.limit) else {
                state.refused += 1
                return false
            }
            if share == .viewer { state.viewerBytes += bytes } else { state.publisherBytes += bytes }
            return true
        }
    }

    func give(_ bytes: Int, of share: TraceShare) {
        self.state.withLock { state in
            if share == .viewer { state.viewerBytes -= bytes } else { state.publisherBytes -= bytes }
        }
    }

    func move(_ bytes: Int, from: TraceShare, to: TraceShare) -> Bool {
        guard from != to else { return true }
        self.give(bytes, of: from)
        if self.reserve(bytes, for: to) { return true }
        // Cannot fail for long: the bytes were there a moment ago.
        self.state.withLock { if from == .viewer { $0.viewerBytes += bytes } else { $0.publisherBytes += bytes } }
        return false
    }

    // MARK: Ended sessions

    /// Keeps the trace of a session that ended, unless memory is short.
    package func keep(_ ended: EndedTrace) {
        self.state.withLock { state in
            self.expire(&state, nowMs: ended.endedMs)
            let limit = ended.hadRole ? Self.endedRoles : Self.endedStrangers
            if state.ended.count(where: { $0.hadRole == ended.hadRole }) >= limit,
                let oldest = state.ended.firstIndex(where: { $0.hadRole == ended.hadRole })
            {
                state.remove(at: oldest)
            }
            guard state.fits(ended.rings.bytes, self.limit) else { return }
            state.ended.append(ended)
            state.endedBytes += ended.rings.bytes
        }
    }

    /// The trace of a session that ended within the last minutes. `nowMs`: milliseconds since 1970.
    package func ended(_ id: UInt64, nowMs: Int64) -> EndedTrace? {
        self.state.withLock { state in
            self.expire(&state, nowMs: nowMs)
            return state.ended.last { $0.id == id }
        }
    }

    private func expire(_ state: inout State, nowMs: Int64) {
        while let first = state.ended.first, nowMs - first.endedMs > Self.endedMs { state.remove(at: 0) }
    }
}
