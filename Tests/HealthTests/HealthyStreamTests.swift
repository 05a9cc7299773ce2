import Media
import Testing

@testable import Health

/// Streams as they should be, or are on purpose: none of them is ever anything but good.
@Suite struct HealthyStreamTests {
    /// Runs for some minutes and expects no verdict but good.
    private func staysGood(_ stream: inout Simulated, seconds: Int = 200, _ change: (inout Simulated, Int) -> Void = { _, _ in }) {
        for second in 0..<seconds {
            change(&stream, second)
            stream.run(1)
            #expect(stream.health.verdict == .good, "\(stream.health.reasons) after \(second) s")
            if stream.health.verdict != .good { return }
        }
        #expect(stream.codes.filter { $0 != .bFrames && $0 != .avStartGap }.isEmpty)
    }

    @Test func obs() {
        var stream = Simulated()
        stream.fps = 30
        stream.reorderMs = 66
        stream.interBytes = 9_000
        stream.keyBytes = 90_000
        stream.announced.hasVideo = true
        stream.announced.hasAudio = true
        stream.announced.videoBitsPerSecond = 2_500_000
        stream.announced.audioBitsPerSecond = 160_000
        stream.announced.framesPerSecond = 30
        self.staysGood(&stream)
        #expect(stream.codes == [.bFrames], "a note")
    }

    /// OBS's default is a keyframe every 250 frames: 8.3 s.
    @Test func obsWithoutAKeyframeInterval() {
        var stream = Simulated()
        stream.fps = 30
        stream.gopMs = 8_000
        self.staysGood(&stream)
    }

    /// Audio first, a rate that follows the light, keyframes every four seconds.
    @Test func phone() {
        var stream = Simulated()
        stream.announced.hasVideo = true
        stream.announced.hasAudio = true
        stream.announced.framesPerSecond = 30
        stream.announced.videoBitsPerSecond = 700_000
        stream.gopMs = 4_000
        stream.startGapMs = -2_000
        stream.jitterMs = 40
        self.staysGood(&stream) { stream, second in
            stream.hasVideo = second >= 2
            stream.fps = [30, 28, 24, 20, 15, 18, 26, 30][second / 7 % 8]
            stream.skewMs = second % 3 == 0 ? 200 : -150
        }
    }

    @Test func screenThatStands() {
        var stream = Simulated()
        stream.announced.hasVideo = true
        stream.announced.videoBitsPerSecond = 3_000_000
        stream.announced.framesPerSecond = 30
        stream.audioPerSecond = 0
        stream.keyBytes = 80_000
        self.staysGood(&stream) { stream, second in
            stream.fps = [1, 5, 2, 1, 3][second / 10 % 5]
            stream.interBytes = 120
            stream.silentMs = 700
        }
    }

    /// A film in a window, then text.
    @Test func screenThatComesToRest() {
        var stream = Simulated()
        stream.interBytes = 6_000
        stream.keyBytes = 80_000
        self.staysGood(&stream) { stream, second in
            let isFilm = second / 40 % 2 == 0
            stream.fps = isFilm ? 30 : 2
            stream.interBytes = isFilm ? 6_000 : 200
        }
    }

    /// A picture every five seconds.
    @Test func slideShow() {
        var stream = Simulated()
        stream.fps = 0.2
        stream.gopMs = 1
        stream.audioPerSecond = 0
        self.staysGood(&stream) { stream, second in stream.silentMs = Int64(second % 5) * 1_000 }
    }

    @Test func audioOnly() {
        var stream = Simulated()
        stream.hasVideo = false
        stream.videoCodec = nil
        stream.announced.hasAudio = true
        self.staysGood(&stream)
    }

    @Test(arguments: [true, false]) func videoOnly(isAnnounced: Bool) {
        var stream = Simulated()
        stream.audioPerSecond = 0
        stream.audioCodec = nil
        stream.announced.hasVideo = isAnnounced
        self.staysGood(&stream)
    }

    /// A still scene needs few bits at any rate of frames.
    @Test func variableBitRate() {
        var stream = Simulated()
        stream.announced.videoBitsPerSecond = 6_000_000
        stream.announced.audioBitsPerSecond = 160_000
        stream.keyBytes = 120_000
        stream.interBytes = 900
        stream.audioBytes = 40
        self.staysGood(&stream)
    }

    /// A device's clock that is one part in a thousand slow.
    @Test func driftingClock() {
        var stream = Simulated()
        stream.mediaMs = 999
        self.staysGood(&stream, seconds: 600)
    }

    @Test func oneShortStall() {
        var stream = Simulated()
        self.staysGood(&stream) { stream, second in
            stream.stalledMs = second % 60 == 50 ? 800 : 0
        }
    }

    /// The server stood still: nothing of that is the publisher's.
    @Test func aLateServer() {
        var stream = Simulated()
        self.staysGood(&stream) { stream, second in
            let isLate = second % 5 == 4
            stream.lateMs = isLate ? 900 : 0
            stream.stalledMs = isLate ? 900 : 0
            stream.jitterMs = isLate ? 80 : 3
        }
    }

    /// Opus that sends nothing while nobody speaks, but now and then a frame.
    @Test func discontinuousVoice() {
        var stream = Simulated()
        stream.audioCodec = .opus
        self.staysGood(&stream) { stream, second in stream.audioPerSecond = second / 10 % 2 == 0 ? 50 : 2 }
    }
}
