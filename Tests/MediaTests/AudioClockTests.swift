import Media
import TestSupport
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

    /// Blocks of frames with one timestamp, that of their first or their last frame: no hole, wherever the stream begins.
    @Test(arguments: [2, 4, 8], [0, 1, 3]) func blocksAreLevelled(frames: Int64, first: Int64) {
        var clock = AudioClock(sampleRate: 44_100)
        var expected: Int64?
        for index in first..<10_000 {
            let time = clock.time(ms: index / frames * frames * 10_240 / 441, samples: 1_024)
            if let expected { #expect(time == expected, "\(index)") }
            expected = time + 1_024
        }
    }

    /// A clock with 20 ms of jitter either way makes no hole that can be heard, and the count stays with it.
    @Test(.seeded) func jitterBothWaysIsLevelled() {
        var random = TestRandom()
        var clock = AudioClock(sampleRate: 44_100)
        var end: Int64?
        for index in 0..<Int64(20_000) {
            let exact = 1_000 + index * 10_240 / 441
            let time = clock.time(ms: exact + Int64.random(in: -20...20, using: &random), samples: 1_024)
            if let end { #expect((-64...64).contains(time - end), "\(index)") }
            #expect(abs(time - exact * 441 / 10) < 45 * 441 / 10, "\(index)")
            end = time + 1_024
        }
    }

    /// Lost frames: many show at once, few within seconds. Then the count agrees with the timestamps again.
    @Test(arguments: [Int64(1), 2, 3, 5, 40]) func lostFramesAreMissed(lost: Int64) {
        var clock = AudioClock(sampleRate: 44_100)
        for index in 0..<Int64(1_000) {
            let exact = (index + (index < 500 ? 0 : lost)) * 1_024
            let time = clock.time(ms: (exact * 1_000 + 22_050) / 44_100, samples: 1_024)
            // Up to two frames could be jitter.
            let wait: Int64 = lost > 2 ? 0 : 250
            if index < 500 || index >= 500 + wait { #expect(abs(time - exact) < 6 * 441 / 10, "\(index)") }
        }
    }

    /// A header with twice or half the real sample rate: the count stays near the timestamps.
    @Test(arguments: [500, 2_000]) func wrongRates(permille: Int64) {
        var clock = AudioClock(sampleRate: 48_000)
        var last: Int64 = -1
        for index in 0..<Int64(5_000) {
            let ms = index * 1_024 / 48 * permille / 1_000
            let time = clock.time(ms: ms, samples: 1_024)
            #expect(time > last && abs(time - ms * 48) < 600 * 48, "\(index)")
            last = time
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
