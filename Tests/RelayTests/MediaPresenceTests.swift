import Media
import NIOCore
import Testing

@testable import Relay

/// Headers of kinds of media that do not come, or came only from an earlier publisher.
@Suite struct MediaPresenceTests {
    private let me = PublisherIdentity("me")
    private var state = StreamState()
    private var items: [StreamState.Item] = []
    private var token = 0

    private mutating func popItems() -> [String] {
        defer { self.items = [] }
        return describe(self.items)
    }

    private mutating func claim(nowMs: Int64) throws {
        self.token = try self.state.claim(self.me, nowMs: nowMs, items: &self.items).token
        _ = self.popItems()
    }

    private mutating func feed(_ frame: Frame, nowMs: Int64) -> [String] {
        self.state.ingest(frame, token: self.token, nowMs: nowMs, items: &self.items)
        return self.popItems()
    }

    /// Pictures and sounds each 500 ms, from `start` until before `end`. Returns what else went out.
    private mutating func play(_ kinds: [Frame.Kind], _ range: Range<Int64>) throws -> [String] {
        var others: [String] = []
        for nowMs in stride(from: range.lowerBound, to: range.upperBound, by: 500) {
            for kind in kinds {
                let frame = try kind == .video ? Make.key(100, at: nowMs) : Make.audio(200, at: nowMs)
                others += self.feed(frame, nowMs: nowMs).filter { !$0.hasPrefix("frame 100") && !$0.hasPrefix("frame 200") }
            }
        }
        return others
    }

    @Test mutating func announcedSoundThatNeverComes() throws {
        try self.claim(nowMs: 0)
        _ = self.feed(try Make.metadata(1), nowMs: 0)
        _ = self.feed(try Make.videoHeader(2), nowMs: 0)
        #expect(self.feed(try Make.audioHeader(3), nowMs: 0) == ["frame 3 @0", "prelude [1, 2, 3]"])
        #expect(try self.play([.video], 0..<2_000).isEmpty)
        #expect(try self.play([.video], 2_000..<9_000) == ["prelude [1, 2]"])
        #expect(self.state.isAbsent(.audio) && !self.state.isAbsent(.video))
        // A new header alone changes nothing for joiners; the first frame does.
        #expect(self.feed(try Make.audioHeader(4, at: 9_000), nowMs: 9_000) == ["frame 4 @9000", "prelude [1, 2]"])
        #expect(self.feed(try Make.audio(5, at: 9_000), nowMs: 9_000) == ["frame 4 @9000", "prelude [1, 2, 4]", "frame 5 @9000"])
        #expect(try self.play([.video, .audio], 9_500..<20_000).isEmpty)
    }

    @Test mutating func announcedPicturesThatComeLate() throws {
        try self.claim(nowMs: 0)
        _ = self.feed(try Make.videoHeader(2), nowMs: 0)
        _ = self.feed(try Make.audioHeader(3), nowMs: 0)
        #expect(try self.play([.audio], 0..<4_000) == ["prelude [3]"])
        #expect(try self.play([.audio, .video], 4_000..<6_000) == ["frame 2 @4000", "prelude [2, 3]"])
    }

    /// A device with sound comes back without.
    @Test mutating func returnWithoutSound() throws {
        try self.claim(nowMs: 0)
        _ = self.feed(try Make.videoHeader(2), nowMs: 0)
        _ = self.feed(try Make.audioHeader(3), nowMs: 0)
        #expect(try self.play([.video, .audio], 0..<4_000).isEmpty)
        self.state.leave(token: self.token, clean: false, nowMs: 4_000)
        try self.claim(nowMs: 5_000)
        _ = self.feed(try Make.videoHeader(4), nowMs: 5_000)
        #expect(try self.play([.video], 5_000..<12_000) == ["prelude [4]"])
    }

    /// A device comes back with the sound that had not come. Whoever joined meanwhile gets its unchanged header, and so does whoever joins later.
    @Test mutating func returnWithTheSoundThatWasAbsent() throws {
        try self.claim(nowMs: 0)
        _ = self.feed(try Make.videoHeader(2), nowMs: 0)
        _ = self.feed(try Make.audioHeader(3), nowMs: 0)
        #expect(try self.play([.video], 0..<4_000) == ["prelude [2]"])
        self.state.leave(token: self.token, clean: false, nowMs: 4_000)
        self.token = try self.state.claim(self.me, nowMs: 5_000, items: &self.items).token
        #expect(self.popItems() == ["prelude [2, 3]", "dropGOP"])
        #expect(self.feed(try Make.videoHeader(2), nowMs: 5_000) == [], "the pictures' header is known")
        #expect(self.feed(try Make.audioHeader(3), nowMs: 5_000).map { $0.prefix(7) } == ["frame 3"])
    }

    /// Sound that stops is no track any more; pictures that stop may only be rare.
    @Test mutating func kindsThatStop() throws {
        try self.claim(nowMs: 0)
        _ = self.feed(try Make.videoHeader(2), nowMs: 0)
        _ = self.feed(try Make.audioHeader(3), nowMs: 0)
        #expect(try self.play([.video, .audio], 0..<4_000).isEmpty)
        #expect(try self.play([.video], 4_000..<13_000).isEmpty)
        #expect(try self.play([.video], 13_000..<20_000) == ["prelude [2]"])
        #expect(try self.play([.video, .audio], 20_000..<21_000) == ["frame 3 @20000", "prelude [2, 3]"])
        #expect(try self.play([.audio], 21_000..<60_000).isEmpty)
        #expect(try self.play([.audio, .video], 60_000..<62_000).isEmpty)
    }

    @Test mutating func oneKindAlone() throws {
        try self.claim(nowMs: 0)
        _ = self.feed(try Make.videoHeader(2), nowMs: 0)
        #expect(try self.play([.video], 0..<30_000).isEmpty)
    }

    /// A joiner begins with the cached pictures, whose headers were those of their first.
    @Test func joinersBetweenKeyframes() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await relay.publish([try Make.videoHeader(1), try Make.audioHeader(2), try Make.key(3, at: 0)], to: live)
            let early = try await relay.join(live.stream, on: relay.other)
            relay.clock.advance(3_000)
            try await relay.publish([try Make.inter(4, at: 3_000)], to: live)
            for loop in relay.loops {
                let sink = try await relay.join(live.stream, on: loop)
                #expect(try await relay.received(sink).map(\.id) == [1, 3, 4])
            }
            #expect(try await relay.received(early).map(\.id) == [1, 2, 3, 4])
            try await relay.publish([try Make.audio(5, at: 3_020)], to: live)
            let late = try await relay.join(live.stream, on: relay.home)
            #expect(try await relay.received(late).map(\.id) == [1, 3, 4, 2, 5])
        }
    }
}
