import Foundation
import Media
import NIOCore
import Testing

@testable import Relay

/// Random churn of viewers under load on two loops. Viewers join, stall, resume and leave while a thread publishes two streams at full
/// speed. Each must get its own stream, whole and in order, and the relay must not touch a viewer that has gone.
///
/// The interleaving differs in every run. `EARSHOT_CHURN_VIEWERS` sets the number of viewers (10,000).
@Suite struct ChurnTests {
    private static let viewers = ProcessInfo.processInfo.environment["EARSHOT_CHURN_VIEWERS"].flatMap(Int.init) ?? 10_000

    @Test(.timeLimit(.minutes(10))) func viewersComeAndGoUnderLoad() async throws {
        var policy = RelayPolicy()
        policy.skipBehindMs = 300
        policy.maxBehindMs = 1_500
        // Each loop needs several turns to serve its crowd.
        try await RelayHarness.run(policy, sendsPerTurn: 5) { relay in
            var lives: [(stream: Relay.Stream, token: StreamState.Token)] = []
            for index in 0..<Crowd.streams { lives.append(try await relay.live("live/churn\(index)")) }
            let streams = lives.map(\.stream)
            for (index, live) in lives.enumerated() {
                RelayLoop.publish(try StreamCheck.Load.headers(stream: index), to: live.stream, token: live.token)
            }
            var crowds: [(relay: RelayLoop, crowd: Crowd)] = []
            for (index, loop) in relay.loops.enumerated() {
                crowds.append((loop, Crowd(loop, streams, viewers: Self.viewers / 2, seed: UInt64(index + 1))))
            }
            var number = 0
            var isOver = false
            while !isOver {
                // Both loops run at the same time as this thread.
                let turns = crowds.map { loop, crowd in
                    loop.eventLoop.submit {
                        loop.sweep()
                        return try crowd.turn()
                    }
                }
                for _ in 0..<8 {
                    number += 1
                    for (index, live) in lives.enumerated() {
                        let frame = try StreamCheck.Load.frame(number, stream: index, of: Crowd.streams)
                        RelayLoop.publish([frame], to: live.stream, token: live.token)
                    }
                }
                relay.clock.advance(40)
                isOver = try turns.map { try RelayHarness.wait(for: $0) }.allSatisfy { $0 }
            }
            try await relay.settle()
            try await relay.sweep()
            for (loop, crowd) in crowds {
                let account = try await relay.on(loop) { _ in crowd.account }
                #expect(account.closed == Self.viewers / 2)
                #expect(account.messages > account.closed, "the load was one")
                #expect(account.skips > 0 && account.tooSlow > 0, "some were slow: \(account)")
                #expect(account.sinksAlive == 0 && account.viewersAlive == 0, "all memory of viewers is given back: \(account)")
            }
            #expect(streams.allSatisfy { $0.viewerCount == 0 })
        }
    }
}

/// The viewers of one loop. `@unchecked Sendable`: touched on its loop only.
private final class Crowd: @unchecked Sendable {
    struct Account: Sendable {
        var closed = 0
        var messages = 0
        var skips = 0
        var tooSlow = 0
        var sinksAlive = 0
        var viewersAlive = 0
    }

    static let streams = 2
    /// Viewers connected at a time.
    private static let lanes = 40

    private let loop: RelayLoop
    private let streamsPlayed: [Relay.Stream]
    private let wanted: Int
    private var opened = 0
    private var random: SeededGenerator
    private var sinks: [SocketSink] = []
    private var sum = Account()
    private var seen: [Remembered] = []
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)

    private struct Remembered {
        weak var sink: SocketSink?
        weak var viewer: Viewer?
    }

    init(_ loop: RelayLoop, _ streams: [Relay.Stream], viewers: Int, seed: UInt64) {
        self.loop = loop
        self.streamsPlayed = streams
        self.wanted = viewers
        self.random = SeededGenerator(seed: seed)
    }

    deinit { self.buffer.deallocate() }

    var account: Account {
        var account = self.sum
        account.sinksAlive = self.seen.count { $0.sink != nil }
        account.viewersAlive = self.seen.count { $0.viewer != nil }
        return account
    }

    /// Some viewers leave, others join, the rest read or stall. Returns whether all have come and gone.
    func turn() throws -> Bool {
        for index in self.sinks.indices {
            let sink = self.sinks[index]
            switch Int.random(in: 0..<100, using: &self.random) {
            case 0..<22 where !sink.stays: sink.close()
            case 22..<26: sink.isReading = false
            case 26..<29: sink.isReading = true
            // Runs at any point of the loop's turn, as a connection's end does.
            case 29..<30: self.loop.eventLoop.assumeIsolated().execute { sink.close() }
            default: try sink.turn(self.buffer)
            }
        }
        self.forgetClosed()
        while self.sinks.count < Self.lanes, self.opened < self.wanted { try self.open() }
        return self.sinks.isEmpty && self.opened == self.wanted
    }

    private func open() throws {
        let index = Int.random(in: 0..<Self.streams, using: &self.random)
        let streamID: UInt32 = Int.random(in: 0..<4, using: &self.random) == 0 ? 5 : 1
        let sink = try #require(
            SocketSink(self.loop, hasLine: self.opened % 2 == 0, check: StreamCheck(stream: index, of: Self.streams, streamID: streamID)))
        sink.stays = Int.random(in: 0..<24, using: &self.random) == 0
        sink.isReading = Int.random(in: 0..<4, using: &self.random) != 0
        sink.play(self.streamsPlayed[index], streamID: streamID)
        self.opened += 1
        self.sinks.append(sink)
        self.seen.append(Remembered(sink: sink, viewer: sink.viewer))
    }

    private func forgetClosed() {
        for sink in self.sinks where !sink.isOpen {
            self.sum.closed += 1
            self.sum.messages += sink.check.messages
            self.sum.skips += sink.check.skips
            if sink.wasTooSlow { self.sum.tooSlow += 1 }
        }
        self.sinks.removeAll { !$0.isOpen }
    }
}
