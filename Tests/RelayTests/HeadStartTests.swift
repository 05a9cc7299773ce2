import Media
import Testing

@testable import Relay

/// Viewers that read the cached pictures at their own pace. The media is 100 kB/s in groups of ten seconds.
@Suite struct HeadStartTests {
    private static let frameBytes = 10_000

    private static func frame(_ index: Int, from beginMs: Int64 = 0) throws -> Frame {
        // With its header of 17 bytes a message is 10,000 bytes long.
        let body = Self.frameBytes - TestEncoder.headerLength
        return index % 100 == 0
            ? try Make.key(index, at: beginMs + Int64(index) * 100, bytes: body - 13)
            : try Make.inter(index, at: beginMs + Int64(index) * 100, bytes: body - 13)
    }

    /// Publishes and sweeps every 100 ms. Each viewer reads its number of bytes after each frame.
    private static func play(
        _ relay: RelayHarness, _ live: (stream: Relay.Stream, token: Int), frames: Range<Int>, from beginMs: Int64 = 0,
        readers: [(sink: FakeSink, bytes: Int)]
    ) async throws {
        for index in frames {
            try await relay.publish([try Self.frame(index, from: beginMs)], to: live)
            for (sink, bytes) in readers {
                try await relay.with(sink) { sink in
                    if sink.isOpen { sink.makeRoom((sink.room ?? 0) + bytes) }
                }
            }
            relay.clock.advance(100)
            try await relay.sweep()
        }
    }

    private static let limit: Int64 = 5_000

    /// Viewers as fast as the stream are never cut and miss nothing. That holds at 3.6 times its rate, a little above it, and just at it,
    /// from the first second on. At half the rate a viewer loses pictures. At zero it is cut once it has lost the limit since it joined.
    @Test(arguments: [WireFormat.rtmp, .payloadOverHTTP]) func readersOfManyPaces(_ wireFormat: WireFormat) async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await Self.play(relay, live, frames: 0..<99, readers: [])
            var readers: [(sink: FakeSink, bytes: Int)] = []
            for loop in relay.loops {
                for bytes in [36_000, 11_000, 10_200, 5_000, 0] {
                    readers.append((try await relay.join(live.stream, on: loop, wireFormat) { $0.room = 0 }, bytes))
                }
            }
            try await Self.play(relay, live, frames: 99..<399, readers: readers)
            for (sink, bytes) in readers {
                let cut = try await relay.with(sink) { $0.tooFarBehindMs }
                if bytes >= 10_000 {
                    #expect(cut == [], "\(bytes)")
                    #expect(try await relay.with(sink) { $0.viewers.first?.gate.skippedFrames } == 0, "\(bytes)")
                } else if bytes > 0 {
                    #expect(try await relay.with(sink) { $0.viewers.first?.gate.skippedFrames ?? 0 } > 50, "\(bytes): \(cut)")
                } else {
                    // It began 9.9 s behind.
                    #expect(cut.count == 1 && cut[0] > 9_900 + Self.limit && cut[0] < 9_900 + Self.limit + 400, "\(bytes): \(cut)")
                }
            }
        }
    }

    /// The same when the kernel accepts everything at once: unsent bytes count as unread.
    @Test func readersBehindALargeKernelBuffer() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await Self.play(relay, live, frames: 0..<99, readers: [])
            let fast = try await relay.join(live.stream, on: relay.other) { $0.unsent = 990_000 }
            let even = try await relay.join(live.stream, on: relay.other) { $0.unsent = 990_000 }
            let none = try await relay.join(live.stream, on: relay.home) { $0.unsent = 990_000 }
            for index in 99..<200 {
                try await relay.with(fast) { $0.unsent = max(0, $0.unsent - 26_000) }
                try await relay.with(none) { $0.unsent += 10_000 }
                try await Self.play(relay, live, frames: index..<index + 1, readers: [])
            }
            #expect(try await relay.with(fast) { $0.tooFarBehindMs } == [])
            #expect(try await relay.with(even) { $0.tooFarBehindMs } == [])
            let cut = try await relay.with(none) { $0.tooFarBehindMs }
            #expect(cut.count == 1 && cut[0] > 9_900 + Self.limit && cut[0] < 9_900 + Self.limit + 2_000, "\(cut)")
        }
    }

    /// A viewer that has reached the live edge loses its head start.
    @Test func whoHasCaughtUpIsJudgedByLive() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await Self.play(relay, live, frames: 0..<99, readers: [])
            let sink = try await relay.join(live.stream, on: relay.other)
            try await Self.play(relay, live, frames: 99..<130, readers: [])
            try await relay.with(sink) { $0.room = 0 }
            try await Self.play(relay, live, frames: 130..<190, readers: [])
            let cut = try await relay.with(sink) { $0.tooFarBehindMs }
            #expect(cut.count == 1 && cut[0] > Self.limit && cut[0] < Self.limit + 400, "\(cut)")
        }
    }

    /// Ten seconds of media that arrive at once are a head start too. The first MP4 pieces made from a cached group do so.
    @Test func cachedMediaThatIsMadeNow() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let even = try await relay.join(live.stream, on: relay.other, .payloadOverHTTP) { $0.room = 0 }
            let none = try await relay.join(live.stream, on: relay.home, .payloadOverHTTP) { $0.room = 0 }
            try await relay.publish(try (0..<99).map { try Self.frame($0) }, to: live)
            try await Self.play(relay, live, frames: 99..<400, readers: [(even, 10_200), (none, 0)])
            #expect(try await relay.with(even) { $0.tooFarBehindMs } == [])
            #expect(try await relay.with(none) { $0.tooFarBehindMs }.count == 1)
        }
    }

    /// A device's clock may start anywhere. That is no head start for a viewer already there.
    @Test func publisherWhoseTimeBeginsLate() async throws {
        try await RelayHarness.run { relay in
            let stream = try await relay.acquire("live/cam")
            let sink = try await relay.join(stream, on: relay.other) { $0.room = 0 }
            let live = (stream: stream, token: try await relay.claim(stream))
            try await Self.play(relay, live, frames: 0..<100, from: 3_600_000, readers: [])
            let cut = try await relay.with(sink) { $0.tooFarBehindMs }
            #expect(cut.count == 1 && cut.first ?? 0 > Self.limit && cut.first ?? 0 < Self.limit + 400, "\(cut)")
        }
    }

    /// After a pause a viewer resumes at the newest keyframe, old as that may be.
    @Test func afterAPause() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await Self.play(relay, live, frames: 0..<50, readers: [])
            let sink = try await relay.join(live.stream, on: relay.other)
            try await Self.play(relay, live, frames: 50..<80, readers: [])
            try await relay.on(relay.other) { $0.setPaused(sink.viewers[0], true) }
            try await Self.play(relay, live, frames: 80..<190, readers: [])
            try await relay.with(sink) { sink in
                sink.room = 0
                sink.loop.setPaused(sink.viewers[0], false)
            }
            try await Self.play(relay, live, frames: 190..<400, readers: [(sink, 10_200)])
            #expect(try await relay.with(sink) { $0.tooFarBehindMs } == [])
            #expect(try await relay.with(sink) { $0.bytes.count } > 180 * Self.frameBytes)
        }
    }
}
