import Media
import NIOCore
import Testing

@testable import Relay

/// Media activity as reported to the rooms, and who may take over a name.
@Suite struct PublisherActivityTests {
    private let me = PublisherIdentity("me")
    private var items: [StreamState.Item] = []
    private var state = StreamState()

    /// Activity since the last call.
    private mutating func popItems() -> [String] {
        defer { self.items = [] }
        return self.items.compactMap { item in
            switch item {
            case .active: "active"
            case .quiet: "quiet"
            default: nil
            }
        }
    }

    private mutating func feed(_ frames: [Frame], token: Int, nowMs: Int64) {
        for frame in frames { self.state.ingest(frame, token: token, nowMs: nowMs, items: &self.items) }
    }

    @Test mutating func firstMediaAndSilence() throws {
        let token = try self.state.claim(self.me, nowMs: 0, items: &self.items).token
        self.feed([try Make.metadata(1), try Make.videoHeader(2), try Make.audioHeader(3)], token: token, nowMs: 10)
        #expect(self.popItems() == [], "headers are not media")
        self.feed([try Make.key(4, at: 0), try Make.inter(5, at: 20)], token: token, nowMs: 20)
        #expect(self.popItems() == ["active"], "once")
        _ = self.state.tick(nowMs: 15_019, items: &self.items)
        #expect(self.popItems() == [])
        _ = self.state.tick(nowMs: 15_020, items: &self.items)
        _ = self.state.tick(nowMs: 16_000, items: &self.items)
        #expect(self.popItems() == ["quiet"], "once")
        self.feed([try Make.audio(6, at: 40)], token: token, nowMs: 17_000)
        #expect(self.popItems() == ["active"])
    }

    @Test mutating func announcedPause() throws {
        let token = try self.state.claim(self.me, nowMs: 0, items: &self.items).token
        self.feed([try Make.key(1, at: 0)], token: token, nowMs: 0)
        _ = self.popItems()
        self.state.announcePause(nowMs: 100)
        self.feed([try Make.inter(2, at: 20)], token: token, nowMs: 1_099)
        #expect(self.popItems() == [], "what was on its way")
        _ = self.state.tick(nowMs: 60_000, items: &self.items)
        #expect(self.popItems() == [], "a paused publisher does not fall silent")
        self.feed([try Make.inter(3, at: 40)], token: token, nowMs: 61_000)
        #expect(self.popItems() == ["active"])
    }

    /// A pause has its own limit, which may be longer or shorter than a silence's.
    @Test mutating func pausedPublisherIsLetGoByItsOwnLimit() throws {
        var grace = GracePeriods()
        grace.mediaIdleMs = 1_000
        grace.pausedMs = 5_000
        let token = try self.state.claim(self.me, grace: grace, nowMs: 0, items: &self.items).token
        self.feed([try Make.key(1, at: 0)], token: token, nowMs: 0)
        self.state.announcePause(nowMs: 0)
        #expect(self.state.tick(nowMs: 4_999, items: &self.items) == .nothing)
        #expect(self.state.tick(nowMs: 5_000, items: &self.items) == .publisherIdle(token))
    }

    @Test mutating func aPublishersOwnGrace() throws {
        var grace = GracePeriods()
        grace.brokenPipeMs = 70
        let token = try self.state.claim(self.me, grace: grace, nowMs: 0, items: &self.items).token
        self.state.leave(token: token, clean: false, nowMs: 10)
        #expect(self.state.phase == .grace(deadlineMs: 80))
    }

    @Test mutating func endNow() throws {
        let endedIdle = self.state.endNow(items: &self.items)
        #expect(!endedIdle, "nothing to end")
        let token = try self.state.claim(self.me, nowMs: 0, items: &self.items).token
        self.feed([try Make.audio(1, at: 7)], token: token, nowMs: 0)
        self.items = []
        let ended = self.state.endNow(items: &self.items)
        #expect(ended)
        #expect(describe(self.items) == ["left @7", "end"])
        #expect(self.state.phase == .idle)
        self.items = []
        self.feed([try Make.audio(2, at: 20)], token: token, nowMs: 30)
        self.state.leave(token: token, clean: true, nowMs: 30)
        #expect(self.items.isEmpty && self.state.phase == .idle, "the old publisher counts no more")
    }

    @Test mutating func takeoverRules() throws {
        _ = try self.state.claim(self.me, nowMs: 0, items: &self.items)
        #expect(throws: ClaimRefusal.nameTaken) { try self.state.claim(self.me, takeover: .nobody, nowMs: 1, items: &self.items) }
        let another = PublisherIdentity("another")
        #expect(throws: ClaimRefusal.nameTaken) { try self.state.claim(another, nowMs: 1, items: &self.items) }
        #expect(try self.state.claim(another, takeover: .anybody, nowMs: 1, items: &self.items).replaced == 1)
    }

    /// The newer of two signed URLs for one name wins, in either order.
    @Test mutating func anOlderCredentialDoesNotTakeOver() throws {
        _ = try self.state.claim(PublisherIdentity("signed", rank: 200), nowMs: 0, items: &self.items)
        #expect(throws: ClaimRefusal.nameTaken) {
            try self.state.claim(PublisherIdentity("signed", rank: 199), nowMs: 1, items: &self.items)
        }
        #expect(try self.state.claim(PublisherIdentity("signed", rank: 200), nowMs: 2, items: &self.items).replaced == 1)
        #expect(try self.state.claim(PublisherIdentity("signed", rank: 201), nowMs: 3, items: &self.items).replaced == 2)
    }

    @Test func eviction() async throws {
        try await RelayHarness.run { relay in
            let stream = try await relay.acquire()
            let publisher = FakePublisher()
            let token = try await relay.claim(stream, delegate: publisher)
            let sink = try await relay.join(stream, on: relay.other)
            try await relay.publish([try Make.key(1, at: 0)], to: (stream, token))
            // Dropped: viewers stay, and the publisher may come back.
            let dropped = try await relay.on(relay.home) { $0.evict(stream, endsViewers: false)?.token }
            #expect(dropped == token)
            try await relay.publish([try Make.inter(2, at: 20)], to: (stream, token))
            #expect(try await relay.changes(sink) == [])
            let back = try await relay.claim(stream, as: "another")
            try await relay.publish([try Make.key(3, at: 0)], to: (stream, back))
            #expect(try await relay.received(sink).map(\.id) == [1, 3])
            // Ended: viewers get a change.
            _ = try await relay.on(relay.home) { $0.evict(stream, endsViewers: true)?.token }
            try await relay.settle()
            #expect(try await relay.changes(sink) == [.left])
            let again = try await relay.on(relay.home) { $0.evict(stream, endsViewers: true)?.token }
            #expect(again == nil, "nobody left to evict")
            #expect(publisher.ended == [], "telling is the caller's")
        }
    }

    @Test func history() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            for second in 0..<400 {
                try await relay.publish([try Make.key(second * 2, at: Int64(second) * 1_000)], to: live)
                relay.clock.advance(1_000)
                try await relay.sweep()
            }
            let seconds = try await relay.on(relay.home) { $0.history(of: live.stream) }
            #expect(seconds.count == StreamHistory.capacity)
            #expect(zip(seconds, seconds.dropFirst()).allSatisfy { $0.atMs < $1.atMs })
            #expect(seconds.last?.framesPerSecond == 1 && seconds.last?.keyframeIntervalMs == 1_000)
            #expect(try #require(seconds.last).arrivalJitterMs < 1, "in step with its timestamps")
        }
    }

    private func grace() -> GracePeriods {
        var grace = GracePeriods()
        grace.brokenPipeMs = 100
        grace.mediaIdleMs = 1_000
        grace.pausedMs = 1_000
        return grace
    }

    /// A wait set from outside replaces the usual one, be it longer or shorter.
    @Test mutating func aWaitThatIsDecidedElsewhere() throws {
        let token = try self.state.claim(self.me, grace: self.grace(), nowMs: 0, items: &self.items).token
        self.feed([try Make.audio(1, at: 0)], token: token, nowMs: 0)
        self.state.leave(token: token, clean: false, nowMs: 10)
        self.state.wait(untilMs: 5_000)
        #expect(self.state.tick(nowMs: 4_999, items: &self.items) == .nothing)
        self.state.wait(untilMs: 4_999)
        #expect(self.state.tick(nowMs: 4_999, items: &self.items) == .ended)
        // No publisher is awaited.
        self.state.wait(untilMs: 9_000)
        #expect(self.state.phase == .idle)
        _ = try self.state.claim(self.me, nowMs: 5_000, items: &self.items)
        #expect(self.state.tick(nowMs: 6_000, items: &self.items) == .publisherIdle(2), "nor is that remembered")
    }

    /// A silent publisher is dropped no earlier than the given time. If it leaves, or returns without media, its stream is kept as long.
    @Test mutating func aSilentPublishersWait() throws {
        let token = try self.state.claim(self.me, grace: self.grace(), nowMs: 0, items: &self.items).token
        self.feed([try Make.audio(1, at: 0)], token: token, nowMs: 0)
        self.state.announcePause(nowMs: 900)
        self.state.wait(untilMs: 3_000)
        #expect(self.state.tick(nowMs: 2_000, items: &self.items) == .nothing)
        self.state.leave(token: token, clean: false, nowMs: 2_000)
        #expect(self.state.phase == .grace(deadlineMs: 3_000))
        let next = try self.state.claim(self.me, grace: self.grace(), nowMs: 2_100, items: &self.items).token
        self.state.leave(token: next, clean: false, nowMs: 2_200)
        #expect(self.state.phase == .grace(deadlineMs: 3_000))
        let last = try self.state.claim(self.me, grace: self.grace(), nowMs: 2_300, items: &self.items).token
        self.feed([try Make.audio(2, at: 0)], token: last, nowMs: 2_400)
        self.state.leave(token: last, clean: false, nowMs: 2_500)
        #expect(self.state.phase == .grace(deadlineMs: 2_600), "media ended that wait")
    }

    @Test mutating func periodsChangeWhileItRuns() throws {
        let token = try self.state.claim(self.me, nowMs: 0, items: &self.items).token
        self.feed([try Make.audio(1, at: 0)], token: token, nowMs: 0)
        _ = self.popItems()
        var grace = GracePeriods()
        grace.quietMs = 1_000
        self.state.change(to: grace)
        _ = self.state.tick(nowMs: 1_000, items: &self.items)
        #expect(self.popItems() == ["quiet"])
    }
}
