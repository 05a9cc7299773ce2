import Media
import NIOCore
import Synchronization
import Testing

@testable import Relay

/// Filler for players when a stream falls silent.
@Suite struct FlushTests {
    private static var policy: RelayPolicy {
        var policy = RelayPolicy()
        policy.grace.flushMs = 1_000
        return policy
    }

    private static func flushes(_ state: inout StreamState, at times: Int64...) -> [Int64] {
        times.filter { nowMs in
            var items: [StreamState.Item] = []
            _ = state.tick(nowMs: nowMs, items: &items)
            return describe(items).contains { $0.hasPrefix("flush") }
        }
    }

    /// Sent once per silence and every ten seconds at most. The publisher may be connected, or gone and awaited.
    @Test func onceInASilence() throws {
        var grace = GracePeriods()
        grace.flushMs = 1_000
        var state = StreamState(grace: grace)
        var items: [StreamState.Item] = []
        let token = try state.claim(PublisherIdentity("me"), nowMs: 0, items: &items).token
        #expect(Self.flushes(&state, at: 2_000) == [], "nothing has come yet")
        state.ingest(try Make.audio(1, at: 40), token: token, nowMs: 5_000, items: &items)
        #expect(Self.flushes(&state, at: 5_999, 6_000, 6_100) == [6_000])
        state.ingest(try Make.audio(2, at: 80), token: token, nowMs: 8_000, items: &items)
        #expect(Self.flushes(&state, at: 9_000, 15_999, 16_000, 17_000) == [16_000])
        state.ingest(try Make.audio(3, at: 120), token: token, nowMs: 40_000, items: &items)
        state.leave(token: token, clean: false, nowMs: 40_500)
        #expect(Self.flushes(&state, at: 40_999, 41_000, 60_000) == [41_000])
        let again = try state.claim(PublisherIdentity("me"), nowMs: 61_000, items: &items).token
        #expect(Self.flushes(&state, at: 63_000) == [], "the new publisher has sent nothing")
        state.ingest(try Make.metadata(4), token: again, nowMs: 64_000, items: &items)
        #expect(Self.flushes(&state, at: 66_000) == [], "nor is metadata media")
    }

    @Test func offByItself() throws {
        var state = StreamState()
        var items: [StreamState.Item] = []
        let token = try state.claim(PublisherIdentity("me"), nowMs: 0, items: &items).token
        state.ingest(try Make.audio(1, at: 40), token: token, nowMs: 0, items: &items)
        #expect(Self.flushes(&state, at: 2_000, 20_000) == [])
    }

    /// Viewers of FLV tags on every loop get a whole block; those of payloads none. Players skip the frame that carries it. A viewer that
    /// joins during the silence gets it after the cached pictures, and an audio-only stream stays audio-only.
    @Test func viewersGetABlock() async throws {
        try await RelayHarness.run(Self.policy) { relay in
            let live = try await relay.live()
            var tags = [try await relay.join(live.stream, on: relay.home), try await relay.join(live.stream, on: relay.other)]
            let payloads = [
                try await relay.join(live.stream, on: relay.other, .payloadOverHTTP),
                try await relay.join(live.stream, on: relay.home, .payloadOverWebSocket),
            ]
            let flv = try await relay.join(live.stream, on: relay.other, .flvOverHTTP)
            try await relay.publish([try Make.audioHeader(1), try Make.audio(2, at: 40)], to: live)
            let before = (try await relay.with(payloads[0]) { $0.bytes }, try await relay.with(payloads[1]) { $0.bytes })
            relay.clock.advance(1_000)
            try await relay.sweep()
            for sink in tags {
                let last = try #require(try await relay.received(sink).last)
                #expect(last.kind == .video && last.timestamp == 40 && last.payload.readableBytes == 32 << 10)
                let info = try last.frame().tag
                #expect(info.flags == .command && !info.flags.contains(.coded))
            }
            #expect(try await relay.with(flv) { $0.bytes }.count > 32 << 10)
            #expect(try await relay.with(payloads[0]) { $0.bytes } == before.0)
            #expect(try await relay.with(payloads[1]) { $0.bytes } == before.1)
            // Joiners do not wait for pictures that never come.
            tags.append(try await relay.join(live.stream, on: relay.home))
            try await relay.publish([try Make.audio(3, at: 2_000)], to: live)
            for sink in tags { #expect(try await relay.received(sink).last?.id == 3) }
        }
    }

    /// Taps are not viewers and get no filler.
    @Test func tapsDoWithout() async throws {
        try await RelayHarness.run(Self.policy) { relay in
            let live = try await relay.live()
            let taps = [CountingTap(), CountingTap()]
            RelayLoop.add(taps[0], to: live.stream)
            try await relay.publish([try Make.videoHeader(1), try Make.key(2, at: 40)], to: live)
            relay.clock.advance(1_000)
            try await relay.sweep()
            RelayLoop.add(taps[1], to: live.stream)
            try await relay.publish([try Make.inter(3, at: 1_040)], to: live)
            #expect(taps[0].frames == 3)
            #expect(taps[1].frames == 2, "from the keyframe on")
        }
    }

    /// A wire format made later from the ring also has it, as a video tag.
    @Test func repackaged() async throws {
        try await RelayHarness.run(Self.policy) { relay in
            let live = try await relay.live()
            try await relay.publish([try Make.videoHeader(1), try Make.key(2, at: 40)], to: live)
            relay.clock.advance(1_000)
            try await relay.sweep()
            let bytes = try await relay.with(try await relay.join(live.stream, on: relay.other, .flvOverWebSocket)) { $0.bytes }
            // The last message: a header with 16 bits of length, then the tag.
            let tag = Array(bytes.suffix((32 << 10) + 15))
            #expect(tag.prefix(4) == [9, 0, 0x80, 0] && tag[11...12] == [0x57, 2])
        }
    }
}

/// Counts the frames it is given, except the headers in force when it starts.
private final class CountingTap: StreamTap {
    private let count = Mutex(0)
    var frames: Int { self.count.withLock { $0 } }

    func receive(_ items: [TapItem]) {
        let frames = items.count { if case .frame = $0 { true } else { false } }
        self.count.withLock { $0 += frames }
    }
}
