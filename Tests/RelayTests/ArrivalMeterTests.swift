import Media
import NIOCore
import RTMP
import TestSupport
import Testing

@testable import Health
@testable import Relay

@Suite struct ArrivalMeterTests {
    /// Feeds frames at 25 per second of video and 50 of audio, and returns each second's figures. `change` may move a frame's timestamp or
    /// arrival, or leave it out.
    private func seconds(
        _ count: Int, from startMs: Int64 = 1_000, codec: AudioCodec? = .aac,
        _ change: (Frame.Kind, Int64) -> (timestamp: Int64, arrivalMs: Int64)? = { (_, ms) in (ms, ms) }
    ) throws -> [ArrivalSecond] {
        var meter = ArrivalMeter()
        var arrivals: [(ms: Int64, frame: Frame)] = []
        for index in 0..<(count * 50) {
            let ms = Int64(index) * 20
            if index % 2 == 0, let (timestamp, arrivalMs) = change(.video, ms) {
                arrivals.append((arrivalMs, try index % 100 == 0 ? Make.key(index, at: timestamp) : Make.inter(index, at: timestamp)))
            }
            if let (timestamp, arrivalMs) = change(.audio, ms) { arrivals.append((arrivalMs, try Make.audio(index, at: timestamp))) }
        }
        var seconds: [ArrivalSecond] = []
        // Stable: frames that arrive together stay in their order.
        let ordered = arrivals.enumerated().sorted { ($0.element.ms, $0.offset) < ($1.element.ms, $1.offset) }.map(\.element)
        var next = ordered.startIndex
        for tick in 0...(count * 10) {
            let nowMs = startMs + Int64(tick) * 100
            if let second = meter.close(audioCodec: codec, lateMs: 0, nowMs: nowMs) { seconds.append(second) }
            while next < ordered.endIndex, startMs + ordered[next].ms < nowMs + 100 {
                meter.count(ordered[next].frame, nowMs: startMs + ordered[next].ms)
                next += 1
            }
        }
        return seconds
    }

    @Test func anEvenStream() throws {
        let seconds = try self.seconds(6)
        #expect(seconds.count == 6)
        for second in seconds {
            #expect(second.video.frames == 25 && second.audio.frames == 50 && second.lengthMs == 1_000)
            #expect(second.video.transitMs == 1_000 && second.audio.transitMs == 1_000)
            #expect(second.video.jitterMs == 0 && second.stalls == 0 && second.video.jumps == 0 && second.silentMs <= 20)
            #expect(second.plannedGapMs == 20 && second.reorderMs == 0)
        }
        #expect(seconds[5].keyframeIntervalMs == 2_000 && seconds[5].keyframeAgeMs == 1_960)
        #expect(seconds[0].keyframeIntervalMs == nil && seconds[0].keyframeAgeMs == 960)
        #expect(seconds[0].video.keyframes == 1 && seconds[1].video.keyframes == 0)
        #expect(seconds[0].audio.largestBytes == 8 + 3, "without the tag's header")
        #expect(seconds[0].silentBytes == 24)
        #expect(try self.seconds(1, codec: .g711ALaw)[0].silentBytes == 0)
    }

    /// Everything takes half as long again.
    @Test func mediaThatFallsBehind() throws {
        let seconds = try self.seconds(9) { _, ms in (ms, ms * 3 / 2) }
        let growth = zip(seconds, seconds.dropFirst()).compactMap { first, second in
            first.video.transitMs.flatMap { before in second.video.transitMs.map { $0 - before } }
        }
        #expect(growth.count >= 5 && growth.allSatisfy { abs($0 - 333) <= 20 }, "\(growth)")
    }

    @Test(arguments: [Int64(60_000), -30_000]) func jumps(byMs: Int64) throws {
        let seconds = try self.seconds(6) { _, ms in (ms < 3_000 ? 100_000 + ms : 100_000 + ms + byMs, ms) }
        #expect(seconds.map(\.video.jumps) == [0, 0, 0, 1, 0, 0] && seconds.map(\.audio.jumps) == [0, 0, 0, 1, 0, 0])
        #expect(abs(seconds[3].video.jumpMs - byMs) <= 40)
        let transits = Set(seconds.compactMap(\.video.transitMs))
        #expect(transits.allSatisfy { abs($0 + 99_000) <= 40 }, "a jump is no delay: \(transits)")
        #expect(seconds[5].keyframeIntervalMs.map { abs($0 - 2_000) <= 40 } == true, "nor an interval")
    }

    /// The network stood; then all comes at once, and the timestamps are where they were: no jump.
    @Test func aStall() throws {
        let seconds = try self.seconds(6) { _, ms in (ms, (2_000..<3_500).contains(ms) ? 3_500 : ms) }
        #expect(seconds.map(\.stalls).reduce(0, +) == 1 && seconds.allSatisfy { $0.video.jumps == 0 && $0.audio.jumps == 0 })
        #expect((1_480...1_520).contains(seconds.map(\.stalledMs).reduce(0, +)))
        #expect(seconds[2].silentMs >= 980 && !seconds[2].hasMedia)
    }

    /// Pictures that wait and then arrive together do not raise the frame rate: pictures a second are counted in the media's time.
    @Test func burstsAreNoFrameRate() throws {
        for waitMs: Int64 in [900, 1_300, 2_700, 3_900] {
            let seconds = try self.seconds(60) { _, ms in (ms, max(ms, (min(ms, 40_000) / waitMs + 1) * waitMs)) }
            var judge = StreamJudge()
            for (index, second) in seconds.enumerated() {
                judge.judge(second)
                if let pictures = judge.pictures(over: StreamJudge.fpsWindow) {
                    #expect((22.0...28.0).contains(pictures.fps), "\(pictures.fps) after \(index) s of bursts each \(waitMs) ms")
                }
                #expect(!judge.health.reasons.contains { $0.code == .fpsLow }, "\(judge.health)")
            }
            let mediaMs = seconds.reduce(0) { $0 + $1.video.mediaMs }
            #expect((59_500...60_000).contains(mediaMs), "\(mediaMs)")
        }
    }

    /// Pictures each second, and timestamps that say so, are no stall.
    @Test func rarePictures() throws {
        let seconds = try self.seconds(6) { kind, ms in kind == .video && ms % 1_000 == 0 ? (ms, ms) : nil }
        #expect(seconds.allSatisfy { $0.stalls == 0 && $0.video.jitterMs == 0 && $0.video.frames == 1 })
        #expect(seconds[5].plannedGapMs == 1_000)
    }

    /// One kind comes in large blocks while the other goes on: no stall.
    @Test func soundInBlocks() throws {
        let seconds = try self.seconds(6) { kind, ms in (ms, kind == .audio ? ms / 600 * 600 + 600 : ms) }
        #expect(seconds.allSatisfy { $0.stalls == 0 })
    }

    @Test func skew() throws {
        let seconds = try self.seconds(4) { kind, ms in (kind == .audio ? ms + 3_000 : ms, ms) }
        let (video, audio) = (seconds[3].video, seconds[3].audio)
        #expect((video.transitMs ?? 0) - (audio.transitMs ?? 0) == 3_000 && audio.jumpedMs == 0)
        #expect(seconds.allSatisfy { $0.startGapMs == 3_000 })
    }

    /// The frames that wait for a home in another server's cache come at once.
    @Test func aBurstAtTheBeginning() throws {
        let seconds = try self.seconds(6) { _, ms in (ms, max(0, ms - 3_000)) }
        #expect(seconds.allSatisfy { $0.stalls == 0 && $0.video.jumps == 0 })
    }

    @Test func bFrames() throws {
        var meter = ArrivalMeter()
        _ = meter.close(audioCodec: nil, lateMs: 0, nowMs: 0)
        for (index, composition) in [80, 160, 40, 0].enumerated() {
            let payload = ByteBuffer(bytes: [0x27, 1, 0, 0, UInt8(composition), 1, 2, 3])
            meter.count(try Frame(kind: .video, timestamp: Int64(index) * 40, payload: payload), nowMs: Int64(index) * 40)
        }
        let first = meter.close(audioCodec: nil, lateMs: 70, nowMs: 1_000)
        let second = meter.close(audioCodec: nil, lateMs: 100, nowMs: 2_000)
        #expect(first?.reorderMs == 160 && second?.reorderMs == 0 && second?.lateMs == 30 && second?.hasMedia == false)
    }

    private func metadata(_ value: AMF0Value) throws -> Frame {
        var payload = ByteBuffer()
        payload.writeAMF0(.string("@setDataFrame"))
        payload.writeAMF0(.string("onMetaData"))
        payload.writeAMF0(value)
        return try Frame(kind: .data, timestamp: 0, payload: payload)
    }

    @Test func announcedFigures() throws {
        var meter = ArrivalMeter()
        meter.count(
            try self.metadata([
                "videocodecid": 7, "videodatarate": 2_500, "audiodatarate": "160", "framerate": 29.97, "audiocodecid": "mp4a",
            ]), nowMs: 0)
        #expect(meter.announced.hasVideo && meter.announced.hasAudio && meter.announced.framesPerSecond == 29.97)
        #expect(meter.announced.videoBitsPerSecond == 2_500_000 && meter.announced.audioBitsPerSecond == 160_000)
        // A second one within a second is not read; later it is.
        let other = try self.metadata(["videocodecid": 7, "videodatarate": -1, "framerate": .number(.nan), "hasAudio": false])
        meter.count(other, nowMs: 500)
        #expect(meter.announced.hasAudio)
        meter.count(other, nowMs: 1_500)
        #expect(meter.announced.hasVideo && !meter.announced.hasAudio)
        #expect(meter.announced.videoBitsPerSecond == nil && meter.announced.framesPerSecond == nil)
    }

    /// On a loop: the verdict is in the snapshot, reported once, and gone with the publisher.
    @Test func theLoopJudges() async throws {
        try await RelayHarness.run { relay in
            let stream = try await relay.acquire()
            let publisher = JudgedPublisher()
            let token = try await relay.on(relay.home) { try $0.claim(stream, identity: PublisherIdentity("device"), delegate: publisher) }
            func health() async throws -> StreamHealth? { try await relay.on(relay.home) { $0.snapshot(of: stream)?.stream.health } }
            var sent: Int64 = 0
            func frame(_ kind: Frame.Kind, _ bytes: [UInt8]) throws -> Frame {
                try Frame(kind: kind, timestamp: sent, payload: ByteBuffer(bytes: bytes))
            }
            // libx264 164; AAC-LC, 48 kHz.
            let sps: [UInt8] = [
                0x67, 0x42, 0xC0, 0x1E, 0xDA, 0x02, 0x80, 0xBF, 0xE5, 0xC0, 0x44, 0, 0, 3, 0, 4, 0, 0, 3, 0, 0xC8, 0x3C, 0x58, 0xBA, 0x80,
            ]
            let record: [UInt8] = [0x17, 0, 0, 0, 0, 1, 0x42, 0xC0, 0x1E, 0xFF, 0xE1, 0, UInt8(sps.count)]
            let headers = [
                try frame(.video, record + sps + [1, 0, 4, 0x68, 0xCE, 0x0F, 0xC8]), try frame(.audio, [0xAF, 0, 0x11, 0x90]),
            ]
            RelayLoop.publish(headers, to: stream, token: token)
            func go(on seconds: Int64, mediaMs: Int64) async throws {
                for _ in 0..<(seconds * 10) {
                    let frames = [
                        try frame(.video, [0x17, 1, 0, 0, 0, 0, 0, 0, 5, 0x65, 0x88, 0x84, 0x12, 0x34]),
                        try frame(.audio, [0xAF, 1] + [UInt8](repeating: 0x21, count: 60)),
                    ]
                    RelayLoop.publish(frames, to: stream, token: token)
                    sent += mediaMs / 10
                    relay.clock.advance(100)
                    try await relay.sweep()
                }
            }
            #expect(try await health() == nil, "nothing has come")
            try await go(on: 15, mediaMs: 1_000)
            #expect(try await health()?.verdict == .good)
            try await go(on: 10, mediaMs: 650)
            let bad = try await health()
            #expect(bad?.verdict == .bad && bad?.reasons.map(\.code) == [.mediaBehindClock], "\(String(describing: bad))")
            #expect(publisher.told == ["good to bad"])
            try await go(on: 30, mediaMs: 1_000)
            #expect(publisher.told == ["good to bad", "bad to good"])
            try await relay.leave((stream, token), clean: true)
            #expect(try await health() == nil)
        }
    }
}

/// Records the notices of its stream's verdict.
private final class JudgedPublisher: PublisherDelegate {
    private let lines = LockedList<String>()
    var told: [String] { self.lines.all }
    var isJudged: Bool { true }

    func publishEnded(_ token: StreamState.Token, reason: PublishEndReason) {}

    func healthChanged(_ token: StreamState.Token, _ health: StreamHealth, former: StreamVerdict) {
        self.lines.append("\(former) to \(health.verdict)")
    }
}
