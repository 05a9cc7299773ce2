import TestSupport
import Testing

@testable import Trace

/// A session's two rings together: order, bounds, the store's rule.
@Suite struct SessionTraceTests {
    private func state(_ atMs: Int64, _ name: String, _ text: String = "") -> TraceEntry {
        TraceEntry(atMs: atMs, .here, .state, name, text)
    }

    private func video(_ timestamp: UInt32, _ atMs: Int64, in trace: SessionTrace) {
        trace.recorder?.begin(nowMs: atMs)
        trace.recorder?.add(type: 9, timestamp: timestamp, length: 100, streamID: 1, flags: [])
    }

    @Test func commandsAndMediaAreInOrder() throws {
        let store = TraceStore()
        let trace = try #require(SessionTrace(store, nowMs: 0))
        trace.add(self.state(0, "before"))
        trace.becomePublisher()
        for number in 0..<3 { self.video(UInt32(number), 5, in: trace) }
        // The same millisecond as the media around it.
        trace.add(self.state(5, "between"))
        self.video(3, 5, in: trace)
        trace.add(self.state(6, "after"))
        let all = trace.entries
        #expect(all.map { $0.header.map { "\($0.timestamp)" } ?? $0.name } == ["before", "0", "1", "2", "between", "3", "after"])
    }

    /// Any amount of media leaves the commands where they are, and the trace within its bytes.
    @Test func mediaPushesNoCommandOut() throws {
        let store = TraceStore()
        let trace = try #require(SessionTrace(store, nowMs: 0))
        trace.add(self.state(0, "connect"))
        trace.becomePublisher()
        trace.add(self.state(1, "publish"))
        for number in 0..<100_000 {
            self.video(UInt32(number), Int64(number) * 10, in: trace)
        }
        trace.add(self.state(1_000_000, "closed"))
        let all = trace.entries
        #expect(all.prefix(2).map(\.name) == ["connect", "publish"] && all.last?.name == "closed")
        #expect(all.count > 1_500)
        #expect(all.dropFirst(2).dropLast().compactMap(\.header?.timestamp) == Array(UInt32(100_003 - all.count)..<100_000))
        #expect(store.used <= TraceStore.publisherBytes)
    }

    @Test(.seeded, arguments: 0..<20) func sizesHold(_ part: Int) throws {
        var random = TestRandom(part)
        let store = TraceStore()
        let trace = try #require(SessionTrace(store, nowMs: 0))
        var atMs: Int64 = 0
        for _ in 0..<2_000 {
            atMs += .random(in: 0...50, using: &random)
            let text = String(repeating: "x", count: .random(in: 0...1_000, using: &random))
            trace.add(TraceEntry(atMs: atMs, .received, .command, text, text, transaction: 1))
            #expect(store.used <= TraceStore.viewerBytes)
        }
        trace.becomePublisher()
        for _ in 0..<2_000 {
            atMs += .random(in: 0...50, using: &random)
            trace.add(self.state(atMs, "state", String(repeating: "x", count: .random(in: 0...1_000, using: &random))))
            self.video(1, atMs, in: trace)
            #expect(store.used <= TraceStore.publisherBytes)
        }
        #expect(trace.entries.last?.header != nil)
    }

    /// A push that is refused has all its commands in its trace.
    @Test func announcedPushesHoldMore() throws {
        let store = TraceStore()
        let trace = try #require(SessionTrace(store, nowMs: 0))
        trace.expectPublisher()
        for number in 0..<30 { trace.add(self.state(Int64(number) * 100, "state", String(repeating: "x", count: 100))) }
        #expect(trace.entries.count == 30)
        #expect(store.used <= TraceStore.announcedBytes)
    }

    @Test func theMemoryComesBack() {
        let store = TraceStore()
        for isPublisher in [false, true] {
            var trace = SessionTrace(store, nowMs: 0)
            for number in 0..<50 { trace?.add(self.state(Int64(number), "state", String(repeating: "x", count: 100))) }
            if isPublisher { trace?.becomePublisher() }
            #expect(store.used > 0)
            trace = nil
            #expect(store.used == 0)
        }
    }

    @Test func floodsAreThinnedAndCounted() throws {
        let trace = try #require(SessionTrace(TraceStore(), nowMs: 0))
        trace.becomePublisher()
        for _ in 0..<1_000 where !trace.isFull(nowMs: 500) { trace.add(self.state(500, "flood")) }
        #expect(trace.isFull(nowMs: 500) && !trace.isFull(nowMs: 1_500))
        trace.add(self.state(1_500, "later"))
        let all = trace.entries
        #expect(all.count { $0.name == "flood" } == SessionTrace.perSecond)
        #expect(all.suffix(2).map(\.name) == ["leftOut", "later"])
        #expect(all.dropLast().last?.text.hasPrefix("937 entries") == true, "\(all.suffix(2))")
    }

    @Test func quietSessionsNeedNoTrace() throws {
        let trace = try #require(SessionTrace(TraceStore(), nowMs: 1_000))
        #expect(!trace.isQuiet(nowMs: 31_000))
        trace.add(self.state(20_000, "play"))
        trace.add(TraceEntry(atMs: 45_000, .sent, .frame, "ping"), lasts: false)
        #expect(!trace.isQuiet(nowMs: 50_000) && trace.isQuiet(nowMs: 50_001))
    }
}
