import Relay
import ServerConfiguration
import Testing

@testable import Streaming

/// The relay's timers beside those of the registry of rooms.
@Suite struct GracePeriodsTests {
    @Test func theRelayIsTwoSecondsBehindTheRoom() {
        let grace = GracePeriods(ServerConfig().rooms.policy)
        #expect(grace.brokenPipeMs == 30_000 && grace.cleanStopMs == 3_000 && grace.quietMs == 15_000 && grace.flushMs == 1_000)
        #expect(grace.mediaIdleMs == 15_000 + 120_000 + 2_000 && grace.pausedMs == 15_000 + 120_000 + 2_000)
    }

    /// The registry ends viewers with their room; those of a room that goes on are the relay's alone.
    @Test(
        arguments: [
            (10_000, true, 4_000, 8_000), (10_000, false, 4_000, 6_000), (10_000, true, 11_999, 1), (10_000, true, 12_000, 0),
            (10_000, false, 10_000, 0), (10_000, false, 20_000, 0), (.max, true, 1, .max - 1), (.max, false, 1, .max - 1),
            (0, true, 0, 2_000),
        ] as [(Int64, Bool, Int64, Int64)])
    func viewersWaitLongerOnlyForARoomThatEnds(untilMs: Int64, endsRoom: Bool, nowMs: Int64, ms: Int64) {
        #expect(GracePeriods.waitMs(untilMs: untilMs, endsRoom: endsRoom, nowMs: nowMs) == ms)
    }
}
