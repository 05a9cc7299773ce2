import Media
import Testing

@testable import Relay

@Suite struct StreamHistoryTests {
    /// The first second counts like the others.
    @Test func secondsAreCounted() throws {
        var history = StreamHistory()
        let meter = StreamMeter()
        history.tick(meter, viewers: 1, isLive: true, nowMs: 0)
        for second in 0..<3 as Range<Int64> {
            for frame in 0..<5 as Range<Int64> {
                history.count(try Make.inter(1, at: second * 1_000 + frame * 200, bytes: 200), nowMs: second * 1_000 + frame * 200)
            }
            history.tick(meter, viewers: 1, isLive: true, nowMs: second * 1_000 + 999)
            history.tick(meter, viewers: 2, isLive: true, nowMs: second * 1_000 + 1_000)
        }
        #expect(history.seconds.map(\.framesPerSecond) == [5, 5, 5] && history.seconds.map(\.atMs) == [1_000, 2_000, 3_000])
        #expect(history.seconds.allSatisfy { $0.audioBitsPerSecond == 0 && $0.videoBitsPerSecond > 8_000 && $0.viewers == 2 })
    }

    /// Figures over a longer time add up the newest seconds, also once the ring has wrapped around.
    @Test(arguments: [3, StreamHistory.capacity + 7]) func newestSecondsAddUp(_ seconds: Int) throws {
        var history = StreamHistory()
        #expect(history.sum(after: 0) == StreamHistory.Sum())
        history.tick(StreamMeter(), viewers: 0, isLive: true, nowMs: 0)
        for second in 0..<Int64(seconds) {
            for frame in 0..<5 as Range<Int64> {
                history.count(try Make.inter(1, at: second * 1_000 + frame * 200), nowMs: second * 1_000 + frame * 200)
            }
            history.tick(StreamMeter(), viewers: 0, isLive: true, nowMs: second * 1_000 + 1_000)
        }
        let nowMs = Int64(seconds) * 1_000
        let sum = history.sum(after: nowMs - 2_000)
        #expect(sum.seconds == 2 && sum.framesPerSecond == 10 && sum.arrivalJitterMs == 0 && sum.longestKeyframeIntervalMs == 0)
        #expect(history.sum(after: nowMs).seconds == 0)
        #expect(history.sum(after: -1).seconds == min(seconds, StreamHistory.capacity))
    }

    /// Jitter is measured per kind: sound and pictures may be out of step with each other.
    @Test func jitterIsOfEachKind() throws {
        var history = StreamHistory()
        let meter = StreamMeter()
        history.tick(meter, viewers: 0, isLive: true, nowMs: 0)
        for frame in 0..<25 as Range<Int64> {
            history.count(try Make.inter(1, at: frame * 40), nowMs: frame * 40)
            history.count(try Make.audio(1, at: 5_000 + frame * 40), nowMs: frame * 40)
        }
        history.tick(meter, viewers: 0, isLive: true, nowMs: 1_000)
        #expect(history.seconds.map(\.arrivalJitterMs) == [0])
        for (index, late) in [0, 16, 0, 16].enumerated() {
            history.count(try Make.inter(1, at: 1_000 + Int64(index) * 40), nowMs: 1_000 + Int64(index) * 40 + Int64(late))
        }
        history.tick(meter, viewers: 0, isLive: true, nowMs: 2_000)
        // RFC 3550 §6.4.1: a sixteenth of each difference.
        #expect(history.seconds.last?.arrivalJitterMs == 2.8)
    }
}
