import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import Listening

/// Who takes whose place.
@Suite struct PlaceTableTests {
    private typealias ID = PlaceTable.ID

    private static func table(_ total: Int, perHost: Int = 1_000, reserved: Int = 0, _ choice: PlaceTable.Choice = .busiest) -> PlaceTable {
        PlaceTable(.init(total: total, perHost: perHost, reserved: reserved), choice: choice)
    }

    /// Enters with its number as its rank. Returns the refusal and who was shed.
    @discardableResult
    private static func enter(
        _ table: inout PlaceTable, _ id: ID, _ host: HostKey, isKnown: Bool = false
    ) -> (PlaceTable.Refusal?, [ID]) {
        let (refusal, shed) = table.enter(id, host, as: .loose(rank: Int64(id)), isKnown: isKnown)
        return (refusal, shed.map(\.id))
    }

    @Test func theHostWithMostMakesRoom() {
        var table = Self.table(5)
        Self.enter(&table, 1, "one")
        for id in 2...4 as ClosedRange<ID> { Self.enter(&table, id, "three") }
        Self.enter(&table, 5, "another")
        #expect(Self.enter(&table, 6, "new") == (nil, [2]), "its oldest")
        #expect(Self.enter(&table, 7, "newer") == (nil, [3]))
        #expect(Self.enter(&table, 8, "newest") == (nil, [1]), "all have one: the oldest")
        #expect(Self.enter(&table, 9, "newest") == (nil, [8]), "with this one its own host would have most")
        #expect(table.count == 5)
    }

    /// A connection that goes on is no older than one that has just come.
    @Test func stepsCount() {
        var table = Self.table(2)
        Self.enter(&table, 1, "a")
        Self.enter(&table, 2, "b")
        table.rank(1, 3)
        #expect(Self.enter(&table, 4, "c") == (nil, [2]))
        table.rank(2, 5)
        #expect(!table.has(2), "a step gives no place back")
    }

    @Test func aHostGivesUpItsOwn() {
        var table = Self.table(10, perHost: 2)
        for id in 1...2 as ClosedRange<ID> { Self.enter(&table, id, "a") }
        let (refusal, shed) = table.enter(3, "a", as: .loose(rank: 3))
        #expect(refusal == nil && shed == [.init(id: 1, limit: .tooManyFromHost)])
        for id in 2...3 as ClosedRange<ID> { table.set(id, "a", .push) }
        #expect(Self.enter(&table, 4, "a") == (.tooManyFromHost, []))
        #expect(Self.enter(&table, 5, "b") == (nil, []))
        // A whole /64 of IPv6 is one host.
        Self.enter(&table, 6, "2001:db8::1")
        Self.enter(&table, 7, "2001:db8::2")
        #expect(Self.enter(&table, 8, "2001:db8::3") == (nil, [6]))
        #expect(Self.enter(&table, 9, "2001:db8:0:1::1") == (nil, []))
    }

    @Test func heldPlacesStay() {
        var table = Self.table(2)
        Self.enter(&table, 1, "a")
        Self.enter(&table, 2, "b")
        #expect(table.play(1, "a") == true)
        table.set(2, "b", .push)
        #expect(Self.enter(&table, 3, "c") == (.tooMany, []))
        // What has ended makes room.
        table.set(1, "a", .loose(rank: 4))
        #expect(Self.enter(&table, 5, "c") == (nil, [1]))
        table.leave(2)
        table.leave(2)
        #expect(table.count == 1 && Self.enter(&table, 6, "d") == (nil, []))
    }

    /// Plays leave places that only pushes hold: in these newcomers shed one another.
    @Test func playsLeaveTheReserve() {
        var table = Self.table(4, reserved: 2)
        for id in 1...3 as ClosedRange<ID> { Self.enter(&table, id, "a\(id)") }
        #expect(table.play(1, "a1") && table.enter(10, "http", as: .play).refusal == nil)
        #expect(!table.play(2, "a2") && table.enter(11, "http", as: .play).refusal == .tooMany)
        #expect(table.play(1, "a1") == true, "one that plays already")
        #expect(Self.enter(&table, 4, "new") == (nil, [2]))
        table.set(4, "new", .push)
        #expect(table.play(4, "new") == true, "a push may play as well")
        #expect(Self.enter(&table, 5, "new") == (nil, [3]))
        table.set(5, "new", .push)
        #expect(Self.enter(&table, 6, "more") == (.tooMany, []))
        table.leave(10)
        #expect(Self.enter(&table, 7, "more") == (nil, []) && !table.play(7, "more"), "it is a push's now")
    }

    /// A player over HTTP takes a place from a connection that does nothing.
    @Test func aPlayShedsWhoDoesNothing() {
        var table = Self.table(4, reserved: 1)
        for id in 1...4 as ClosedRange<ID> { Self.enter(&table, id, "a") }
        let (refusal, shed) = table.enter(5, "b", as: .play)
        #expect(refusal == nil && shed.map(\.id) == [1])
    }

    @Test func whoHasPushedIsShedLast() {
        var table = Self.table(3)
        for id in 1...2 as ClosedRange<ID> { Self.enter(&table, id, "cameras", isKnown: true) }
        Self.enter(&table, 3, "stranger")
        #expect(Self.enter(&table, 4, "another") == (nil, [3]), "though the cameras' host has more")
        #expect(Self.enter(&table, 5, "cameras", isKnown: true) == (nil, [4]), "and takes a stranger's place before its own")
        #expect(Self.enter(&table, 6, "stranger") == (.tooMany, []), "a stranger does not take theirs")
        #expect(Self.enter(&table, 7, "other camera", isKnown: true) == (nil, [1]))
        // Known from its first push on.
        var others = Self.table(2)
        Self.enter(&others, 1, "camera")
        Self.enter(&others, 2, "b")
        others.know("camera")
        #expect(Self.enter(&others, 3, "c") == (nil, [2]))
    }

    /// A publish that was on its way when its connection was shed still counts.
    @Test func aPublishComesWithTheEnd() {
        var table = Self.table(1)
        Self.enter(&table, 1, "a")
        #expect(Self.enter(&table, 2, "b") == (nil, [1]))
        table.set(1, "a", .push)
        #expect(table.has(1) && table.count == 2)
        #expect(Self.enter(&table, 3, "c") == (nil, [2]))
        table.leave(1)
        #expect(table.count == 1)
    }

    @Test func lowerLimits() {
        var table = Self.table(5, perHost: 5)
        for id in 1...5 as ClosedRange<ID> { Self.enter(&table, id, "a") }
        table.set(.init(total: 3, perHost: 2))
        #expect(table.count == 5)
        #expect(Self.enter(&table, 6, "b") == (nil, [1]))
        #expect(Self.enter(&table, 7, "a") == (nil, [2, 3]))
    }

    /// As HLS players have it: who has not asked for long enough goes, its own host's first.
    @Test func silenceMakesRoom() {
        var table = Self.table(4, perHost: 2, .lowest)
        _ = table.enter(1, "a", as: .loose(rank: 0))
        _ = table.enter(2, "a", as: .loose(rank: 10))
        _ = table.enter(3, "b", as: .loose(rank: 5))
        #expect(table.enter(4, "a", as: .loose(rank: 20), sheddingUpTo: -1).refusal == .tooManyFromHost)
        #expect(table.enter(4, "a", as: .loose(rank: 20), sheddingUpTo: 8) == (nil, [.init(id: 1, limit: .tooManyFromHost)]))
        _ = table.enter(5, "c", as: .loose(rank: 21))
        table.rank(3, 30)
        #expect(table.enter(6, "d", as: .loose(rank: 31), sheddingUpTo: 9).refusal == .tooMany)
        #expect(table.enter(6, "d", as: .loose(rank: 31), sheddingUpTo: 12) == (nil, [.init(id: 2, limit: .tooMany)]))
        #expect(table.enter(7, "c", as: .loose(rank: 40), sheddingUpTo: 25) == (nil, [.init(id: 5, limit: .tooMany)]), "its own first")
    }

    @Test(.seeded, arguments: 0..<8) func theHeapIsInOrder(_ part: Int) {
        var random = TestRandom(part)
        var heap = IndexedHeap<Int, Int>()
        var model: [Int: Int] = [:]
        for _ in 0..<3_000 {
            let key = Int.random(in: 0..<60, using: &random)
            if Int.random(in: 0..<3, using: &random) == 0 {
                heap.remove(key)
                model[key] = nil
            } else {
                let priority = Int.random(in: 0..<40, using: &random)
                heap.set(key, priority)
                model[key] = priority
            }
            #expect(heap.count == model.count && heap.contains(key) == (model[key] != nil))
            #expect(heap.first?.priority == model.values.min())
            if let first = heap.first { #expect(model[first.key] == first.priority) }
        }
        while let first = heap.first {
            #expect(first.priority == model.values.min())
            heap.remove(first.key)
            model[first.key] = nil
        }
        #expect(model.isEmpty)
    }
}
