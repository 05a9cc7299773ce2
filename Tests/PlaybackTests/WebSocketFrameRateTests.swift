import Foundation
import Testing

@testable import Playback
@testable import Support

/// WebSocket players that stay long, and those that send too much.
@Suite struct WebSocketFrameRateTests {
    /// Ten frames a second for three days, and a burst of 900 every hour.
    @Test func aLongStayIsNoFlood() {
        var rate = WebSocketFrameRate()
        var isFlood = false
        for second in Int64(0)..<259_200 {
            if !rate.admits(second % 3_600 == 0 ? 900 : 10, nowMs: second * 1_000) { isFlood = true }
        }
        #expect(!isFlood)
    }

    @Test(arguments: [(1_001, 0), (300, 1_000), (30, 100)] as [(Int, Int64)]) func aFloodIsOne(frames: Int, everyMs: Int64) {
        var rate = WebSocketFrameRate()
        #expect((0..<100).contains { !rate.admits(frames, nowMs: Int64($0) * everyMs) })
    }
}
