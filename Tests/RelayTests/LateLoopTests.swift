import Media
import NIOCore
import Support
import Testing

@testable import Relay

/// A loop that serves its viewers late; they are not to blame.
@Suite(.timeLimit(.minutes(5))) struct LateLoopTests {
    private static let turn = 20

    private static func crowd(_ relay: RelayHarness, _ stream: Relay.Stream, _ count: Int) async throws -> [FakeSink] {
        var sinks: [FakeSink] = []
        for _ in 0..<count { sinks.append(try await relay.join(stream, on: relay.home)) }
        return sinks
    }

    /// Lets `ms` pass within a lap, between the first viewers and the others. The loop sweeps meanwhile.
    private static func delay(_ relay: RelayHarness, _ sink: FakeSink, ms: Int64) async throws {
        try await relay.on(relay.home) { loop in
            sink.onWrite = {
                sink.onWrite = nil
                relay.clock.advance(ms)
                loop.eventLoop.execute { loop.sweep() }
            }
        }
    }

    /// Viewers that the loop keeps waiting past every limit get everything. One whose own socket is full is cut.
    @Test func onlyOwnSocketsCount() async throws {
        try await RelayHarness.run(sendsPerTurn: Self.turn) { relay in
            let live = try await relay.live()
            let frames = try Make.stream(groups: 3, framesPerGroup: 3)
            try await relay.publish(Array(frames[..<4]), to: live)
            let sinks = try await Self.crowd(relay, live.stream, Self.turn * 3)
            let stuck = sinks[Self.turn * 2]
            try await relay.with(stuck) { $0.writeLimit = 0 }
            try await relay.publish(Array(frames[4..<6]), to: live)
            try await Self.delay(relay, sinks[0], ms: 8_000)
            try await relay.publish(Array(frames[6...]), to: live)
            let expected = frames.received()
            for sink in sinks where sink !== stuck {
                #expect(try await relay.received(sink) == expected)
                #expect(try await relay.with(sink) { $0.tooFarBehindMs.isEmpty && $0.viewers[0].gate.skippedFrames == 0 })
            }
            #expect(try await relay.with(stuck) { $0.tooFarBehindMs.count } == 1)
            try await relay.sweep()
            #expect(try await relay.on(relay.home) { $0.pressure.lagMs } > 300, "it is seen as late")
        }
    }

    /// A viewer that was behind by its own fault and has caught up starts afresh.
    @Test func stallsDoNotAddUp() async throws {
        var policy = RelayPolicy()
        policy.skipBehindMs = 1_000
        try await RelayHarness.run(policy) { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            let frames = try Make.stream(groups: 6, framesPerGroup: 3)
            try await relay.publish(Array(frames[..<4]), to: live)
            for start in stride(from: 4, to: frames.count - 2, by: 2) {
                try await relay.with(sink) { $0.writeLimit = 0 }
                try await relay.publish(Array(frames[start..<start + 2]), to: live)
                relay.clock.advance(900)
                try await relay.with(sink) { $0.drain() }
            }
            #expect(try await relay.with(sink) { $0.viewers[0].gate.skippedFrames } == 0)
        }
    }

    /// A viewer that reads a little now and then stays behind by its own fault.
    @Test func readingALittleIsStillSlow() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            try await relay.publish([try Make.key(0, at: 0)], to: live)
            try await relay.with(sink) { $0.room = 0 }
            for turn in 1..<100 {
                try await relay.publish([try Make.audio(turn, at: Int64(turn) * 100, bytes: 1_000)], to: live)
                relay.clock.advance(100)
                try await relay.with(sink) { if $0.isOpen { $0.makeRoom(100) } }
                try await relay.sweep()
            }
            #expect(try await relay.with(sink) { $0.tooFarBehindMs.count } == 1)
        }
    }

    /// Too many slow viewers at once are cut a few at a time, the slowest first.
    @Test func aFewAtATimeSlowestFirst() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sinks = try await Self.crowd(relay, live.stream, 30)
            for (index, sink) in sinks.enumerated() {
                try await relay.with(sink) { $0.room = 0 }
                try await relay.publish([try Make.audio(index, at: Int64(index) * 10)], to: live)
                relay.clock.advance(10)
            }
            relay.clock.advance(6_000)
            var order: [Int] = []
            for sweep in 1...4 {
                try await relay.on(relay.home) { $0.sweep() }
                let closed = try await relay.on(relay.home) { _ in sinks.indices.filter { !sinks[$0].isOpen } }
                #expect(closed.count == min(30, sweep * 8))
                order += closed.filter { !order.contains($0) }
            }
            #expect(order == Array(0..<30), "who stopped reading first goes first")
        }
    }

    /// When refusing newcomers is not enough, the loop sheds viewers. One in a hundred goes each second, the worst served first.
    @Test func shedsTheSlowest() async throws {
        var policy = RelayPolicy()
        policy.maxBehindMs = 1_000_000
        policy.skipBehindMs = 1_000_000
        try await RelayHarness.run(policy, sendsPerTurn: Self.turn) { relay in
            let live = try await relay.live()
            let sinks = try await Self.crowd(relay, live.stream, 100)
            try await relay.with(sinks[70]) { $0.room = 0 }
            for turn in 0..<49 {
                try await relay.on(relay.home) { _ in
                    sinks[0].onWrite = {
                        sinks[0].onWrite = nil
                        relay.clock.advance(1_500)
                    }
                }
                try await relay.publish([try Make.audio(turn, at: Int64(turn) * 20)], to: live)
                try await relay.on(relay.home) { $0.sweep() }
            }
            #expect(try await relay.on(relay.home) { $0.viewersShed } == 0)
            #expect(try await relay.on(relay.home) { $0.pressure.level } == .overloaded)
            for turn in 49..<65 {
                try await relay.on(relay.home) { _ in
                    sinks[0].onWrite = {
                        sinks[0].onWrite = nil
                        relay.clock.advance(1_500)
                    }
                }
                try await relay.publish([try Make.audio(turn, at: Int64(turn) * 20)], to: live)
                try await relay.on(relay.home) { $0.sweep() }
            }
            #expect(try await relay.on(relay.home) { _ in sinks.indices.filter { sinks[$0].isShed } } == [70])
            #expect(try await relay.on(relay.home) { $0.viewersShed } == 1)
        }
    }
}
