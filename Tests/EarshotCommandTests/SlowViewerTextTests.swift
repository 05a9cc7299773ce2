import Support
import Testing

@testable import Commands

/// What `earshot streams why` tells of slow viewers.
@Suite struct SlowViewerTextTests {
    private static func stream(slow: Int64, of viewers: Int64) -> JSONValue {
        ["slowViewers": .integer(slow), "viewers": .integer(viewers), "worstBehindMs": 2_400]
    }

    private static func session(_ address: String, isSlow: Bool, behindMs: Int64, skipped: Int64 = 0) -> JSONValue {
        let play: JSONValue = [
            "stream": "live/r1", "isSlow": .bool(isSlow), "behindMs": .integer(behindMs), "framesSkipped": .integer(skipped),
        ]
        let other: JSONValue = ["stream": "live/r2", "isSlow": true, "behindMs": 9_000, "framesSkipped": 0]
        return ["address": .string(address), "transport": "flv", "playing": [other, play]]
    }

    @Test func streamsWithoutSlowViewersTellOfNone() {
        #expect(SlowViewerText.paragraph(of: "live/r1", Self.stream(slow: 0, of: 3), []) == nil)
        #expect(SlowViewerText.paragraph(of: "live/r1", nil, []) == nil)
    }

    @Test func theWorstIsNamedAndTheOthersShowWhoseFaultItIs() {
        let sessions = [
            // Behind by its own wish, such as a head start.
            Self.session("10.0.0.2", isSlow: false, behindMs: 4_000), Self.session("10.0.0.9", isSlow: true, behindMs: 2_400, skipped: 120),
            Self.session("10.0.0.8", isSlow: true, behindMs: 1_600),
        ]
        #expect(
            SlowViewerText.paragraph(of: "live/r1", Self.stream(slow: 2, of: 5), sessions)
                == "2 of its 5 viewers are slow. The worst, 10.0.0.9 (flv), is 2400 ms behind live; it missed 120 frames so far. "
                + "The others get this stream in time: look at the network or the player of those that are slow. "
                + "`earshot sessions list --stream live/r1 --sort behind` shows them.")
    }

    /// The sessions of another node of a cluster are not among those that are listed.
    @Test func allViewersAndAViewerThatIsNotListed() {
        let all = SlowViewerText.paragraph(of: "live/r1", Self.stream(slow: 2, of: 2), [])
        #expect(
            all?.hasPrefix("2 of its 2 viewers are slow. The worst is 2400 ms behind live. All viewers of this stream are slow:") == true)
        let one = SlowViewerText.paragraph(of: "live/r1", Self.stream(slow: 1, of: 1), [])
        #expect(one?.hasPrefix("Its only viewer is slow. The worst is 2400 ms behind live. Its network or its player is too slow.") == true)
    }
}
