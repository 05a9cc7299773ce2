import Media
import NIOCore
import Testing

@testable import Relay

/// Streams with more viewers than a loop serves in one turn.
@Suite(.timeLimit(.minutes(5))) struct LapTests {
    private static let turn = 20
    private static let crowd = turn * 3 - 4

    private func joinCrowd(_ relay: RelayHarness, _ stream: Relay.Stream) async throws -> [FakeSink] {
        var sinks: [FakeSink] = []
        for _ in 0..<Self.crowd { sinks.append(try await relay.join(stream, on: relay.home)) }
        return sinks
    }

    /// Waits until `newest` is the newest message of every open sink.
    private func wait(_ relay: RelayHarness, _ sinks: [FakeSink], for newest: Frame) async throws {
        let newest = [newest].received()
        let end = ContinuousClock.now + .seconds(30)
        while ContinuousClock.now < end {
            let isMissing = try await relay.on(relay.home) { _ in
                try sinks.contains { try $0.isOpen && $0.bytes.messages().suffix(1) != newest[...] }
            }
            guard isMissing else { return }
        }
        Issue.record("somebody was not sent the newest message")
    }

    private func count(_ relay: RelayHarness, _ sinks: [FakeSink], _ matches: @escaping @Sendable (FakeSink) -> Bool) async throws -> Int {
        try await relay.on(relay.home) { _ in sinks.count(where: matches) }
    }

    /// A frame that arrives in mid-lap shares a write with the lap's own frame. Viewers not yet served get both in one write.
    @Test func whatComesMeanwhileLeavesInTheSameLap() async throws {
        try await RelayHarness.run(sendsPerTurn: Self.turn) { relay in
            let live = try await relay.live()
            let sinks = try await self.joinCrowd(relay, live.stream)
            let frames = [try Make.audio(1, at: 0), try Make.audio(2, at: 20)]
            try await relay.on(relay.home) { _ in
                sinks[0].onWrite = {
                    sinks[0].onWrite = nil
                    relay.home.eventLoop.execute { RelayLoop.publish([frames[1]], to: live.stream, token: live.token) }
                }
            }
            RelayLoop.publish([frames[0]], to: live.stream, token: live.token)
            try await self.wait(relay, sinks, for: frames[1])
            for sink in sinks { #expect(try await relay.on(relay.home) { _ in try sink.bytes.messages() } == frames.received()) }
            let early = try await self.count(relay, sinks) { $0.writes == 2 }
            #expect([1, 2].contains { early == $0 * Self.turn }, "twice to those of the turns before it came: \(early)")
            #expect(try await self.count(relay, sinks) { $0.writes == 1 } == sinks.count - early)
        }
    }

    /// A small stream's viewer does not wait for all viewers of a large one.
    @Test func smallStreamsComeInBetween() async throws {
        try await RelayHarness.run(sendsPerTurn: Self.turn) { relay in
            let large = try await relay.live("live/large")
            let small = try await relay.live("live/small")
            let sinks = try await self.joinCrowd(relay, large.stream)
            let viewer = try await relay.join(small.stream, on: relay.home)
            let frame = try Make.audio(1, at: 0)
            let served = try await relay.on(relay.home) { loop in
                let served = loop.eventLoop.makePromise(of: Int.self)
                viewer.onWrite = {
                    viewer.onWrite = nil
                    served.succeed(sinks.count { $0.writes > 0 })
                }
                sinks[0].onWrite = {
                    sinks[0].onWrite = nil
                    RelayLoop.publish([frame], to: small.stream, token: small.token)
                }
                RelayLoop.publish([frame], to: large.stream, token: large.token)
                return served.futureResult
            }
            #expect(try RelayHarness.wait(for: served) == Self.turn)
            try await self.wait(relay, sinks, for: frame)
        }
    }

    /// Connections come and go between two turns of a lap. No viewer is skipped, and none gets anything twice.
    @Test func viewersComeAndGoBetweenTurns() async throws {
        try await RelayHarness.run(sendsPerTurn: Self.turn) { relay in
            let live = try await relay.live()
            let sinks = try await self.joinCrowd(relay, live.stream)
            let late = (0..<5).map { _ in FakeSink(relay.home) }
            let frames = try (0..<4).map { try Make.audio($0 + 1, at: Int64($0) * 20) }
            try await relay.on(relay.home) { loop in
                // In the second turn: viewers already served, viewers still to be served, and this one itself.
                let turning = sinks[Self.turn + 4]
                turning.onWrite = {
                    turning.onWrite = nil
                    for sink in sinks[5..<12] { sink.close() }
                    for sink in sinks[45..<50] { sink.close() }
                    turning.close()
                    loop.eventLoop.execute {
                        loop.sweep()
                        for sink in late { sink.play(live.stream) }
                        RelayLoop.publish([frames[1]], to: live.stream, token: live.token)
                    }
                }
                // At the end of the lap.
                sinks[sinks.count - 1].onWrite = {
                    sinks[sinks.count - 1].onWrite = nil
                    for sink in sinks[14..<18] { sink.close() }
                    RelayLoop.publish([frames[2]], to: live.stream, token: live.token)
                    loop.eventLoop.execute { loop.sweep() }
                }
            }
            RelayLoop.publish([frames[0]], to: live.stream, token: live.token)
            let all = sinks + late
            try await self.wait(relay, all, for: frames[2])
            try await relay.publish([frames[3]], to: live)
            try await self.wait(relay, all, for: frames[3])
            let open = try await relay.on(relay.home) { _ in try all.filter(\.isOpen).map { try $0.bytes.messages() } }
            #expect(open.count == all.count - 17)
            let expected = frames.received()
            for (index, messages) in open.enumerated() {
                let isLate = index >= open.count - late.count
                #expect(messages == (isLate ? Array(expected.suffix(messages.count)) : expected))
                #expect(messages.count >= 3)
            }
            for sink in late { try await relay.on(relay.home) { _ in sink.close() } }
        }
    }
}
