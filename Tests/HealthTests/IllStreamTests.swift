import Media
import Testing

@testable import Health

/// Each ill, planted into a stream that was good, is named within ten seconds, with its figures, and is forgotten when it is over.
@Suite struct IllStreamTests {
    /// Plants an ill after twenty good seconds.
    private func plant(
        _ code: HealthReason.Code, within limit: Int = 10, then verdict: StreamVerdict, in stream: Simulated = Simulated(),
        _ change: (inout Simulated) -> Void
    ) throws -> HealthReason {
        var stream = stream
        stream.run(20)
        #expect(stream.health.verdict == .good && !stream.codes.contains(code), "\(stream.health)")
        let healthy = stream
        change(&stream)
        let seconds = stream.seconds(until: code)
        #expect(seconds.map { $0 <= limit } == true, "\(code) after \(seconds ?? -1) s: \(stream.health)")
        stream.run(4)
        #expect(stream.health.verdict == verdict, "\(stream.health)")
        let reason = try #require(stream.health.reasons.first { $0.code == code })
        #expect(reason.message.count > 40 && !reason.message.contains("?"), "\(reason.message)")
        // Then the stream becomes healthy again.
        var over = stream
        over.become(healthy)
        over.run(75)
        #expect(over.health.verdict == .good, "\(over.health)")
        return reason
    }

    // MARK: The form of frames

    /// All frames of a kind, or a few of them.
    @Test func framesThatNobodyCanHold() throws {
        let all = try self.plant(.videoBroken, within: 6, then: .bad) { $0.videoFlaws.broken = 25 }
        #expect(all.value.map { $0 >= 80 } == true)
        #expect(try self.plant(.videoBroken, within: 2, then: .degraded) { $0.videoFlaws.broken = 1 }.severity == .degraded)
        _ = try self.plant(.audioBroken, within: 6, then: .bad) { $0.audioFlaws.broken = 43 }
        _ = try self.plant(.videoHeaderMissing, within: 2, then: .bad) { $0.videoFlaws.headless = 25 }
        _ = try self.plant(.audioHeaderMissing, within: 2, then: .bad) { $0.audioFlaws.headless = 43 }
    }

    /// What a muxer did not take is named with its cause; where the codec is the cause, by that alone.
    @Test func framesThatAnOutputRefuses() throws {
        let refusal = TrackRefusal(frames: 43, cause: "MP4 does not take these frames of AAC")
        let reason = try self.plant(.audioRefused, within: 6, then: .bad) { $0.audioRefusal = refusal }
        #expect(reason.message.contains(refusal.cause) && reason.detail == refusal.cause)
        _ = try self.plant(.videoRefused, within: 2, then: .degraded) { $0.videoRefusal = TrackRefusal(frames: 1, cause: "some cause") }
        var stream = Simulated()
        stream.videoCodec = .vp9
        stream.videoRefusal = TrackRefusal(frames: 25, cause: "VP9 is not supported")
        stream.run(5)
        #expect(stream.codes == [.videoCodecNotCarried])
    }

    /// What was set right is a note, and the verdict stays good.
    @Test func whatWasSetRight() throws {
        _ = try self.plant(.videoStartCodes, within: 2, then: .good) { $0.videoFlaws.reframed = 25 }
        _ = try self.plant(.videoStrayBytes, within: 2, then: .good) { $0.videoFlaws.trimmed = 25 }
        _ = try self.plant(.keyframeFlagsWrong, within: 2, then: .good) { $0.videoFlaws.reflagged = 1 }
        _ = try self.plant(.videoHeaderMade, within: 2, then: .good) { $0.videoFlaws.headersMade = 1 }
        let sound = try self.plant(.audioADTS, within: 2, then: .good) { $0.audioFlaws.reframed = 43 }
        #expect(sound.value == 100 || sound.value.map { $0 > 20 } == true)
    }

    /// A push of 670 kbit/s through an uplink of 440.
    @Test func throttledPush() throws {
        let reason = try self.plant(.mediaBehindClock, then: .bad) { $0.mediaMs = 440 * 1_000 / 670 }
        #expect(reason.value.map { (0.6...0.72).contains($0) } == true && reason.expected == 1)
    }

    @Test func slightlyBehind() throws {
        let reason = try self.plant(.mediaBehindClock, within: 13, then: .degraded) { $0.mediaMs = 950 }
        #expect(reason.severity == .degraded)
    }

    @Test func stalls() throws {
        let reason = try self.plant(.uplinkStalls, then: .degraded) { $0.stalledMs = 450 }
        #expect(reason.value.map { $0 >= 1_000 } == true)
    }

    /// Nothing comes any more, though the publisher is connected.
    @Test func silence() {
        var stream = Simulated()
        stream.run(20)
        stream.mediaMs = 0
        for second in 1...6 {
            stream.silentMs = Int64(second) * 1_000
            stream.run(1)
        }
        #expect(stream.health.verdict == .bad && stream.codes.first == .uplinkStalls, "\(stream.health)")
    }

    /// A publisher that stays connected and sends nothing for minutes, and then goes on.
    @Test func longSilence() throws {
        var stream = Simulated()
        stream.run(20)
        stream.mediaMs = 0
        for second in 1...63 {
            stream.silentMs = Int64(second) * 1_000
            stream.run(1)
            guard second > 10 else { continue }
            let reason = try #require(stream.health.reasons.first { $0.code == .uplinkStalls })
            #expect(reason.value == Double(second) * 1_000, "\(reason)")
            #expect(reason.message.hasPrefix("Nothing has arrived for \(second) s:"), "\(reason.message)")
        }
        (stream.mediaMs, stream.silentMs, stream.stalledMs) = (1_000, 20, 63_000)
        stream.run(1)
        let reason = try #require(stream.health.reasons.first { $0.code == .uplinkStalls })
        #expect(reason.value == 10_000 && reason.message.contains("10 s of the last ten seconds"), "\(reason.message)")
        stream.stalledMs = 0
        stream.run(30)
        #expect(stream.health == .good)
    }

    @Test func jitter() throws {
        let reason = try self.plant(.uplinkJitter, within: 12, then: .degraded) { $0.jitterMs = 180 }
        #expect(reason.value.map { $0 > 100 } == true)
    }

    @Test func oneJump() {
        var stream = Simulated()
        stream.run(20)
        (stream.jumps, stream.jumpMs) = (1, -60_000)
        stream.run(1)
        stream.jumps = 0
        #expect(stream.health.verdict == .degraded && stream.codes == [.timestampJump])
        #expect(stream.health.reasons[0].message.contains("back by 60 s"))
        stream.run(40)
        #expect(stream.health == .good)
    }

    @Test func jumpsAgainAndAgain() throws {
        _ = try self.plant(.timestampJump, within: 1, then: .bad) { ($0.jumps, $0.jumpMs) = (2, 20_000) }
    }

    @Test(arguments: [(Int64(3_000), StreamVerdict.bad), (-1_500, .degraded)]) func skew(ms: Int64, verdict: StreamVerdict) throws {
        let reason = try self.plant(.avSkew, then: verdict) { $0.skewMs = ms }
        #expect(reason.value == Double(ms))
    }

    @Test(arguments: [(10.0, StreamVerdict.degraded), (4, .bad)]) func fewerFrames(fps: Double, verdict: StreamVerdict) throws {
        let reason = try self.plant(.fpsLow, then: verdict) { $0.fps = fps }
        #expect(reason.expected.map { abs($0 - 25) < 1 } == true && reason.value.map { abs($0 - fps) < 3 } == true)
    }

    @Test func fewFramesFromTheStart() {
        var stream = Simulated()
        stream.announced.framesPerSecond = 30
        stream.announced.videoBitsPerSecond = 500_000
        stream.fps = 8
        stream.interBytes = 6_000
        #expect(stream.seconds(until: .fpsLow).map { $0 <= 10 } == true, "\(stream.health)")
    }

    @Test func keyframesFarApart() throws {
        let reason = try self.plant(.keyframeIntervalLong, then: .degraded) { $0.gopMs = 20_000 }
        #expect(reason.expected == 2_000)
    }

    /// The second keyframe is not waited for; once it has come, the interval is known.
    @Test func longGOPFromTheStart() {
        var stream = Simulated()
        stream.gopMs = 20_000
        #expect(stream.seconds(until: .keyframeIntervalLong).map { $0 <= 10 } == true)
        stream.run(20)
        #expect(stream.health.reasons.map(\.value) == [20_000] && stream.codes == [.keyframeIntervalLong])
        stream.gopMs = nil
        stream.run(40)
        #expect(stream.codes == [.keyframeIntervalUnbounded])
    }

    @Test func noKeyframeAtAll() {
        var stream = Simulated()
        stream.keyBytes = 0
        #expect(stream.seconds(until: .keyframeMissing).map { $0 <= 6 } == true && stream.health.verdict == .bad)
    }

    @Test func audioThatStops() throws {
        let reason = try self.plant(.audioStopped, then: .bad) { $0.audioPerSecond = 0 }
        #expect(reason.value.map { $0 >= 4 } == true)
    }

    @Test func videoThatStops() throws {
        _ = try self.plant(.videoStopped, then: .bad) { $0.hasVideo = false }
    }

    @Test func audioThatNeverComes() {
        var stream = Simulated()
        stream.audioPerSecond = 0
        stream.announced.hasAudio = true
        #expect(stream.seconds(until: .audioMissing).map { $0 <= 7 } == true && stream.health.verdict == .degraded)
        stream.audioPerSecond = 43
        stream.run(10)
        #expect(stream.health == .good)
    }

    @Test func videoThatNeverComes() {
        var stream = Simulated()
        stream.hasVideo = false
        stream.announced.hasVideo = true
        #expect(stream.seconds(until: .videoMissing).map { $0 <= 7 } == true)
    }

    @Test func silentAudio() throws {
        _ = try self.plant(.audioSilent, then: .degraded) { $0.audioBytes = 6 }
    }

    /// PCM of digital silence is as large as sound.
    @Test func silenceIsNotJudgedWithoutACodecThatShowsIt() {
        var stream = Simulated()
        stream.audioCodec = .g711ALaw
        stream.audioBytes = 6
        stream.run(40)
        #expect(stream.health == .good)
    }

    @Test(arguments: [150_000.0, 2_500_000]) func bitrateFarFromAnnounced(announced: Double) throws {
        let reason = try self.plant(.videoBitrateMismatch, within: 13, then: .degraded) { $0.announced.videoBitsPerSecond = announced }
        #expect(reason.expected == announced && reason.value.map { (400_000...700_000).contains($0) } == true)
    }

    @Test func audioBitrateFarFromAnnounced() throws {
        let reason = try self.plant(.audioBitrateMismatch, within: 13, then: .degraded) {
            $0.announced.audioBitsPerSecond = 64_000
            $0.audioBytes = 800
        }
        #expect(reason.expected == 64_000)
    }

    @Test func bFramesAreANote() throws {
        let reason = try self.plant(.bFrames, then: .good) { $0.reorderMs = 120 }
        #expect(reason.value == 120 && reason.severity == .good)
    }

    @Test func oneKindThatBeganLaterIsANote() throws {
        let reason = try self.plant(.avStartGap, then: .good) { $0.startGapMs = 3_000 }
        #expect(reason.message.hasPrefix("Audio began 3 s after video"))
        var later = Simulated()
        later.startGapMs = 300_000
        later.run(5)
        #expect(later.codes.isEmpty, "a microphone switched on after five minutes")
    }

    @Test func codecsThatOutputsCannotCarry() throws {
        var stream = Simulated()
        (stream.videoCodec, stream.audioCodec) = (.vp9, .unknown(12))
        stream.run(3)
        #expect(stream.codes == [.videoCodecNotCarried, .audioCodecNotCarried] && stream.health.verdict == .degraded)
        #expect(stream.health.reasons[0].message.contains("VP9"))
    }

    /// An uplink at the edge: the verdict must not change with every second.
    @Test func doesNotFlap() {
        var stream = Simulated()
        for second in 0..<300 {
            stream.mediaMs = second % 9 < 6 ? 880 : 1_240
            stream.stalledMs = second % 7 == 0 ? 600 : 0
            stream.fps = second % 6 < 3 ? 10 : 25
            stream.run(1)
        }
        #expect(stream.changes <= 6, "\(stream.changes) changes in five minutes")
    }

    @Test func worstReasonIsFirst() {
        var stream = Simulated()
        stream.reorderMs = 80
        stream.gopMs = 20_000
        stream.run(15)
        stream.mediaMs = 600
        stream.run(12)
        #expect(stream.codes.first == .mediaBehindClock && stream.codes.last == .bFrames && stream.codes.contains(.keyframeIntervalLong))
    }

    @Test func newsAtMostOnceInTenSeconds() {
        var reports = VerdictReports()
        #expect(reports.due(.good, nowMs: 0) == nil)
        #expect(reports.due(.degraded, nowMs: 1_000) == nil)
        #expect(reports.due(.bad, nowMs: 2_000) == nil)
        #expect(reports.due(.bad, nowMs: 4_000) == .good, "what it was for a moment is no news")
        #expect(reports.due(.good, nowMs: 5_000) == nil)
        #expect(reports.due(.good, nowMs: 13_999) == nil)
        #expect(reports.due(.bad, nowMs: 14_500) == nil, "as told")
        #expect(reports.due(.good, nowMs: 15_000) == nil)
        #expect(reports.due(.good, nowMs: 17_000) == .bad)
    }

    @Test func adviceWhileTheUplinkIsTooSlow() {
        var stream = Simulated()
        var advice = UplinkAdvice()
        stream.run(20)
        #expect(advice.due(stream.judge, nowMs: 0) == nil && stream.judge.carriedBitsPerSecond == nil)
        stream.mediaMs = 660
        stream.run(12)
        let usual = 25 * 2_500 * 8 + 43 * 300 * 8
        let carried = advice.due(stream.judge, nowMs: 1_000)
        #expect(carried.map { abs($0 - usual * 2 / 3) < usual / 5 } == true, "\(carried ?? -1) of \(usual)")
        #expect(advice.due(stream.judge, nowMs: 5_999) == nil)
        #expect(advice.due(stream.judge, nowMs: 6_000) == carried)
    }

    /// Each code has its words, and none is cut short by a value that is missing.
    @Test(arguments: HealthReason.Code.allCases) func everyReasonHasItsWords(_ code: HealthReason.Code) {
        let message = HealthReason(code, .bad, 1_500, expected: 3_000, detail: "VP9").message
        #expect(message.hasSuffix(".") && message.split(separator: " ").count > 10, "\(message)")
        #expect(code.rawValue.allSatisfy { $0 == "_" || $0.isLowercase })
    }
}

extension Simulated {
    /// Takes over the other's settings; what was judged stays.
    fileprivate mutating func become(_ other: Simulated) {
        self.fps = other.fps
        self.gopMs = other.gopMs
        self.hasVideo = other.hasVideo
        self.audioPerSecond = other.audioPerSecond
        self.audioBytes = other.audioBytes
        self.mediaMs = other.mediaMs
        self.skewMs = other.skewMs
        self.jitterMs = other.jitterMs
        self.stalledMs = other.stalledMs
        self.reorderMs = other.reorderMs
        self.jumps = other.jumps
        self.announced = other.announced
        self.videoFlaws = other.videoFlaws
        self.audioFlaws = other.audioFlaws
        self.videoRefusal = other.videoRefusal
        self.audioRefusal = other.audioRefusal
    }
}
