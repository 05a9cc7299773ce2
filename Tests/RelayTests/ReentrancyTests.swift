import Media
import Testing

@testable import Relay

/// Connections that call back into the relay from within a write.
@Suite struct ReentrancyTests {
    @Test(arguments: [false, true]) func writesThatPump(_ isOnOtherLoop: Bool) async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let loop = isOnOtherLoop ? relay.other : relay.home
            let sinks = [try await relay.join(live.stream, on: loop), try await relay.join(live.stream, on: loop, streamID: 2)]
            try await relay.with(sinks[0]) { _ in
                for sink in sinks {
                    sink.writeLimit = 25
                    sink.onWrite = { for viewer in sinks.flatMap(\.viewers) { loop.pump(viewer) } }
                }
            }
            let frames = try Make.stream(groups: 3)
            try await relay.publishSingly(Array(frames[..<20]), to: live)
            try await relay.publish(Array(frames[20...]), to: live)
            for (sink, streamID) in zip(sinks, [1, 2] as [UInt32]) {
                for _ in 0..<200 { try await relay.with(sink) { $0.makeRoom() } }
                #expect(try await relay.received(sink) == frames.received(streamID: streamID))
            }
        }
    }

    /// The second viewer's write closes every connection, its own included.
    @Test(arguments: [false, true]) func writesThatDetach(_ pumpsAtOnce: Bool) async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sinks = try await self.join(relay, live.stream, count: 4)
            try await relay.with(sinks[0]) { _ in
                sinks[1].onWrite = { for sink in sinks { sink.close() } }
            }
            try await relay.publish([try Make.audio(1, at: 0), try Make.audio(2, at: 0)], to: live)
            if pumpsAtOnce { try await relay.sweep() }
            try await relay.publish([try Make.audio(3, at: 0)], to: live)
            let counts = try await relay.with(sinks[0]) { _ in sinks.map(\.writes) }
            #expect(counts == [1, 1, 0, 0])
            try await relay.sweep()
            #expect(try await relay.on(relay.home) { $0.streamSnapshots().count } == 1)
        }
    }

    /// Each write adds one more viewer, up to ten. All get everything that joiners get.
    @Test func writesThatAttach() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let frames = try Make.stream(groups: 1)
            try await relay.publish(frames, to: live)
            let sinks = (0..<10).map { _ in FakeSink(relay.home) }
            try await relay.with(sinks[0]) { _ in
                for (sink, next) in zip(sinks, sinks.dropFirst()) {
                    sink.onWrite = { if next.viewers.isEmpty { next.play(live.stream) } }
                }
                sinks[0].play(live.stream)
            }
            let more = [try Make.inter(90, at: 500), try Make.audio(91, at: 500)]
            try await relay.publish(more, to: live)
            for sink in sinks {
                #expect(try await relay.received(sink) == (frames + more).received())
                try await relay.with(sink) { $0.close() }
            }
        }
    }

    /// On the publisher's own loop a viewer's write publishes. The frame is everyone's next.
    @Test func writesThatPublish() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sinks = try await self.join(relay, live.stream, count: 3)
            let echo = try Make.audio(100, at: 10)
            try await relay.with(sinks[0]) { sink in
                sink.onWrite = { [unowned sink] in
                    sink.onWrite = nil
                    RelayLoop.publish([echo], to: live.stream, token: live.token)
                }
            }
            let first = try Make.audio(1, at: 0)
            try await relay.publish([first], to: live)
            for sink in sinks { #expect(try await relay.received(sink) == [Received(first), Received(echo)]) }
        }
    }

    /// With the ring full, a write publishes more than the ring may hold. A viewer that is being served still finds its messages there; the
    /// others resume where the ring begins afterwards. `isCut`: the write itself accepts only part of its bytes.
    @Test(arguments: [false, true]) func writesThatPublishMoreThanTheRingHolds(_ isCut: Bool) async throws {
        var policy = RelayPolicy()
        policy.ring.totalBytes = 4 << 10
        try await RelayHarness.run(policy) { relay in
            let live = try await relay.live()
            let sinks = try await self.join(relay, live.stream, count: 3)
            let first = [try Make.audio(1, at: 0), try Make.audio(2, at: 0)]
            let flood = try (10..<110).map { try Make.audio($0, at: 10) }
            try await relay.publish([first[0]], to: live)
            try await relay.with(sinks[0]) { sink in
                // Its next message is the oldest in the ring.
                sinks[1].room = 0
                if isCut { sink.writeLimit = 25 }
                sink.onWrite = { [unowned sink] in
                    sink.onWrite = nil
                    RelayLoop.publish(flood, to: live.stream, token: live.token)
                }
            }
            try await relay.publish([first[1]], to: live)
            #expect(try await relay.ringBytes(live.stream) <= 4 << 10)
            for sink in sinks { try await relay.with(sink) { $0.drain() } }
            let last = try Make.audio(200, at: 20)
            try await relay.publish([last], to: live)
            #expect(try await relay.received(sinks[0]) == (first + (isCut ? [] : flood) + [last]).received())
            #expect(try await relay.received(sinks[1]) == [first[0], last].received())
            #expect(try await relay.received(sinks[2]) == (first + flood + [last]).received())
        }
    }

    /// Stopping and playing again on the same connection, within a write. The new player does not inherit the old one's position.
    @Test func writesThatReplay() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            try await relay.with(sink) { sink in
                sink.onWrite = { [unowned sink] in
                    sink.onWrite = nil
                    sink.stop(sink.viewers[0])
                    sink.play(live.stream, streamID: 3)
                }
            }
            let frames = [try Make.key(1, at: 0), try Make.inter(2, at: 20)]
            try await relay.publish([frames[0]], to: live)
            try await relay.publish([frames[1]], to: live)
            #expect(try await relay.received(sink) == [Received(frames[0])] + frames.received(streamID: 3))
        }
    }

    private func join(_ relay: RelayHarness, _ stream: Relay.Stream, count: Int) async throws -> [FakeSink] {
        var sinks: [FakeSink] = []
        for _ in 0..<count { sinks.append(try await relay.join(stream, on: relay.home)) }
        return sinks
    }
}
