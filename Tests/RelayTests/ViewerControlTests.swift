import Media
import Testing

@testable import Relay

/// Pause, receiveAudio and receiveVideo.
@Suite struct ViewerControlTests {
    private func setPaused(_ relay: RelayHarness, _ sink: FakeSink, _ paused: Bool) async throws {
        try await relay.on(sink.loop) { $0.setPaused(sink.viewers[0], paused) }
        try await relay.settle()
    }

    @Test(arguments: [false, true]) func pausedViewersGetNothing(_ isOnOtherLoop: Bool) async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: isOnOtherLoop ? relay.other : relay.home)
            let frames = try Make.stream(groups: 3, framesPerGroup: 3)
            try await relay.publish(Array(frames[..<5]), to: live)
            try await self.setPaused(relay, sink, true)
            try await self.setPaused(relay, sink, true)
            try await relay.publish(Array(frames[5..<17]), to: live)
            try await relay.with(sink) { $0.makeRoom() }
            try await relay.sweep()
            #expect(try await relay.received(sink) == frames[..<5].map { Received($0) })
            #expect(try await relay.on(sink.loop) { $0.snapshot(of: sink.viewers[0]).isPaused } == true)
            // Keyframes at 3, 9 and 15: resumes at the newest, which it has not seen, after the headers.
            try await self.setPaused(relay, sink, false)
            let resumed = frames[..<3].map { Received($0, at: frames[15].timestamp) } + frames[15..<17].map { Received($0) }
            #expect(try await relay.received(sink).dropFirst(5) == resumed[...])
            try await relay.publish(Array(frames[17...]), to: live)
            #expect(try await relay.received(sink).dropFirst(10) == frames[17...].map { Received($0) }[...])
        }
    }

    /// A short pause: the cached pictures were seen already and are not sent again.
    @Test func unpausedWithinTheSamePictures() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            try await relay.publish([try Make.videoHeader(1), try Make.key(2, at: 0), try Make.inter(3, at: 20)], to: live)
            try await self.setPaused(relay, sink, true)
            try await relay.publish([try Make.inter(4, at: 40)], to: live)
            try await self.setPaused(relay, sink, false)
            try await relay.publish([try Make.inter(5, at: 60), try Make.audio(6, at: 60), try Make.key(7, at: 80)], to: live)
            #expect(try await relay.received(sink).map(\.id) == [1, 2, 3, 1, 6, 7])
            #expect(try await relay.received(sink).map(\.timestamp) == [0, 0, 20, 40, 60, 80])
        }
    }

    /// The device rotated during the pause: the new pictures come with their own header.
    @Test func headersThatChangedDuringThePause() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.other)
            try await relay.publish([try Make.videoHeader(1), try Make.key(2, at: 0)], to: live)
            try await self.setPaused(relay, sink, true)
            try await relay.publish([try Make.videoHeader(3, at: 20), try Make.key(4, at: 20)], to: live)
            try await self.setPaused(relay, sink, false)
            #expect(try await relay.received(sink).map(\.id) == [1, 2, 3, 4])
        }
    }

    /// The stream ends during the pause. The player gets the change once, when it resumes.
    @Test func changesDuringThePause() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.other)
            try await relay.publish([try Make.audio(1, at: 0)], to: live)
            try await self.setPaused(relay, sink, true)
            try await relay.leave(live, clean: true)
            relay.clock.advance(3_000)
            for _ in 0..<3 { try await relay.sweep() }
            #expect(try await relay.changes(sink) == [])
            try await self.setPaused(relay, sink, false)
            #expect(try await relay.changes(sink) == [.left])
            _ = try await relay.claim(live.stream)
            try await relay.settle()
            #expect(try await relay.changes(sink) == [.left, .arrived])
            try await self.setPaused(relay, sink, true)
            try await self.setPaused(relay, sink, false)
            #expect(try await relay.changes(sink) == [.left, .arrived])
        }
    }

    /// Pictures after a pause may be older than the slow-viewer limits. They have not waited for this viewer.
    @Test func oldPicturesAfterAPauseAreNotLate() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            try await self.setPaused(relay, sink, true)
            let frames = [try Make.key(1, at: 0), try Make.inter(2, at: 20), try Make.inter(3, at: 40)]
            try await relay.publish(frames, to: live)
            relay.clock.advance(15_000)
            try await relay.with(sink) { $0.room = 10 }
            try await self.setPaused(relay, sink, false)
            try await relay.sweep()
            try await relay.with(sink) { $0.drain() }
            #expect(try await relay.with(sink) { $0.tooFarBehindMs } == [])
            #expect(try await relay.received(sink) == frames.received())
        }
    }

    @Test(arguments: [1, 3] as [UInt32]) func videoOffAndOn(_ streamID: UInt32) async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home, streamID: streamID)
            let frames = try Make.stream(groups: 1, framesPerGroup: 2)
            try await relay.publish(frames, to: live)
            try await relay.on(relay.home) { $0.setVideo(sink.viewers[0], false) }
            try await relay.publish([try Make.key(20, at: 60), try Make.audio(21, at: 60), try Make.videoHeader(22, at: 70)], to: live)
            try await relay.on(relay.home) { $0.setVideo(sink.viewers[0], true) }
            try await relay.publish([try Make.inter(23, at: 80), try Make.audio(24, at: 80), try Make.key(25, at: 90)], to: live)
            let received = try await relay.received(sink)
            #expect(received.map(\.id) == Array(1...7) + [21, 22, 24, 25])
            #expect(received.allSatisfy { $0.streamID == streamID })
        }
    }

    @Test func audioOffAndOn() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            try await relay.on(relay.home) { $0.setAudio(sink.viewers[0], false) }
            try await relay.publish([try Make.audioHeader(1), try Make.audio(2, at: 0), try Make.key(3, at: 0)], to: live)
            try await relay.on(relay.home) { $0.setAudio(sink.viewers[0], true) }
            try await relay.publish([try Make.audio(4, at: 20)], to: live)
            #expect(try await relay.received(sink).map(\.id) == [1, 3, 4])
        }
    }

    /// Commands right after play take effect even before the loop has the stream's ring.
    @Test func askedForBeforeTheRingIsThere() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await relay.publish(try Make.stream(groups: 1, framesPerGroup: 2), to: live)
            let silent = FakeSink(relay.other)
            let blind = FakeSink(relay.other)
            let paused = FakeSink(relay.other)
            try await relay.on(relay.other) { other in
                other.setAudio(silent.play(live.stream), false)
                other.setVideo(blind.play(live.stream), false)
                other.setPaused(paused.play(live.stream), true)
            }
            try await relay.settle()
            #expect(try await relay.received(silent).map(\.id) == [1, 2, 3, 4, 6])
            #expect(try await relay.received(blind).map(\.id) == [1, 2, 3, 5, 7])
            #expect(try await relay.received(paused) == [])
            for sink in [silent, blind, paused] { try await relay.with(sink) { $0.close() } }
        }
    }
}
