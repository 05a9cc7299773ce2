import Testing

@testable import Trace

/// The rule for the memory of all traces.
@Suite struct TraceStoreTests {
    private func fill(_ trace: SessionTrace) {
        for number in 0..<40 { trace.add(TraceEntry(atMs: Int64(number), .here, .state, "state", String(repeating: "x", count: 100))) }
    }

    private func ended(_ id: UInt64, at ms: Int64 = 0, hadRole: Bool = true, bytes: Int = 1_000) -> EndedTrace {
        EndedTrace(
            id: id, reason: "too_slow", hadRole: hadRole, endedMs: ms, endedClockMs: ms,
            rings: TraceRings(events: EventRing(capacity: bytes)))
    }

    @Test func viewersLeaveHalfToPublishers() throws {
        let store = TraceStore(limit: 256 << 10)
        var viewers: [SessionTrace] = []
        while let viewer = SessionTrace(store, nowMs: 0) {
            self.fill(viewer)
            viewers.append(viewer)
        }
        #expect(store.used <= store.limit / 2 && store.used > store.limit / 2 - TraceStore.viewerBytes)
        #expect(viewers.count >= 128 && store.refused > 0)
        // One of them becomes a publisher: it has room for all its rings.
        let publisher = viewers[0]
        publisher.becomePublisher()
        publisher.recorder?.add(type: 9, timestamp: 1, length: 1, streamID: 1, flags: [])
        #expect(publisher.entries.last?.header?.timestamp == 1)
        // Now a viewer fits again.
        #expect(SessionTrace(store, nowMs: 0) != nil)
    }

    @Test func latePublishersGetShortTraces() throws {
        let store = TraceStore(limit: 256 << 10)
        var publishers: [SessionTrace] = []
        for _ in 0..<100 {
            guard let trace = SessionTrace(store, nowMs: 0) else { break }
            trace.becomePublisher()
            self.fill(trace)
            publishers.append(trace)
            #expect(store.used <= store.limit)
        }
        for trace in publishers {
            for number in 0..<3_000 { trace.recorder?.add(type: 9, timestamp: UInt32(number), length: 1, streamID: 1, flags: []) }
        }
        let counts = publishers.map { $0.entries.count { $0.header != nil } }
        #expect(counts[0] == 2_389 && counts.contains(341) && counts.sorted(by: >) == counts, "\(counts)")
        #expect(store.used <= store.limit && store.refused > 0)
        publishers = []
        #expect(store.used == 0)
    }

    @Test func endedSessionsGoFirst() throws {
        let store = TraceStore(limit: 62 << 10)
        for id in 0..<40 { store.keep(self.ended(UInt64(id), bytes: 1_300)) }
        let kept = store.endedCount
        #expect(kept == 40)
        let trace = try #require(SessionTrace(store, nowMs: 0))
        trace.becomePublisher()
        #expect(store.used <= store.limit)
        #expect(store.endedCount < kept && store.endedCount > 0)
        // The oldest went.
        #expect(store.ended(0, nowMs: 0) == nil && store.ended(39, nowMs: 0) != nil)
        #expect(store.refused == 0)
    }

    /// Strangers, of which anybody can send thousands, do not push out sessions that had published or played.
    @Test func strangersHavePlacesOfTheirOwn() {
        let store = TraceStore()
        for id in 0..<10 { store.keep(self.ended(UInt64(id))) }
        for id in 100..<1_000 { store.keep(self.ended(UInt64(id), hadRole: false)) }
        #expect(store.endedCount == 10 + TraceStore.endedStrangers)
        for id in 2_000..<2_100 { store.keep(self.ended(UInt64(id))) }
        #expect(store.endedCount == TraceStore.endedRoles + TraceStore.endedStrangers)
        #expect(store.ended(999, nowMs: 0) != nil && store.ended(2_099, nowMs: 0) != nil && store.ended(0, nowMs: 0) == nil)
        #expect(store.used == 64 * (1_000 + TraceRings.overhead))
    }

    @Test func theyAreKeptForMinutes() {
        let store = TraceStore()
        store.keep(self.ended(1, at: 1_000))
        #expect(store.ended(1, nowMs: 1_000 + TraceStore.endedMs)?.reason == "too_slow")
        #expect(store.ended(1, nowMs: 1_001 + TraceStore.endedMs) == nil)
        #expect(store.used == 0)
    }
}
