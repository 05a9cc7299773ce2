import Listening
import ServerTestSupport
import Support
import Testing

@testable import Streaming

/// The places of players over HLS.
@Suite struct HLSPlacesTests {
    private static let idleMs: Int64 = 9_000

    /// One address asks for playlist after playlist: it has its share, and then ends its own sessions.
    @Test func aFloodEndsItsOwn() {
        let places = HLSPlaces(.init(total: 10, perHost: 4))
        #expect(places.enter(1, "viewer", nowMs: 0, idleMs: Self.idleMs) == (nil, []))
        for id in 2...5 as ClosedRange<UInt64> { #expect(places.enter(id, "2001:db8::\(id)", nowMs: 1, idleMs: Self.idleMs) == (nil, [])) }
        #expect(places.enter(6, "2001:db8::6", nowMs: 2, idleMs: Self.idleMs) == (.tooManyFromHost, []), "none of them is silent yet")
        #expect(places.enter(6, "2001:db8::6", nowMs: 1 + Self.idleMs, idleMs: Self.idleMs) == (nil, [2]))
        #expect(places.count == 5)
        places.leave(6)
        places.leave(6)
        #expect(places.count == 4 && places.enter(7, "2001:db8::7", nowMs: 20, idleMs: Self.idleMs) == (nil, []))
    }

    /// Whoever goes on asking stays, however many come.
    @Test func playersStay() {
        let places = HLSPlaces(.init(total: 6, perHost: 2))
        #expect(places.enter(1, "player", nowMs: 0, idleMs: Self.idleMs) == (nil, []))
        var nowMs: Int64 = 0
        var shed: [UInt64] = []
        var refused = 0
        for id in 2...2_000 as ClosedRange<UInt64> {
            nowMs += 100
            if nowMs % 4_000 == 0 { places.seen(1, nowMs: nowMs) }
            let answer = places.enter(id, "stranger \(id % 50)", nowMs: nowMs, idleMs: Self.idleMs)
            shed += answer.shed
            refused += answer.refusal == nil ? 0 : 1
        }
        #expect(!shed.contains(1) && !shed.isEmpty && refused > 0 && places.count == 6)
    }

    /// Longer segments are asked for less often. A player silent for half a minute counts as gone anyway.
    @Test(arguments: [(500, 6_000), (2_000, 9_000), (20_000, 25_000)] as [(Int64, Int64)])
    func silences(_ segmentMs: Int64, _ idleMs: Int64) {
        #expect(HLSPlaces.idleMs(segmentMs: segmentMs) == idleMs)
    }

    @Test func lowerLimits() {
        let places = HLSPlaces(.init(total: 6, perHost: 6))
        for id in 1...6 as ClosedRange<UInt64> { _ = places.enter(id, "a", nowMs: 0, idleMs: Self.idleMs) }
        places.set(.init(total: 2, perHost: 6))
        #expect(places.count == 6 && places.enter(7, "b", nowMs: 1, idleMs: Self.idleMs).refusal == .tooMany)
    }
}
