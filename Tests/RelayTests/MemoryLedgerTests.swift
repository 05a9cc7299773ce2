import Media
import NIOCore
import Support
import Synchronization
import Testing

@testable import Relay

/// Memory charged to streams, and the caches dropped when it is too much.
@Suite struct MemoryLedgerTests {
    private static func policy(_ limit: Int) -> RelayPolicy {
        var policy = RelayPolicy()
        policy.ledger = MemoryLedger(limit: limit)
        return policy
    }

    @Test func slabsAreChargedAndGivenBack() {
        let ledger = MemoryLedger(limit: 100_000)
        var allocator = SlabAllocator(ledger: ledger)
        var pieces = [allocator.reserve(100, nowMs: 0)]
        #expect(ledger.used == 8 << 10)
        pieces.append(allocator.reserve(100_000, nowMs: 0))
        #expect(ledger.used == (8 << 10) + 100_000 && ledger.isOver)
        pieces = []
        #expect(ledger.used == 8 << 10 && !ledger.isOver)
        allocator.reset()
        #expect(ledger.used == 0)
    }

    /// Usage equal to the limit is not over it.
    @Test func theLimitItselfIsAllowed() {
        let ledger = MemoryLedger(limit: 1_000)
        #expect(ledger.used == 0 && !ledger.isOver)
        ledger.charge(1_000)
        #expect(ledger.used == 1_000 && !ledger.isOver)
        ledger.charge(1)
        #expect(ledger.isOver)
        ledger.charge(-1)
        #expect(!ledger.isOver)
    }

    @Test func aChargeIsGivenBackWithItsHolder() {
        let ledger = MemoryLedger(limit: 1_000)
        do {
            let charge = MemoryCharge(ledger)
            #expect(charge.bytes == 0 && ledger.used == 0)
            for bytes in [10, 500, 500, 20] { charge.set(bytes) }
            #expect(ledger.used == 20)
        }
        #expect(ledger.used == 0)
    }

    /// Over the limit, a stream without viewers drops its cached pictures. A watched one keeps them all.
    @Test func whatNobodyWatchesGoes() async throws {
        let policy = Self.policy(1_300_000)
        let ledger = try #require(policy.ledger)
        try await RelayHarness.run(policy) { relay in
            let watched = try await relay.live("live/watched")
            let alone = try await relay.live("live/alone")
            let viewer = try await relay.join(watched.stream, on: relay.other)
            for live in [watched, alone] {
                try await relay.publish(
                    [Make.videoHeader(0), Make.key(1, at: 0, bytes: 400_000), Make.inter(2, at: 40, bytes: 100_000)], to: live)
            }
            try await relay.sweep()
            #expect(try await relay.ringBytes(alone.stream) > 500_000 && !ledger.isOver)
            try await relay.publish([Make.inter(3, at: 80, bytes: 400_000)], to: watched)
            #expect(ledger.isOver)
            try await relay.sweep()
            #expect(try await relay.ringBytes(alone.stream) == 0)
            #expect(try await relay.ringBytes(watched.stream) > 900_000)
            #expect(!ledger.isOver)
            #expect(try await relay.received(viewer).count == 4)
            // Its next keyframe is cached again.
            try await relay.publish([Make.key(4, at: 120, bytes: 1_000)], to: alone)
            try await relay.sweep()
            #expect(try await relay.ringBytes(alone.stream) > 1_000)
        }
        // The loops release their last references after the harness has ended.
        for _ in 0..<1_000 where ledger.used != 0 { try await Task.sleep(for: .milliseconds(10)) }
        #expect(ledger.used == 0)
    }

    /// A publisher is notified once of pictures too many to cache, by size or time.
    @Test func anOverflowIsToldOnce() async throws {
        final class Publisher: PublisherDelegate {
            let overflows = Atomic<Int>(0)
            func publishEnded(_ token: StreamState.Token, reason: PublishEndReason) {}
            func cacheOverflowed() { self.overflows.add(1, ordering: .relaxed) }
            var count: Int { self.overflows.load(ordering: .relaxed) }
        }
        var policy = RelayPolicy()
        policy.ring.gopBytes = 10_000
        try await RelayHarness.run(policy) { relay in
            let stream = try await relay.acquire()
            let publisher = Publisher()
            let token = try await relay.on(relay.home) { try $0.claim(stream, identity: PublisherIdentity("one"), delegate: publisher) }
            try await relay.sweep()
            for group in 0..<3 {
                let at = Int64(group) * 100
                try await relay.publish([Make.key(1, at: at, bytes: 4_000), Make.inter(2, at: at + 40, bytes: 4_000)], to: (stream, token))
                try await relay.sweep()
                #expect(publisher.count == (group == 0 ? 0 : 1))
                try await relay.publish([Make.inter(3, at: at + 80, bytes: 4_000)], to: (stream, token))
                try await relay.sweep()
                #expect(publisher.count == 1)
            }
            // The next publisher is notified of its own overflow only.
            let next = Publisher()
            _ = try await relay.on(relay.home) { try $0.claim(stream, identity: PublisherIdentity("one"), delegate: next) }
            try await relay.sweep()
            try await relay.sweep()
            #expect(next.count == 0)
        }
    }
}
