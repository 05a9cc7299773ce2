import Support
import Testing

@testable import Relay

/// Defaults in docs/playing.md (slow viewers, GOP cache) and docs/rooms.md (grace periods).
@Suite struct DefaultTests {
    @Test func policies() {
        let policy = RelayPolicy()
        #expect(policy.skipBehindMs == 1_000 && policy.maxBehindMs == 5_000 && policy.overloadMs == 500 && policy.coalesceMs == 0)
        #expect(policy.ring.gopBytes == 16_777_216 && policy.ring.gopMs == 20_000 && policy.ring.totalBytes == 33_554_432)
        let grace = policy.grace
        #expect(grace.brokenPipeMs == 30_000 && grace.cleanStopMs == 3_000 && grace.mediaIdleMs == 120_000 && grace.pausedMs == 120_000)
        #expect(grace.quietMs == 15_000 && grace.dryMs == 5_000 && grace.flushMs == nil)
    }

    /// Per-app settings apply only to names in that app.
    @Test func byApp() {
        var policy = RelayPolicy()
        policy.coalesceMs = 5
        #expect(policy.coalesceMs("live/a") == 5 && policy.maxQueueMs("live/a") == nil)
        policy.coalesceByAppMs = ["live": 7]
        policy.maxQueueByAppMs = ["talk": 9]
        #expect(policy.coalesceMs("live/a") == 7 && policy.coalesceMs("live/a/b") == 7)
        #expect(policy.coalesceMs("lives/a") == 5 && policy.coalesceMs("live") == 5)
        #expect(policy.maxQueueMs("talk/a") == 9 && policy.maxQueueMs("live/a") == nil)
    }
}
