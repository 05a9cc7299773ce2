import Media
import Support
import Testing

@testable import Relay

/// An app's messages may be gathered for a while, to leave in one write.
@Suite struct CoalesceTests {
    @Test func gathersByApp() async throws {
        var policy = RelayPolicy()
        policy.coalesceByAppMs = ["live": 80]
        try await RelayHarness.run(policy) { relay in
            let frames = try Make.stream(groups: 2, framesPerGroup: 5)
            for (path, isGathered) in [("live/cam", true), ("talk/cam", false)] {
                let live = try await relay.live(path)
                let sink = try await relay.join(live.stream, on: relay.other)
                let begin = ContinuousClock.now
                for frame in frames { try await relay.publish([frame], to: live) }
                let early = try await relay.with(sink) { $0.writes }
                let windows = Int((ContinuousClock.now - begin) / .milliseconds(80)) + 1
                #expect(isGathered ? early <= windows : early == frames.count, "\(path): \(early) writes in \(windows) windows")
                let end = ContinuousClock.now + .seconds(30)
                while try await relay.received(sink).count < frames.count, ContinuousClock.now < end {
                    try await Task.sleep(for: .milliseconds(10))
                }
                #expect(try await relay.received(sink) == frames.received())
            }
        }
    }
}
