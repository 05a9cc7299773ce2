import Health
import Media
import Testing

@testable import Relay

/// The loops' counts for metrics.
@Suite struct RelayFiguresTests {
    private static func figures(_ relay: RelayHarness, _ loop: RelayLoop) async throws -> RelayFigures.Values {
        try await relay.on(loop) { $0.figures.values }
    }

    /// Viewers that join while there are pictures are timed; earlier ones are not.
    @Test func joinsAreTimed() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            _ = try await relay.join(live.stream, on: relay.home)
            let frames = try Make.stream(groups: 2)
            try await relay.publish(Array(frames[..<20]), to: live)
            #expect(try await Self.figures(relay, relay.home).join.total == 0)
            _ = try await relay.join(live.stream, on: relay.home)
            #expect(try await Self.figures(relay, relay.home).join.total == 1)
            _ = try await relay.join(live.stream, on: relay.other)
            #expect(try await Self.figures(relay, relay.other).join.total == 1)
            // No more for what follows.
            try await relay.publish(Array(frames[20...]), to: live)
            #expect(try await Self.figures(relay, relay.home).join.total == 1)
        }
    }

    /// A joiner whose socket takes nothing yet has not joined.
    @Test func aFullSocketDelaysTheJoin() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await relay.publish(Array(try Make.stream(groups: 2)[..<20]), to: live)
            let sink = try await relay.join(live.stream, on: relay.home) { $0.room = 0 }
            #expect(try await Self.figures(relay, relay.home).join.total == 0)
            relay.clock.advance(300)
            try await relay.with(sink) { $0.makeRoom(1 << 20) }
            let join = try await Self.figures(relay, relay.home).join
            #expect(join.total == 1 && join.sumMicros == 300_000, "\(join)")
        }
    }

    /// Each viewer is sampled once a second, independent of its traffic.
    @Test func viewersAreSampledOnceASecond() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            for _ in 0..<3 { _ = try await relay.join(live.stream, on: relay.home) }
            try await relay.publish(try Make.stream(groups: 2), to: live)
            for _ in 0..<20 {
                relay.clock.advance(100)
                try await relay.sweep()
            }
            let values = try await Self.figures(relay, relay.home)
            #expect(values.behind.total == 6 && values.behind.counts[0] == 6, "\(values.behind)")
            #expect(values.lag.total == 20)
        }
    }

    /// A lap of several turns counts once, and so does one that shares its turn.
    @Test func lapsCountOnce() async throws {
        try await RelayHarness.run(sendsPerTurn: 4) { relay in
            let large = try await relay.live("live/large")
            var sinks: [FakeSink] = []
            for _ in 0..<10 { sinks.append(try await relay.join(large.stream, on: relay.home)) }
            let before = try await Self.figures(relay, relay.home).lap.total
            try await relay.publish([try Make.audio(1, at: 0)], to: large)
            #expect(try await Self.figures(relay, relay.home).lap.total == before + 1)
            try await relay.publish([try Make.audio(2, at: 20)], to: large)
            #expect(try await Self.figures(relay, relay.home).lap.total == before + 2)
        }
    }
}
