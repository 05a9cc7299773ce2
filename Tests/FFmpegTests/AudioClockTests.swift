import FFmpeg
import Testing

@Suite struct AudioClockTests {
    /// Rounded timestamps become exact: at 44.1 kHz AAC runs last 23.22 ms and are stamped 23, 46, 70, 93 …
    @Test(arguments: [8_000, 11_025, 22_050, 44_100, 48_000])
    func roundedTimesBecomeExact(rate: Int) {
        var clock = AudioClock(sampleRate: rate)
        for index in 0..<Int64(50_000) {
            let exact = index * 1_024
            #expect(clock.time(ms: (exact * 1_000 + Int64(rate) / 2) / Int64(rate), samples: 1_024) == exact)
        }
    }

    /// Timestamps by arrival are up to 20 ms late and never early.
    @Test func jitterIsLevelled() {
        var clock = AudioClock(sampleRate: 48_000)
        for index in 0..<Int64(10_000) {
            let time = clock.time(ms: index * 20 + index * 7 % 21, samples: 960)
            #expect(time == index * 960)
        }
    }

    @Test func missingAudioIsAStepForward() {
        var clock = AudioClock(sampleRate: 48_000)
        _ = clock.time(ms: 0, samples: 1_024)
        #expect(clock.time(ms: 500, samples: 1_024) == 24_000)
        #expect(clock.time(ms: 521, samples: 1_024) == 25_024)
    }

    /// Times always rise, even if a publisher's clock runs slow against its samples and then steps back.
    @Test func theCountSlowsDownToTheTimestamps() {
        var clock = AudioClock(sampleRate: 48_000)
        var last: Int64 = -1
        for index in 0..<Int64(20_000) {
            let ms = index * 1_060 / 50
            let time = clock.time(ms: ms, samples: 1_024)
            #expect(time > last && abs(time - ms * 48) < 48 * 30, "\(index)")
            last = time
        }
        for _ in 0..<1_000 {
            let time = clock.time(ms: 3_000, samples: 1_024)
            #expect(time > last)
            last = time
        }
    }

    /// Times and counts that no stream reaches do not trap.
    @Test(arguments: [Int64.max, Int64.min + 1, 1 << 42, -(1 << 42)]) func hugeTimes(ms: Int64) {
        var clock = AudioClock(sampleRate: 768_000)
        _ = clock.time(ms: 0, samples: 0)
        _ = clock.time(ms: ms, samples: .max >> 8)
        _ = clock.time(ms: -ms, samples: 1)
    }
}
