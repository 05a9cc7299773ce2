import Media
import Testing

@testable import Relay

@Suite struct StreamRegistryTests {
    @Test func oneStreamPerPath() async throws {
        try await RelayHarness.run { relay in
            let stream = try await relay.acquire("live/a")
            let registry = relay.registry
            let same = try await relay.on(relay.other) { registry.acquire("live/a", on: $0) }
            #expect(stream === same && same.home === relay.home && registry.count == 1)
            let another = try await relay.on(relay.other) { registry.acquire("live/b", on: $0) }
            #expect(another.home === relay.other && registry.count == 2)
            registry.release(stream)
            #expect(registry.count == 2)
            registry.release(same)
            registry.release(another)
            #expect(registry.count == 0)
            let fresh = try await relay.acquire("live/a")
            #expect(fresh !== stream)
            registry.release(fresh)
        }
    }

    /// The stream stays for its grace period after everyone is gone, and no longer.
    @Test func freedAfterTheLastUserAndGrace() async throws {
        try await RelayHarness.run { relay in
            var live: (stream: Relay.Stream, token: Int)? = try await relay.live()
            let weakly = WeakStream(stream: live?.stream)
            var viewed: Relay.Stream? = try await relay.acquire()
            let sink = try await relay.join(try #require(viewed), on: relay.other)
            try await relay.publish(try Make.stream(groups: 1), to: try #require(live))
            try await relay.leave(try #require(live), clean: true)
            relay.registry.release(try #require(live).stream)
            live = nil
            try await relay.sweep()
            #expect(try await relay.changes(sink) == [])
            relay.clock.advance(3_000)
            try await relay.sweep()
            #expect(relay.registry.count == 1, "the viewer still uses it")
            #expect(try await relay.changes(sink) == [.left])
            try await relay.with(sink) { $0.close() }
            relay.registry.release(try #require(viewed))
            viewed = nil
            try await relay.sweep()
            #expect(relay.registry.count == 0)
            #expect(try await relay.on(relay.home) { $0.streamSnapshots().isEmpty } == true)
            // The other loop's last task may still hold it for a moment.
            try await relay.eventually { weakly.stream == nil }
        }
    }

    /// A late claim on a replaced stream does not count towards its successor.
    @Test func lateClaimDoesNotHoldTheSuccessor() async throws {
        try await RelayHarness.run { relay in
            let old = try await relay.acquire()
            relay.registry.release(old)
            let next = try await relay.acquire()
            relay.registry.retain(old)
            relay.registry.release(old)
            #expect(relay.registry.count == 1)
            relay.registry.release(next)
            #expect(relay.registry.count == 0)
        }
    }

    @Test func claimOfAGoneStreamIsRefused() async throws {
        try await RelayHarness.run { relay in
            let old = try await relay.acquire()
            relay.registry.release(old)
            await #expect(throws: ClaimRefusal.nameTaken) { try await relay.claim(old) }
            try await relay.publish([try Make.audio(1, at: 0)], to: (old, 1))
            RelayLoop.leave(old, token: 1, clean: true)
            let sink = try await relay.join(old, on: relay.other)
            #expect(try await relay.received(sink) == [])
            try await relay.with(sink) { $0.close() }
        }
    }

    @Test func manyNamesLeaveNothing() async throws {
        try await RelayHarness.run { relay in
            let streams = try await self.useManyNames(relay)
            #expect(relay.registry.count == 10_000)
            relay.clock.advance(3_000)
            try await relay.sweep()
            try await relay.sweep()
            #expect(relay.registry.count == 0)
            for loop in relay.loops { #expect(try await relay.on(loop) { $0.streamSnapshots().isEmpty } == true) }
            #expect(streams.allSatisfy { $0.stream == nil })
        }
    }

    /// Publishes each name on one loop and plays it on the other; then everyone leaves.
    private func useManyNames(_ relay: RelayHarness) async throws -> [WeakStream] {
        let registry = relay.registry
        let frames = try Make.stream(groups: 1, framesPerGroup: 1)
        var streams: [WeakStream] = []
        for batch in 0..<100 {
            let made = try await relay.on(relay.home) { home in
                try (0..<100).map { index in
                    let stream = registry.acquire("live/\(batch)-\(index)", on: home)
                    let token = try home.claim(stream, identity: PublisherIdentity("me"), delegate: FakePublisher())
                    RelayLoop.publish(frames, to: stream, token: token)
                    return (stream, token)
                }
            }
            let sink = FakeSink(relay.other)
            try await relay.on(relay.other) { other in
                for (stream, _) in made { sink.play(registry.acquire(stream.path, on: other)) }
            }
            try await relay.settle()
            #expect(try await relay.received(sink).count == 500)
            try await relay.with(sink) { $0.close() }
            for (stream, token) in made {
                RelayLoop.leave(stream, token: token, clean: true)
                registry.release(stream)
                registry.release(stream)
                streams.append(WeakStream(stream: stream))
            }
        }
        // The clock stands still until the last of them has left.
        try await relay.settle()
        return streams
    }
}
