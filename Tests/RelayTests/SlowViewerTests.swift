import Media
import NIOCore
import Support
import Testing

@testable import Relay

@Suite struct SlowViewerTests {
    /// Stalls a viewer within the first group, lets time pass, and publishes two more groups. Each is a keyframe, two inter frames and
    /// audio.
    private func stall(_ relay: RelayHarness, _ sink: FakeSink, _ live: (stream: Relay.Stream, token: Int), restMs: Int64) async throws
        -> [Frame]
    {
        let frames = try Make.stream(groups: 3, framesPerGroup: 3)
        try await relay.publish(Array(frames[..<4]), to: live)
        try await relay.with(sink) { $0.writeLimit = 0 }
        try await relay.publish(Array(frames[4..<9]), to: live)
        relay.clock.advance(restMs)
        try await relay.publish(Array(frames[9...]), to: live)
        return frames
    }

    @Test(arguments: [false, true]) func skipsToTheNewestKeyframe(_ isOnOtherLoop: Bool) async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: isOnOtherLoop ? relay.other : relay.home)
            let frames = try await self.stall(relay, sink, live, restMs: 1_001)
            try await relay.with(sink) { $0.drain() }
            // Three headers; groups at 3, 9 and 15. The cut message (audio 4) is finished; then audio only up to the keyframe at 15.
            let expected = Array(frames[...4]) + frames[5..<15].filter { $0.kind == .audio } + frames[15...]
            #expect(try await relay.received(sink) == expected.received())
            #expect(try await relay.with(sink) { $0.viewers[0].gate.skippedFrames } == 5)
        }
    }

    /// A viewer that skips is near live afterwards, and yet counts as slow for a minute.
    @Test func staysSlowForAMinute() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let (sink, well) = (try await relay.join(live.stream, on: relay.home), try await relay.join(live.stream, on: relay.home))
            _ = try await self.stall(relay, sink, live, restMs: 1_001)
            try await relay.with(sink) { $0.drain() }
            func slow() async throws -> [Bool] {
                try await relay.on(relay.home) { loop in [sink, well].map { loop.snapshot(of: $0.viewers[0]).isSlow } }
            }
            #expect(try await slow() == [true, false])
            #expect(try await relay.on(relay.home) { $0.audience(of: live.stream).slow } == 1)
            relay.clock.advance(60_000)
            #expect(try await slow() == [false, false])
            #expect(try await relay.on(relay.home) { $0.audience(of: live.stream).slow } == 0)
        }
    }

    /// A keyframe right behind the next message is a valid place to skip to.
    @Test func skipsASinglePicture() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            try await relay.publish([try Make.key(1, at: 0)], to: live)
            try await relay.with(sink) { $0.room = 0 }
            try await relay.publish([try Make.inter(2, at: 1), try Make.key(3, at: 2)], to: live)
            relay.clock.advance(1_001)
            try await relay.with(sink) { $0.drain() }
            #expect(try await relay.received(sink).map(\.id) == [1, 3])
        }
    }

    @Test func inTimeSkipsNothing() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            let frames = try await self.stall(relay, sink, live, restMs: 1_000)
            try await relay.with(sink) { $0.drain() }
            #expect(try await relay.received(sink) == frames.received())
        }
    }

    /// The same with audio off.
    @Test func skipsWithAudioOff() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            try await relay.on(relay.home) { $0.setAudio(sink.viewers[0], false) }
            let frames = try await self.stall(relay, sink, live, restMs: 1_001)
            try await relay.with(sink) { $0.drain() }
            let videos = frames.filter { $0.kind != .audio || $0.isSequenceHeader }
            #expect(try await relay.received(sink).map(\.id) == [1, 2, 3, 4, 6] + videos.suffix(3).received().map(\.id))
        }
    }

    /// Far behind, with no newer keyframe: the picture freezes until one arrives. Headers and audio go on.
    @Test func waitsForAKeyframe() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            try await relay.publish([try Make.key(1, at: 0)], to: live)
            try await relay.with(sink) { $0.room = 0 }
            try await relay.publish([try Make.inter(2, at: 1), try Make.audio(3, at: 2), try Make.videoHeader(4, at: 3)], to: live)
            relay.clock.advance(3_001)
            try await relay.with(sink) { $0.drain() }
            #expect(try await relay.received(sink).map(\.id) == [1, 3, 4])
            try await relay.publish([try Make.inter(5, at: 5), try Make.key(6, at: 6)], to: live)
            #expect(try await relay.received(sink).map(\.id) == [1, 3, 4, 6])
        }
    }

    @Test func closedPastTheLimit() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let slow = try await relay.join(live.stream, on: relay.other)
            let well = try await relay.join(live.stream, on: relay.other)
            let paused = try await relay.join(live.stream, on: relay.other)
            try await relay.with(slow) { $0.room = 0 }
            try await relay.on(relay.other) { $0.setPaused(paused.viewers[0], true) }
            try await relay.publish([try Make.audio(1, at: 0)], to: live)
            relay.clock.advance(5_000)
            try await relay.sweep()
            #expect(try await relay.with(slow) { $0.tooFarBehindMs } == [])
            relay.clock.advance(1)
            try await relay.sweep()
            try await relay.sweep()
            #expect(try await relay.with(slow) { $0.tooFarBehindMs } == [5_001])
            #expect(try await relay.on(relay.other) { $0.viewersTooSlow } == 1)
            for sink in [well, paused] { #expect(try await relay.with(sink) { $0.tooFarBehindMs.isEmpty && $0.viewers.count == 1 }) }
            #expect(try await relay.received(well).map(\.id) == [1])
        }
    }

    /// Bytes queued in the kernel count, at the stream's bit rate.
    @Test func kernelQueueCounts() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            let well = try await relay.join(live.stream, on: relay.home)
            try await relay.with(sink) { $0.unsent = 600_000 }
            try await relay.with(well) { $0.unsent = 400_000 }
            for turn in 0..<20 {
                try await relay.publish([try Make.audio(turn, at: Int64(turn) * 100, bytes: 10_000 - 27)], to: live)
                relay.clock.advance(100)
                try await relay.sweep()
            }
            // 100 kB/s, once that has been measured.
            #expect(try await relay.with(sink) { $0.tooFarBehindMs } == [6_000])
            #expect(try await relay.with(well) { $0.tooFarBehindMs } == [])
            #expect(try await relay.with(well) { $0.lowWater } == [25_000], "a quarter of a second")
            #expect(try await relay.on(relay.home) { $0.snapshot(of: well.viewers[0]).behindMs } == 4_000)
            #expect(try await relay.on(relay.home) { $0.snapshot(of: well.viewers[0]).isSlow })
        }
    }

    /// Sound in pieces has the age limit of sound: of old pieces only the newest is sent, then all that follow.
    @Test(arguments: [nil, 500] as [Int64?]) func oldPiecesOfSoundAreSkipped(_ limitMs: Int64?) async throws {
        var policy = RelayPolicy()
        policy.maxQueueByAppMs = limitMs.map { ["talk": $0] } ?? [:]
        try await RelayHarness.run(policy) { relay in
            let live = try await relay.live("talk/r1/mix")
            func piece(_ text: String, at ms: Int64) -> Frame {
                Frame(kind: .video, timestamp: ms, payload: ByteBuffer(string: text), tag: TagInfo(flags: [.coded, .keyframe]))
            }
            try await relay.publish([piece("A", at: 0)], to: live)
            let sink = try await relay.join(live.stream, on: relay.other, .payloadOverWebSocket)
            try await relay.with(sink) { $0.room = 0 }
            try await relay.publish([piece("B", at: 200), piece("C", at: 400), piece("D", at: 600)], to: live)
            relay.clock.advance(501)
            try await relay.with(sink) { $0.drain() }
            try await relay.publish([piece("E", at: 800)], to: live)
            let letters = try await relay.with(sink) { $0.bytes }.filter { $0 >= 0x41 && $0 < 0x5B }
            #expect(String(decoding: letters, as: UTF8.self) == (limitMs == nil ? "ABCDE" : "ADE"))
        }
    }

    /// The low watermark is a quarter second of the stream, at most 128 KiB. Its minimum is smaller where sound may not wait long.
    @Test(arguments: [(400, nil, 16_384), (400, 20_000, 2_048), (2_000, 20_000, 5_000), (80_000, nil, 131_072)] as [(Int, Int64?, Int)])
    func whatAKernelMayHold(_ bytesPerMessage: Int, _ maxQueueMs: Int64?, _ lowWater: Int) async throws {
        var policy = RelayPolicy()
        policy.maxQueueByAppMs = maxQueueMs.map { ["live": $0] } ?? [:]
        try await RelayHarness.run(policy) { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            for turn in 0..<20 {
                try await relay.publish([try Make.audio(turn, at: Int64(turn) * 100, bytes: bytesPerMessage - 27)], to: live)
                relay.clock.advance(100)
                try await relay.sweep()
            }
            #expect(try await relay.with(sink) { $0.lowWater } == [lowWater])
        }
    }

    /// A keyframe after a quiet time does not make a viewer slow. The rate of the second before says nothing about how long it waits, nor
    /// do bytes that the kernel held a while ago.
    @Test func aKeyframeAfterAQuietTimeIsNotSlow() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            for turn in 0..<40 {
                let isKey = turn % 20 == 15
                let time = Int64(turn) * 100
                try await relay.publish(
                    [isKey ? try Make.key(turn, at: time, bytes: 60_000) : try Make.audio(turn, at: time, bytes: 50)], to: live)
                // The keyframe's bytes, for half a second.
                try await relay.with(sink) { $0.unsent = turn % 20 >= 15 ? 40_000 : 0 }
                relay.clock.advance(100)
                try await relay.sweep()
            }
            #expect(try await relay.with(sink) { $0.tooFarBehindMs } == [])
            // The same when another viewer is behind and all are checked: what the kernel had at the last check has left.
            let behind = try await relay.join(live.stream, on: relay.home) { $0.room = 0 }
            try await relay.with(sink) { $0.unsent = 0 }
            for turn in 40..<110 {
                try await relay.publish([try Make.audio(turn, at: Int64(turn) * 100, bytes: 50)], to: live)
                relay.clock.advance(100)
                try await relay.sweep()
            }
            #expect(try await relay.with(behind) { $0.tooFarBehindMs }.count == 1)
            #expect(try await relay.with(sink) { $0.tooFarBehindMs } == [])
        }
    }

    /// A joiner's cached pictures are old but have not waited for it.
    @Test func joinersAreNotSlow() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let frames = try Make.stream(groups: 1)
            try await relay.publish(frames, to: live)
            relay.clock.advance(10_000)
            let sink = try await relay.join(live.stream, on: relay.other) { $0.room = 50 }
            try await relay.sweep()
            relay.clock.advance(900)
            try await relay.with(sink) { $0.drain() }
            #expect(try await relay.with(sink) { $0.tooFarBehindMs } == [])
            #expect(try await relay.received(sink) == frames.received())
        }
    }

    /// One viewer never reads. The ring stays within its bound, the others get everything, and the stuck viewer gets the headers that it
    /// missed.
    @Test func memoryIsBounded() async throws {
        var policy = RelayPolicy()
        policy.ring.totalBytes = 64 << 10
        try await RelayHarness.run(policy) { relay in
            let live = try await relay.live()
            let stuck = [try await relay.join(live.stream, on: relay.home), try await relay.join(live.stream, on: relay.other)]
            for sink in stuck { try await relay.with(sink) { $0.room = 0 } }
            let well = try await relay.join(live.stream, on: relay.other)
            var frames: [Frame] = []
            for group in 0..<100 {
                // The device rotates: new headers before each keyframe.
                frames.append(try Make.videoHeader(10_000 + group, at: Int64(group) * 100))
                frames.append(try Make.key(group * 100, at: Int64(group) * 100, bytes: 500))
                for index in 1..<20 {
                    frames.append(try Make.inter(group * 100 + index, at: Int64(group) * 100 + Int64(index), bytes: 200))
                }
            }
            for start in stride(from: 0, to: frames.count, by: 7) {
                try await relay.publish(Array(frames[start..<min(start + 7, frames.count)]), to: live)
            }
            #expect(try await relay.ringBytes(live.stream) <= 64 << 10)
            #expect(try await relay.received(well) == frames.received())
            for sink in stuck {
                try await relay.with(sink) { $0.drain() }
                let last = frames.suffix(21)
                #expect(try await relay.received(sink) == last.map { Received($0, at: $0.isSequenceHeader ? 9_900 : nil) })
                #expect(try await relay.changes(sink) == [], "it was told when it came; nothing since")
            }
            try await relay.sweep()
            #expect(try await relay.ringBytes(live.stream) < 10 << 10, "what nobody needs is let go")
        }
    }
}
