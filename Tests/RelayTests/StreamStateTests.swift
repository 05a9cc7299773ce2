import Media
import NIOCore
import Testing

@testable import Relay

@Suite struct StreamStateTests {
    private let me = PublisherIdentity("me")
    private let another = PublisherIdentity("another")
    private var items: [StreamState.Item] = []

    /// The items put out since the last call.
    private mutating func popItems() -> [String] {
        defer { self.items = [] }
        return describe(self.items)
    }

    private mutating func feed(_ state: inout StreamState, _ frames: [Frame], token: Int, nowMs: Int64) {
        for frame in frames { state.ingest(frame, token: token, nowMs: nowMs, items: &self.items) }
    }

    @Test mutating func firstClaim() throws {
        var state = StreamState()
        #expect(state.phase == .idle && state.publisherToken == nil && state.liveSinceMs == nil)
        let (token, replaced) = try state.claim(self.me, nowMs: 5, items: &self.items)
        #expect(token == 1 && replaced == nil)
        #expect(self.popItems() == ["arrived @0", "dropGOP"])
        #expect(state.phase == .live(token: 1, identity: self.me) && state.publisherToken == 1 && state.liveSinceMs == 5)
    }

    @Test mutating func anotherIdentityIsRefused() throws {
        var state = StreamState()
        _ = try state.claim(self.me, nowMs: 5, items: &self.items)
        _ = self.popItems()
        #expect(throws: ClaimRefusal.nameTaken) { try state.claim(self.another, nowMs: 6, items: &self.items) }
        #expect(self.popItems() == [])
        #expect(state.phase == .live(token: 1, identity: self.me))
    }

    /// Identity and rank of caller and publisher, and whether the one acts for the other.
    @Test(
        arguments: [
            ("a", 0, "a", 0, true), ("a", 2, "a", 1, true), ("a", 1, "a", 2, false), ("b", 0, "a", 0, false), ("b", 9, "a", 0, false),
            ("", 0, "a", 0, false),
        ] as [(String, Int64, String, Int64, Bool)])
    func whoActsForThePublisher(_ caller: String, _ rank: Int64, _ owner: String, _ ownerRank: Int64, _ acts: Bool) {
        #expect(PublisherIdentity(caller, rank: rank).actsFor(PublisherIdentity(owner, rank: ownerRank)) == acts)
    }

    @Test mutating func takeoverBySameIdentity() throws {
        var state = StreamState()
        let old = try state.claim(self.me, nowMs: 0, items: &self.items).token
        self.feed(&state, [try Make.videoHeader(1), try Make.key(2, at: 0), try Make.inter(3, at: 20)], token: old, nowMs: 20)
        _ = self.popItems()
        let (token, replaced) = try state.claim(self.me, nowMs: 50, items: &self.items)
        #expect(token == 2 && replaced == old)
        #expect(self.popItems() == ["dropGOP"], "viewers are told nothing")
        #expect(state.liveSinceMs == 0)
        self.feed(&state, [try Make.inter(4, at: 40)], token: old, nowMs: 51)
        state.leave(token: old, clean: true, nowMs: 52)
        state.clearMetadata(token: old, items: &self.items)
        #expect(self.popItems() == [], "the ghost counts no more")
        #expect(state.phase == .live(token: 2, identity: self.me))
        self.feed(&state, [try Make.key(5, at: 9_000)], token: token, nowMs: 60)
        #expect(self.popItems() == ["frame 5 @60"])
    }

    @Test mutating func flapping() throws {
        var state = StreamState()
        for nowMs: Int64 in [0, 1_000, 2_000, 3_000] { _ = try state.claim(self.me, nowMs: nowMs, items: &self.items) }
        _ = self.popItems()
        #expect(throws: ClaimRefusal.flapping) { try state.claim(self.me, nowMs: 4_000, items: &self.items) }
        #expect(throws: ClaimRefusal.nameTaken) { try state.claim(self.another, nowMs: 4_000, items: &self.items) }
        #expect(throws: ClaimRefusal.flapping) { try state.claim(self.me, nowMs: 31_000, items: &self.items) }
        #expect(self.popItems() == [])
        #expect(state.phase == .live(token: 4, identity: self.me))
        // More than 30 s after the first takeover, at 1,000.
        #expect(try state.claim(self.me, nowMs: 31_001, items: &self.items).replaced == 4)
    }

    /// An end of sequence held during grace does not retain the publisher's read buffers.
    @Test mutating func heldEndIsACopy() throws {
        var state = StreamState()
        let token = try state.claim(self.me, nowMs: 0, items: &self.items).token
        var payload = ByteBuffer(repeating: 7, count: 1 << 20)
        payload.clear()
        let end = try Make.endOfSequence(1, at: 0)
        payload.writeImmutableBuffer(end.payload)
        state.ingest(try Frame(kind: .video, timestamp: 0, payload: payload), token: token, nowMs: 0, items: &self.items)
        state.leave(token: token, clean: true, nowMs: 0)
        self.items = []
        #expect(state.tick(nowMs: 3_000, items: &self.items) == .ended)
        let frames = self.items.compactMap { if case .frame(let frame) = $0 { frame } else { nil } }
        #expect(frames.map(\.payload) == [end.payload] && frames.allSatisfy { $0.payload.storageCapacity < 64 })
    }

    static let departures: [(clean: Bool, deadlineMs: Int64)] = [(true, 3_000), (false, 30_000)]

    @Test(arguments: departures) mutating func grace(_ departure: (clean: Bool, deadlineMs: Int64)) throws {
        var state = StreamState()
        let token = try state.claim(self.me, nowMs: 0, items: &self.items).token
        self.feed(&state, [try Make.metadata(1), try Make.audio(2, at: 7)], token: token, nowMs: 0)
        _ = self.popItems()
        state.leave(token: token, clean: departure.clean, nowMs: 0)
        #expect(state.phase == .grace(deadlineMs: departure.deadlineMs) && state.publisherToken == nil && state.liveSinceMs == 0)
        #expect(state.tick(nowMs: departure.deadlineMs - 1, items: &self.items) == .nothing)
        #expect(self.popItems() == [])
        #expect(state.tick(nowMs: departure.deadlineMs, items: &self.items) == .ended)
        #expect(self.popItems() == ["left @7", "end"])
        #expect(state.phase == .idle && state.liveSinceMs == nil)
        #expect(state.tick(nowMs: departure.deadlineMs + 1, items: &self.items) == .nothing)
        // The next run continues its viewers' time but has its own headers.
        _ = try state.claim(self.another, nowMs: 100_000, items: &self.items)
        #expect(self.popItems() == ["arrived @7", "dropGOP"])
        self.feed(&state, [try Make.audioHeader(3), try Make.inter(4, at: 0)], token: 2, nowMs: 100_000)
        #expect(self.popItems() == ["frame 3 @100007", "prelude [3]", "frame 4 @100007"])
    }

    @Test mutating func mediaIdleAndDry() throws {
        var state = StreamState()
        let token = try state.claim(self.me, nowMs: 0, items: &self.items).token
        _ = self.popItems()
        #expect(state.tick(nowMs: 6_000, items: &self.items) == .nothing)
        #expect(self.popItems() == [], "what never flowed cannot run dry")
        self.feed(&state, [try Make.audio(1, at: 0)], token: token, nowMs: 10_000)
        #expect(state.tick(nowMs: 14_999, items: &self.items) == .nothing)
        #expect(self.popItems() == ["frame 1 @0"])
        #expect(state.tick(nowMs: 15_000, items: &self.items) == .nothing)
        #expect(state.tick(nowMs: 15_100, items: &self.items) == .nothing)
        #expect(self.popItems() == ["dried @0"], "once")
        self.feed(&state, [try Make.audio(2, at: 20), try Make.metadata(3)], token: token, nowMs: 20_000)
        _ = state.tick(nowMs: 25_000, items: &self.items)
        #expect(self.popItems().last == "dried @20", "once more for the next silence")
        let empty = try Frame(kind: .audio, timestamp: 0, payload: ByteBuffer())
        self.feed(&state, [try Make.metadata(4), empty], token: token, nowMs: 100_000)
        #expect(state.tick(nowMs: 139_999, items: &self.items) == .nothing)
        #expect(state.tick(nowMs: 140_000, items: &self.items) == .publisherIdle(token), "neither metadata nor an empty message is media")
        #expect(state.phase == .grace(deadlineMs: 140_000))
        _ = self.popItems()
        state.leave(token: token, clean: false, nowMs: 140_001)
        #expect(state.tick(nowMs: 140_100, items: &self.items) == .ended)
        #expect(self.popItems() == ["left @20", "end"])
    }

    @Test mutating func returnWithinGrace() throws {
        var state = StreamState()
        let old = try state.claim(self.me, nowMs: 0, items: &self.items).token
        self.feed(&state, try Make.stream(groups: 1, framesPerGroup: 2), token: old, nowMs: 100)
        state.leave(token: old, clean: false, nowMs: 200)
        _ = self.popItems()
        let (token, replaced) = try state.claim(self.another, nowMs: 2_000, items: &self.items)
        #expect(replaced == nil && token == 2 && state.liveSinceMs == 0)
        #expect(self.popItems() == ["dropGOP"], "viewers are told nothing")
        let back = [
            try Make.videoHeader(50), try Make.inter(51, at: 7_000), try Make.inter(52, at: 7_020), try Make.audio(53, at: 7_030),
            try Make.inter(54, at: 7_040), try Make.key(55, at: 7_060), try Make.inter(56, at: 7_080),
        ]
        self.feed(&state, back, token: token, nowMs: 2_100)
        // 20 + (2,100 − 100): the last frame's time plus the absence. The first picture joins the first sound: see ``ReturnOrder``.
        #expect(
            self.popItems() == [
                "frame 50 @2020", "prelude [1, 3, 50]", "frame 53 @2020", "frame 55 @2020", "frame 56 @2070",
            ])
        #expect(state.framesBeforeKeyframe == 3)
        #expect(state.tick(nowMs: 40_000, items: &self.items) == .nothing, "the old deadline is void")
    }

    /// Players have these headers, and FFmpeg's copies are damaged by a header in mid-stream. A changed one is sent, as is one that is repeated
    /// between pictures.
    @Test mutating func unchangedHeadersAreNotSentAgainAtAReturn() throws {
        var state = StreamState()
        let old = try state.claim(self.me, nowMs: 0, items: &self.items).token
        self.feed(&state, [try Make.videoHeader(1), try Make.audioHeader(2), try Make.key(3, at: 0)], token: old, nowMs: 0)
        state.leave(token: old, clean: false, nowMs: 0)
        let token = try state.claim(self.me, nowMs: 40, items: &self.items).token
        _ = self.popItems()
        self.feed(&state, [try Make.videoHeader(1), try Make.audioHeader(4), try Make.audioHeader(4)], token: token, nowMs: 40)
        #expect(self.popItems() == ["frame 4 @40", "prelude [1, 4]"])
        self.feed(&state, [try Make.key(5, at: 0), try Make.audio(6, at: 0)], token: token, nowMs: 40)
        self.feed(&state, [try Make.videoHeader(1), try Make.audioHeader(4)], token: token, nowMs: 40)
        #expect(self.popItems().map { $0.prefix(7) } == ["frame 5", "frame 6", "frame 1", "frame 4"])
    }

    /// An audio-only publisher's return waits for no keyframe.
    @Test mutating func audioOnlyReturn() throws {
        var state = StreamState()
        let old = try state.claim(self.me, nowMs: 0, items: &self.items).token
        self.feed(&state, [try Make.audioHeader(1), try Make.audio(2, at: 0)], token: old, nowMs: 0)
        state.leave(token: old, clean: false, nowMs: 0)
        let token = try state.claim(self.me, nowMs: 40, items: &self.items).token
        _ = self.popItems()
        self.feed(&state, [try Make.audio(3, at: 0), try Make.inter(4, at: 5)], token: token, nowMs: 40)
        #expect(self.popItems() == ["frame 3 @40", "frame 4 @45"])
    }

    @Test mutating func endOfSequenceIsHeldAndDroppedOnReturn() throws {
        var state = StreamState()
        let old = try state.claim(self.me, nowMs: 0, items: &self.items).token
        self.feed(&state, [try Make.key(1, at: 0), try Make.endOfSequence(2, at: 0)], token: old, nowMs: 0)
        #expect(self.popItems() == ["arrived @0", "dropGOP", "frame 1 @0"])
        state.leave(token: old, clean: true, nowMs: 0)
        _ = try state.claim(self.me, nowMs: 100, items: &self.items)
        self.feed(&state, [try Make.key(3, at: 0)], token: 2, nowMs: 100)
        state.leave(token: 2, clean: true, nowMs: 100)
        _ = state.tick(nowMs: 5_000, items: &self.items)
        #expect(self.popItems() == ["dropGOP", "frame 3 @100", "left @100", "end"])
    }

    @Test mutating func endOfSequenceIsSentAtTheEnd() throws {
        var state = StreamState()
        let token = try state.claim(self.me, nowMs: 0, items: &self.items).token
        self.feed(&state, [try Make.key(1, at: 10), try Make.endOfSequence(2, at: 10)], token: token, nowMs: 0)
        state.leave(token: token, clean: true, nowMs: 0)
        _ = self.popItems()
        #expect(state.tick(nowMs: 3_000, items: &self.items) == .ended)
        #expect(self.popItems() == ["frame 2 @10", "left @10", "end"])
    }

    /// At most eight of nine ends of sequence in a row are sent.
    @Test mutating func endsOfSequencesAreCounted() throws {
        var state = StreamState()
        let token = try state.claim(self.me, nowMs: 0, items: &self.items).token
        let ends = try (2...10).map { try Make.endOfSequence($0, at: 10) }
        self.feed(&state, [try Make.key(1, at: 10)] + ends, token: token, nowMs: 0)
        state.leave(token: token, clean: true, nowMs: 0)
        _ = self.popItems()
        #expect(state.tick(nowMs: 3_000, items: &self.items) == .ended)
        #expect(self.popItems() == (2...9).map { "frame \($0) @10" } + ["left @10", "end"])
    }

    /// The same publisher continues, perhaps with another codec: only the sequence ended, not the stream.
    @Test mutating func endOfSequenceInMidStreamKeepsItsPlace() throws {
        var state = StreamState()
        let token = try state.claim(self.me, nowMs: 0, items: &self.items).token
        _ = self.popItems()
        let frames = [try Make.key(1, at: 0), try Make.endOfSequence(2, at: 5), try Make.videoHeader(3, at: 6), try Make.key(4, at: 6)]
        self.feed(&state, frames, token: token, nowMs: 0)
        #expect(self.popItems() == ["frame 1 @0", "frame 2 @5", "frame 3 @6", "prelude [3]", "frame 4 @6"])
    }

    @Test mutating func metadata() throws {
        var state = StreamState()
        let token = try state.claim(self.me, nowMs: 0, items: &self.items).token
        _ = self.popItems()
        self.feed(
            &state, [try Make.metadata(1), try Make.audioHeader(2), try Make.metadata(3), try Make.metadata(3)], token: token, nowMs: 0)
        #expect(
            self.popItems() == ["frame 1 @0", "prelude [1]", "frame 2 @0", "prelude [1, 2]", "frame 3 @0", "prelude [3, 2]", "frame 3 @0"])
        state.clearMetadata(token: token, items: &self.items)
        #expect(self.popItems() == ["prelude [2]"])
        state.clearMetadata(token: token, items: &self.items)
        #expect(self.popItems() == [])
    }
}
