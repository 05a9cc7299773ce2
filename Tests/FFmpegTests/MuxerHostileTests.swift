import FFmpeg
import Foundation
import Media
import NIOCore
import TestSupport
import Testing

/// Feeds the muxers samples of a broken or hostile publisher.
@Suite struct MuxerHostileTests {
    private static func video(_ dts: Int64, pts: Int64? = nil, key: Bool = false, bytes: Int = 40) -> Sample {
        var payload = ByteBuffer(integer: UInt32(max(1, bytes - 4)))
        payload.writeBytes([key ? 0x65 : 0x41] + [UInt8](repeating: 0x5A, count: max(0, bytes - 5)))
        return Sample(kind: .video, dts: dts, pts: pts ?? dts, isKeyframe: key, payload: payload)
    }

    private static func muxer(_ format: ContainerFormat = .fmp4, originMs: Int64 = 0, limit: Int = 64 << 20) async throws
        -> FragmentMuxer
    {
        try FragmentMuxer(tracks: try await Clip.avc.value.tracks, format: format, originMs: originMs, maxPendingBytes: limit)
    }

    /// The packets that ffprobe reads in the fragments.
    private static func packets(_ muxer: FragmentMuxer, _ fragments: [Fragment]) async throws -> [ProbedPacket] {
        let scratch = try Scratch()
        var bytes = muxer.initialization
        for fragment in fragments { bytes.writeImmutableBuffer(fragment.bytes) }
        try Data(bytes.readableBytesView).write(to: URL(fileURLWithPath: scratch.path("out.mp4")))
        return try await Probe.packets(scratch.path("out.mp4"), warnings: false)
    }

    @Test func timesThatDoNotRiseAreMovedUp() async throws {
        let muxer = try await Self.muxer()
        for (index, dts) in [Int64(1_000), 1_000, 1_000, 990, 1_040, 500, 1_080].enumerated() {
            try muxer.write(Self.video(dts, key: index == 0))
        }
        #expect(muxer.adjustedTimestamps == 4)
        let fragment = try #require(try muxer.flush())
        let packets = try await Self.packets(muxer, [fragment])
        #expect(packets.count == 7)
        for (packet, next) in zip(packets, packets.dropFirst()) { #expect(packet.dts < next.dts) }
        #expect(abs((packets.last?.dts ?? 0) - 1.08) < 0.001)
    }

    @Test func jumpsAreRefusedAndNothingIsTaken() async throws {
        let muxer = try await Self.muxer()
        try muxer.write(Self.video(10_000_000, key: true))
        for dts in [Int64(17_200_000), 10_060_001, 9_989_999, 0, .max, .min] {
            #expect(throws: FFmpegError.timestampJump(kind: .video, fromMs: 10_000_000, toMs: dts)) { try muxer.write(Self.video(dts)) }
        }
        try muxer.write(Self.video(10_000_040))
        let fragment = try #require(try muxer.flush())
        #expect(fragment.samples == 2 && fragment.durationMs == 80)
        // Time may jump ahead by hours between fragments; a jump back needs a new muxer.
        try muxer.write(Self.video(17_200_000, key: true))
        #expect(try muxer.flush()?.startMs == 17_200_000)
        #expect(throws: FFmpegError.timestampJump(kind: .video, fromMs: 17_200_000, toMs: 5)) { try muxer.write(Self.video(5)) }
        #expect(try muxer.flush() == nil)
    }

    @Test func pictureTimesThatMakeNoSenseAreMoved() async throws {
        let muxer = try await Self.muxer()
        for (dts, pts) in [(Int64(0), Int64(80)), (40, 6), (80, 99_000), (120, .min), (160, .max), (200, 240)] {
            try muxer.write(Self.video(dts, pts: pts, key: dts == 0))
        }
        let fragment = try #require(try muxer.flush())
        let packets = try await Self.packets(muxer, [fragment])
        #expect(packets.map { Int(($0.pts * 1_000).rounded()) } == [80, 6, 80, 120, 160, 240])
        #expect(muxer.adjustedTimestamps == 3)
    }

    @Test func samplesBeforeTheOriginAreAtTheOrigin() async throws {
        let muxer = try await Self.muxer(originMs: 5_000)
        for dts in [Int64(4_900), 4_940, 5_020] { try muxer.write(Self.video(dts, key: dts == 4_900)) }
        let packets = try await Self.packets(muxer, [try #require(try muxer.flush())])
        #expect(packets.map { Int(($0.dts * 1_000).rounded()) } == [0, 0, 20])
    }

    @Test func largeKeyframesAndTheLimit() async throws {
        let muxer = try await Self.muxer(limit: 20 << 20)
        for dts in [Int64(0), 40] { try muxer.write(Self.video(dts, key: true, bytes: 8 << 20)) }
        #expect(throws: FFmpegError.overLimit(field: "fragment (bytes)", found: 24 << 20, max: 20 << 20)) {
            try muxer.write(Self.video(80, bytes: 8 << 20))
        }
        let fragment = try #require(try muxer.flush())
        #expect(fragment.bytes.readableBytes > 16 << 20 && fragment.bytes.readableBytes < (16 << 20) + 1_000)
        #expect(FragmentMuxerTests.boxes(fragment.bytes) == ["moof", "mdat"])
        try muxer.write(Self.video(80, bytes: 8 << 20))
        #expect(muxer.pendingBytes == 8 << 20)
    }

    /// MPEG-TS must split samples into units. Those with false unit lengths are lost, and only those.
    @Test func brokenUnitsInTransportStreams() async throws {
        let clip = try await Clip.avc.value
        let muxer = try await Self.muxer(.mpegTS)
        var refused = 0
        for (index, sample) in clip.samples.prefix(100).enumerated() {
            var sample = sample
            if sample.kind == .video, index % 10 == 3 { sample.payload = ByteBuffer(bytes: [0xFF, 0xFF, 0xFF, 0xFF, 0x41, 1, 2, 3]) }
            do throws(FFmpegError) {
                try muxer.write(sample)
            } catch {
                refused += 1
                guard case .library = error else { throw error }
            }
        }
        let fragment = try #require(try muxer.flush())
        #expect(refused > 0 && refused == muxer.lostSamples && fragment.bytes.readableBytes > 10_000)
    }

    /// Random samples at random times always yield complete fragments.
    @Test(.seeded, arguments: [ContainerFormat.fmp4, .mpegTS]) func fuzz(_ format: ContainerFormat) async throws {
        var random = TestRandom()
        for _ in 0..<30 {
            let muxer = try await Self.muxer(format, originMs: Int64.random(in: -1_000...1_000_000, using: &random))
            var time = Int64.random(in: 0...1_000_000, using: &random)
            for _ in 0..<200 {
                time &+=
                    Bool.random(using: &random)
                    ? Int64.random(in: -200...300, using: &random) : Int64.random(in: .min / 2 ... .max / 2, using: &random)
                let bytes = (0..<Int.random(in: 0...300, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
                let sample = Sample(
                    kind: Bool.random(using: &random) ? .video : .audio, dts: time,
                    pts: time &+ Int64.random(in: -500...20_000, using: &random),
                    isKeyframe: Bool.random(using: &random), payload: ByteBuffer(bytes: bytes))
                do throws(FFmpegError) {
                    try muxer.write(sample)
                    if bytes.count % 17 == 0, let fragment = try muxer.flush(before: sample) { Self.expectWhole(fragment, format) }
                } catch .timestampJump {
                    time = sample.dts &- time < 0 ? 1_000 : 2_000
                } catch {
                    guard case .library = error else { throw error }
                }
            }
            if let fragment = try muxer.flush() { Self.expectWhole(fragment, format) }
        }
    }

    private static func expectWhole(_ fragment: Fragment, _ format: ContainerFormat) {
        #expect(fragment.durationMs >= 0 && fragment.samples > 0)
        switch format {
        case .fmp4: #expect(FragmentMuxerTests.boxes(fragment.bytes) == ["moof", "mdat"])
        case .mpegTS: #expect(fragment.bytes.readableBytes % 188 == 0)
        }
    }
}
