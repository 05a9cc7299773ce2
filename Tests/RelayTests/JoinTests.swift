import Media
import NIOCore
import Testing

@testable import Relay

@Suite struct JoinTests {
    @Test func earlyJoinersGetEverything() async throws {
        try await RelayHarness.run { relay in
            let stream = try await relay.acquire()
            let sinks = [
                try await relay.join(stream, on: relay.home), try await relay.join(stream, on: relay.other),
                try await relay.join(stream, on: relay.other, streamID: 9),
            ]
            let token = try await relay.claim(stream)
            let frames = try Make.stream(groups: 3)
            try await relay.publishSingly(Array(frames[..<10]), to: (stream, token))
            try await relay.publish(Array(frames[10...]), to: (stream, token))
            for (sink, streamID) in zip(sinks, [1, 1, 9] as [UInt32]) {
                #expect(try await relay.received(sink) == frames.received(streamID: streamID))
                #expect(try await relay.changes(sink) == [.arrived])
            }
        }
    }

    /// A late joiner gets metadata, sequence headers, the cached pictures, then live. The headers have the first picture's timestamp.
    @Test(arguments: [false, true], [1, 4] as [UInt32]) func lateJoiner(_ isOnOtherLoop: Bool, _ streamID: UInt32) async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let frames = try Make.stream(groups: 4)
            for joinAfter in 15..<27 {
                try await relay.publish(Array(frames[(joinAfter == 15 ? 0 : joinAfter - 1)..<joinAfter]), to: live)
                let sink = try await relay.join(live.stream, on: isOnOtherLoop ? relay.other : relay.home, streamID: streamID)
                // Keyframes stand at 3, 15, 27: twelve messages a group.
                let start = joinAfter == 15 ? 3 : 15
                let prelude = frames[..<3].map { Received($0, streamID: streamID, at: frames[start].timestamp) }
                #expect(try await relay.received(sink) == prelude + frames[start..<joinAfter].map { Received($0, streamID: streamID) })
            }
        }
    }

    @Test func joinedAndStayed() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let frames = try Make.stream(groups: 4)
            try await relay.publish(Array(frames[..<20]), to: live)
            let sinks = [try await relay.join(live.stream, on: relay.home), try await relay.join(live.stream, on: relay.other)]
            try await relay.publishSingly(Array(frames[20...]), to: live)
            for sink in sinks {
                let prelude = frames[..<3].map { Received($0, at: frames[15].timestamp) }
                #expect(try await relay.received(sink) == prelude + frames[15...].map { Received($0) })
            }
        }
    }

    /// Headers that changed within the cached pictures. A joiner gets the keyframe's first, and the change in its place.
    @Test func headersChangedWithinThePictures() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let frames = [
                try Make.videoHeader(1), try Make.key(2, at: 100), try Make.inter(3, at: 120), try Make.videoHeader(4, at: 130),
                try Make.metadata(5, at: 130), try Make.inter(6, at: 140),
            ]
            try await relay.publish(frames, to: live)
            let sink = try await relay.join(live.stream, on: relay.home)
            #expect(try await relay.received(sink) == [Received(frames[0], at: 100)] + frames[1...].map { Received($0) })
            let key = try Make.key(7, at: 160)
            try await relay.publish([key], to: live)
            let later = try await relay.join(live.stream, on: relay.other)
            #expect(try await relay.received(later) == [Received(frames[4], at: 160), Received(frames[3], at: 160), Received(key)])
        }
    }

    /// A viewer that joined before the keyframe has the same headers with another timestamp.
    @Test func headersAreStampedForTheirOwnPlace() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let header = try Make.videoHeader(1)
            try await relay.publish([header], to: live)
            let early = try await relay.join(live.stream, on: relay.home)
            #expect(try await relay.received(early) == [Received(header, at: 0)])
            let key = try Make.key(2, at: 7_200_000)
            try await relay.publish([key], to: live)
            let late = try await relay.join(live.stream, on: relay.home)
            #expect(try await relay.received(late) == [Received(header, at: 7_200_000), Received(key)])
            #expect(try await relay.received(early) == [Received(header, at: 0), Received(key)])
        }
    }

    @Test func audioOnly() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let header = try Make.audioHeader(1)
            try await relay.publish([header, try Make.audio(2, at: 40)], to: live)
            let sinks = [try await relay.join(live.stream, on: relay.home), try await relay.join(live.stream, on: relay.other)]
            let next = try Make.audio(3, at: 60)
            try await relay.publish([next], to: live)
            for sink in sinks { #expect(try await relay.received(sink) == [Received(header, at: 40), Received(next)]) }
        }
    }

    /// Too many pictures to cache: audio at once, video from the next keyframe on.
    @Test func withoutCachedPictures() async throws {
        var policy = RelayPolicy()
        policy.ring.gopMs = 1_000
        try await RelayHarness.run(policy) { relay in
            let live = try await relay.live()
            try await relay.publish([try Make.videoHeader(1), try Make.key(2, at: 0)], to: live)
            relay.clock.advance(1_001)
            try await relay.publish([try Make.inter(3, at: 1_001)], to: live)
            let sinks = [try await relay.join(live.stream, on: relay.home), try await relay.join(live.stream, on: relay.other)]
            let frames = [
                try Make.inter(4, at: 1_010), try Make.audio(5, at: 1_015), try Make.key(6, at: 1_020), try Make.inter(7, at: 1_030),
            ]
            try await relay.publishSingly(frames, to: live)
            for sink in sinks {
                #expect(try await relay.received(sink).map(\.id) == [1, 5, 6, 7])
                #expect(try await relay.received(sink).map(\.timestamp) == [1_001, 1_015, 1_020, 1_030])
                #expect(try await relay.with(sink) { $0.viewers[0].gate.skippedFrames } == 1)
            }
        }
    }

    @Test func duringGraceAndAfterTheEnd() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let frames = try Make.stream(groups: 1)
            try await relay.publish(frames, to: live)
            try await relay.leave(live, clean: true)
            try await relay.sweep()
            let inGrace = try await relay.join(live.stream, on: relay.other)
            #expect(try await relay.received(inGrace) == frames.received(), "the last pictures, though nobody watched when they came")
            relay.clock.advance(3_000)
            try await relay.sweep()
            let late = try await relay.join(live.stream, on: relay.other)
            #expect(try await relay.received(late) == [])
            #expect(try await relay.changes(inGrace) == [.left])
            #expect(try await relay.changes(late) == [])
            let token = try await relay.claim(live.stream, as: "another")
            let next = try Make.audio(90, at: 0)
            try await relay.publish([next], to: (live.stream, token))
            #expect(try await relay.changes(inGrace) == [.left, .arrived])
            #expect(try await relay.changes(late) == [.arrived])
            #expect(try await relay.received(late) == [Received(next, at: frames.last!.timestamp + 3_000)])
        }
    }

    /// Viewers join on both loops while another thread publishes. Each gets the headers, then everything from a keyframe on.
    @Test func joinsRaceWithPublishing() async throws {
        try await RelayHarness.run { relay in
            let frames = try Make.stream(groups: 6, framesPerGroup: 4)
            let all = frames.received()
            for round in 0..<150 {
                let stream = try await relay.acquire("live/\(round)")
                let token = try await relay.claim(stream)
                let sinks = (0..<6).map { FakeSink(relay.loops[$0 % 2]) }
                async let published: Void = {
                    for frame in frames {
                        RelayLoop.publish([frame], to: stream, token: token)
                        await Task.yield()
                    }
                }()
                for sink in sinks {
                    sink.loop.eventLoop.execute { sink.play(stream) }
                    await Task.yield()
                }
                await published
                try await relay.settle()
                for sink in sinks {
                    let received = try await relay.received(sink)
                    let first = try #require(received.first { $0.id > 3 })
                    let index = try #require(all.firstIndex(of: first))
                    #expect(received.prefix(3).map(\.id) == [1, 2, 3])
                    #expect(received.dropFirst(3) == all[index...], "round \(round)")
                    #expect(try first.frame().isKeyframe)
                    #expect(received.prefix(3).allSatisfy { $0.timestamp == first.timestamp || $0.timestamp == 0 })
                    try await relay.with(sink) { $0.close() }
                }
                relay.registry.release(stream)
            }
        }
    }

    /// A loop's last viewer leaves and a new one joins while frames flow. The loop's ring is seeded again, with no gap.
    @Test func subscriptionComesAndGoes() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await relay.publish(try Make.stream(groups: 1), to: live)
            for round in 0..<100 {
                let sink = FakeSink(relay.other)
                let frames = try [0, 1, 2].map { try Make.inter(100 + round * 3 + $0, at: Int64(1_000 + round * 3 + $0)) }
                RelayLoop.publish([frames[0]], to: live.stream, token: live.token)
                relay.other.eventLoop.execute { sink.play(live.stream) }
                RelayLoop.publish([frames[1]], to: live.stream, token: live.token)
                // Possibly before the seed arrives.
                relay.other.eventLoop.execute { relay.other.sweep() }
                RelayLoop.publish([frames[2]], to: live.stream, token: live.token)
                try await relay.settle()
                let received = try await relay.received(sink)
                #expect(received.suffix(3) == frames.received()[...])
                #expect(received.count == 3 + 12 + (round + 1) * 3)
                relay.other.eventLoop.execute {
                    sink.close()
                    relay.other.sweep()
                }
                if round % 2 == 0 { try await relay.settle() }
            }
        }
    }

    /// All joiners are sent the very same bytes; a burst is not encoded for each.
    @Test func joinersShareMemory() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await relay.publish(try Make.stream(groups: 2), to: live)
            var addresses: [[UnsafeRawPointer]] = []
            for _ in 0..<20 {
                let sink = try await relay.join(live.stream, on: relay.home)
                addresses.append(try await relay.with(sink) { UncheckedAddresses(all: $0.addresses) }.all)
            }
            #expect(addresses[0].count > 3, "headers, then the pictures")
            for each in addresses { #expect(each == addresses[0]) }
        }
    }
}

/// Addresses in memory that the stream keeps; only compared.
private struct UncheckedAddresses: @unchecked Sendable {
    let all: [UnsafeRawPointer]
}
