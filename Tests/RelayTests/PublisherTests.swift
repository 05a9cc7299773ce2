import Media
import Testing

@testable import Relay

/// Publishers come and go while viewers stay.
@Suite struct PublisherTests {
    @Test func changesComeBehindTheLastFrame() async throws {
        try await RelayHarness.run { relay in
            let stream = try await relay.acquire()
            let sinks = [try await relay.join(stream, on: relay.home), try await relay.join(stream, on: relay.other, streamID: 5)]
            let token = try await relay.claim(stream)
            for sink in sinks { try await relay.with(sink) { $0.writeLimit = 20 } }
            let frames = [try Make.key(1, at: 0), try Make.audio(2, at: 10), try Make.endOfSequence(3, at: 10)]
            try await relay.publish(frames, to: (stream, token))
            relay.clock.advance(5_000)
            try await relay.sweep()
            try await relay.leave((stream, token), clean: false)
            relay.clock.advance(30_000)
            // Fed in between, so that no viewer passes the age limit while it waits.
            for sink in sinks {
                for _ in 0..<12 { try await relay.with(sink) { $0.makeRoom() } }
                #expect(try await relay.changes(sink) == [.arrived, .dried])
            }
            try await relay.sweep()
            for (sink, streamID) in zip(sinks, [1, 5] as [UInt32]) {
                #expect(try await relay.changes(sink) == [.arrived, .dried])
                for _ in 0..<12 { try await relay.with(sink) { $0.makeRoom() } }
                #expect(try await relay.received(sink) == frames.received(streamID: streamID))
                #expect(try await relay.with(sink) { $0.told.map(\.change) } == [.arrived, .dried, .left])
                let ends = try await relay.with(sink) { $0.told.map(\.at) }
                let lengths = frames.map { TestEncoder().encodedLength($0) }
                #expect(ends == [0, lengths[0] + lengths[1], lengths[0] + lengths[1] + lengths[2]])
            }
        }
    }

    @Test func returnWithinGrace() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sinks = [try await relay.join(live.stream, on: relay.home), try await relay.join(live.stream, on: relay.other)]
            let first = [try Make.videoHeader(1), try Make.key(2, at: 5_000), try Make.endOfSequence(3, at: 5_000)]
            try await relay.publish(first, to: live)
            try await relay.leave(live, clean: false)
            try await relay.settle()
            relay.clock.advance(2_000)
            try await relay.sweep()
            let token = try await relay.claim(live.stream)
            let back = [try Make.videoHeader(4), try Make.inter(5, at: 0), try Make.key(6, at: 20), try Make.audio(7, at: 30)]
            try await relay.publish(back, to: (live.stream, token))
            let expected = [
                Received(first[0]), Received(first[1]), Received(back[0], at: 7_000), Received(back[2], at: 7_000),
                Received(back[3], at: 7_010),
            ]
            for sink in sinks {
                #expect(try await relay.received(sink) == expected)
                #expect(try await relay.changes(sink) == [])
            }
            // A joiner gets nothing from before.
            let late = try await relay.join(live.stream, on: relay.other)
            #expect(try await relay.received(late) == Array(expected[2...]))
        }
    }

    @Test func takeover() async throws {
        try await RelayHarness.run { relay in
            let stream = try await relay.acquire()
            let ghost = FakePublisher()
            let next = FakePublisher()
            let old = try await relay.claim(stream, delegate: ghost)
            await #expect(throws: ClaimRefusal.nameTaken) { try await relay.claim(stream, as: "another") }
            let sink = try await relay.join(stream, on: relay.other)
            try await relay.publish([try Make.key(1, at: 0)], to: (stream, old))
            let token = try await relay.claim(stream, delegate: next)
            try await relay.publish([try Make.inter(2, at: 20)], to: (stream, old))
            RelayLoop.clearMetadata(of: stream, token: old)
            try await relay.leave((stream, old), clean: true)
            try await relay.publish([try Make.key(3, at: 0)], to: (stream, token))
            #expect(ghost.ended == [.takenOver] && next.ended == [])
            #expect(try await relay.received(sink).map(\.id) == [1, 3])
            #expect(try await relay.received(sink).map(\.timestamp) == [0, 1])
            #expect(try await relay.changes(sink) == [])
        }
    }

    @Test func mediaIdle() async throws {
        try await RelayHarness.run { relay in
            let stream = try await relay.acquire()
            let publisher = FakePublisher()
            let token = try await relay.claim(stream, delegate: publisher)
            let sink = try await relay.join(stream, on: relay.other)
            try await relay.publish([try Make.audio(1, at: 0)], to: (stream, token))
            relay.clock.advance(120_000)
            try await relay.sweep()
            #expect(publisher.ended == [.mediaIdle])
            #expect(try await relay.changes(sink) == [])
            try await relay.sweep()
            try await relay.sweep()
            #expect(try await relay.changes(sink) == [.left])
            try await relay.publish([try Make.audio(2, at: 0)], to: (stream, token))
            #expect(try await relay.received(sink).map(\.id) == [1])
            #expect(publisher.ended == [.mediaIdle])
        }
    }

    @Test func clearedMetadataIsNotForJoiners() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await relay.publish([try Make.metadata(1), try Make.audioHeader(2)], to: live)
            RelayLoop.clearMetadata(of: live.stream, token: live.token)
            try await relay.settle()
            for loop in relay.loops {
                let sink = try await relay.join(live.stream, on: loop)
                #expect(try await relay.received(sink).map(\.id) == [2])
            }
        }
    }

    @Test func snapshot() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            #expect(live.stream.enterViewer(limit: 1) && !live.stream.enterViewer(limit: 1))
            try await relay.publish([try Make.audio(1, at: 0)], to: live)
            try await relay.publish([try Make.audio(2, at: 0)], to: (live.stream, live.token + 1))
            relay.clock.advance(250)
            let all = try await relay.on(relay.home) { $0.streamSnapshots() }
            let snapshot = try #require(all.first)
            #expect(all.count == 1 && snapshot.path == "live/cam" && snapshot.viewers == 1 && snapshot.liveForMs == 250)
            #expect(snapshot.meter.messagesIn == 1, "another token's frames count for nothing")
            #expect(snapshot.phase == .live(token: live.token, identity: PublisherIdentity("device")))
            live.stream.leaveViewer()
            #expect(live.stream.viewerCount == 0)
        }
    }

    /// A started loop's timers do what tests otherwise do by hand.
    @Test func startedLoopsSweepThemselves() async throws {
        try await RelayHarness.run { relay in
            let publisher = FakePublisher()
            let stream = try await relay.acquire()
            _ = try await relay.claim(stream, delegate: publisher)
            relay.clock.advance(200_000)
            relay.home.start()
            try await relay.eventually { !publisher.ended.isEmpty }
            #expect(publisher.ended == [.mediaIdle])
            relay.home.stop()
            try await relay.settle()
        }
    }
}
