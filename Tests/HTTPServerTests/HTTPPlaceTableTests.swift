import ServerTestSupport
import Support
import Synchronization
import Testing

@testable import HTTPServer

/// The rules by which HTTP connections get places and lose them.
@Suite struct HTTPPlaceTableTests {
    private typealias ID = HTTPPlaceTable.ID

    /// Advances the clock by two seconds and returns it.
    private static func later() -> Int64 { Self.clock.add(2_000, ordering: .relaxed).newValue }
    private static let clock = Atomic<Int64>(0)

    private static func table(_ total: Int, reserved: Int = 0, perAddress: Int = 1_000, refused: Int = 4) -> HTTPPlaceTable {
        HTTPPlaceTable(.init(total: total, reserved: reserved, perAddress: perAddress, refused: refused))
    }

    /// Enters the connection and starts its first request. Returns the refusal and the connections that were shed.
    private static func work(
        _ table: inout HTTPPlaceTable, _ id: ID, _ host: HostKey?, reserve: Bool = false
    ) -> (HTTPPlaceTable.Refusal?, [ID]) {
        let answer = table.enter(id, host, mayUseReserve: reserve, nowMs: Self.later())
        table.work(id, host, isRefused: answer.refusal != nil)
        return (answer.refusal, answer.shed)
    }

    @Test func theLongestIdleMakesRoom() {
        var table = Self.table(3)
        for id in 1...3 as ClosedRange<ID> { #expect(table.enter(id, "a\(id)", mayUseReserve: false, nowMs: Self.later()) == (nil, [])) }
        // The first has answered a request since, so it is the youngest now.
        table.work(1, "a1", isRefused: false)
        table.rest(1, nowMs: Self.later())
        #expect(table.enter(4, "b", mayUseReserve: false, nowMs: Self.later()) == (nil, [2]))
        #expect(table.enter(5, "c", mayUseReserve: false, nowMs: Self.later()) == (nil, [3]))
        #expect(table.enter(6, "d", mayUseReserve: false, nowMs: Self.later()) == (nil, [1]))
        #expect(table.served == 3 && !table.has(2) && table.has(6))
    }

    /// A connection keeps its place for a second: a request may be on its way.
    @Test func freshOnesStay() {
        var table = Self.table(2, perAddress: 2)
        #expect(table.enter(1, "a", mayUseReserve: false, nowMs: 0) == (nil, []))
        #expect(table.enter(2, "a", mayUseReserve: false, nowMs: 900) == (nil, []))
        #expect(table.enter(3, "a", mayUseReserve: false, nowMs: 999) == (.tooManyFromAddress, []))
        #expect(table.enter(4, "b", mayUseReserve: false, nowMs: 999) == (.tooMany, []))
        #expect(table.enter(5, "b", mayUseReserve: false, nowMs: 1_000) == (nil, [1]))
        #expect(table.enter(6, "b", mayUseReserve: false, nowMs: 1_899) == (.tooMany, []))
        #expect(table.enter(7, "b", mayUseReserve: false, nowMs: 1_900) == (nil, [2]))
    }

    @Test func anAddressGivesUpItsOwnFirst() {
        var table = Self.table(10, perAddress: 3)
        _ = table.enter(1, "other", mayUseReserve: false, nowMs: Self.later())
        for id in 2...4 as ClosedRange<ID> { _ = table.enter(id, "a", mayUseReserve: false, nowMs: Self.later()) }
        #expect(table.enter(5, "a", mayUseReserve: false, nowMs: Self.later()) == (nil, [2]))
        for id in 3...5 as ClosedRange<ID> { table.work(id, "a", isRefused: false) }
        #expect(table.enter(6, "a", mayUseReserve: false, nowMs: Self.later()) == (.tooManyFromAddress, []))
        #expect(table.enter(7, "b", mayUseReserve: false, nowMs: Self.later()) == (nil, []))
        // The same when all places are taken: a flooding address sheds its own connections.
        var full = Self.table(3)
        _ = full.enter(1, "other", mayUseReserve: false, nowMs: Self.later())
        _ = full.enter(2, "a", mayUseReserve: false, nowMs: Self.later())
        _ = full.enter(3, "a", mayUseReserve: false, nowMs: Self.later())
        #expect(full.enter(4, "a", mayUseReserve: false, nowMs: Self.later()) == (nil, [2]))
        #expect(full.has(1))
    }

    @Test func theLastPlacesAreForTheAPI() {
        var table = Self.table(4, reserved: 2)
        #expect(Self.work(&table, 1, "a") == (nil, []) && Self.work(&table, 2, "b") == (nil, []))
        #expect(Self.work(&table, 3, "c") == (.tooMany, []))
        #expect(Self.work(&table, 4, "ops", reserve: true) == (nil, []) && Self.work(&table, 5, "ops", reserve: true) == (nil, []))
        #expect(Self.work(&table, 6, "ops", reserve: true) == (.tooMany, []))
        table.leave(1)
        #expect(Self.work(&table, 7, "c") == (.tooMany, []), "the reserve is full, and so is what others may have")
    }

    /// Refused connections hold only a few places for their answers; the oldest gives way.
    @Test func refusedOnesAreFew() {
        var table = Self.table(1, refused: 2)
        _ = Self.work(&table, 1, "a")
        #expect(table.enter(2, "b", mayUseReserve: false, nowMs: Self.later()) == (.tooMany, []))
        #expect(table.enter(3, "b", mayUseReserve: false, nowMs: Self.later()) == (.tooMany, []))
        #expect(table.enter(4, "b", mayUseReserve: false, nowMs: Self.later()) == (.tooMany, [2]))
        // A connection that has already sent a request may finish.
        table.work(3, nil, isRefused: true)
        #expect(table.enter(5, "b", mayUseReserve: false, nowMs: Self.later()) == (.tooMany, [4]))
        #expect(table.served == 1)
    }

    /// Answered refusals make room first, then the newcomer's own address. Their limit is never exceeded.
    @Test func answeredOnesGoFirst() {
        var table = Self.table(1, refused: 3)
        func refuse(_ id: ID, _ host: HostKey) -> [ID] {
            let (refusal, shed) = table.enter(id, host, mayUseReserve: false, nowMs: Self.later())
            #expect(refusal == .tooMany)
            return shed
        }
        _ = Self.work(&table, 1, "a")
        #expect(refuse(2, "b") == [] && refuse(3, "c") == [] && refuse(4, "d") == [])
        table.work(4, "d", isRefused: true)
        table.rest(4, nowMs: Self.later())
        #expect(refuse(5, "c") == [4])
        #expect(refuse(6, "c") == [3], "its own, though another one is older")
        #expect(refuse(7, "e") == [2])
        for id in 5...7 as ClosedRange<ID> { table.work(id, nil, isRefused: true) }
        #expect(refuse(8, "e") == [7], "one that is at work, when all are")
        table.leave(5)
        #expect(refuse(9, "f") == [] && refuse(10, "f") == [9])
    }

    /// A request that was on its way when its connection was shed is still served.
    @Test func aRequestComesWithTheEnd() {
        var table = Self.table(1)
        _ = table.enter(1, "a", mayUseReserve: false, nowMs: Self.later())
        #expect(table.enter(2, "b", mayUseReserve: false, nowMs: Self.later()) == (nil, [1]))
        table.work(1, "a", isRefused: false)
        #expect(table.has(1) && table.served == 2)
        table.leave(1)
        table.leave(1)
        #expect(table.served == 1)
    }

    @Test func forwardedRequestsCountForTheirClient() {
        var table = Self.table(10, perAddress: 2)
        #expect(Self.work(&table, 1, "a") == (nil, []))
        #expect(table.enterRequest(of: "a") && !table.enterRequest(of: "a") && table.enterRequest(of: "b"))
        #expect(Self.work(&table, 2, "a") == (.tooManyFromAddress, []))
        table.release("a")
        #expect(Self.work(&table, 3, "a") == (nil, []))
    }

    /// Under random load no address exceeds its share, and no entry is left behind.
    @Test(arguments: 1...8 as ClosedRange<UInt64>) func atRandom(_ seed: UInt64) {
        var random = seed
        func next(_ bound: Int) -> Int {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(random >> 33) % bound
        }
        var table = Self.table(40, reserved: 5, perAddress: 12, refused: 3)
        var open: [ID: (host: HostKey, isWorking: Bool)] = [:]
        var refused: Set<ID> = []
        for id in 1...6_000 as ClosedRange<ID> {
            switch next(4) {
            case 0, 1:
                let host: HostKey = "a\(next(9))"
                let (refusal, shed) = table.enter(id, host, mayUseReserve: next(5) == 0, nowMs: Self.later())
                for gone in shed {
                    #expect(refused.contains(gone) || open[gone]?.isWorking == false, "a busy one was shed")
                    open[gone] = nil
                    refused.remove(gone)
                }
                if refusal == nil { open[id] = (host, false) } else { refused.insert(id) }
            case 2:
                guard let one = open.randomPick(next) else { continue }
                let entry = open[one] ?? ("", false)
                open[one]?.isWorking = !entry.isWorking
                if entry.isWorking { table.rest(one, nowMs: Self.later()) } else { table.work(one, entry.host, isRefused: false) }
            default:
                guard let one = open.randomPick(next) else { continue }
                open[one] = nil
                table.leave(one)
            }
            #expect(table.served == open.count && table.served <= 40 && refused.count <= 3)
            #expect(Dictionary(grouping: open.values, by: \.host).values.allSatisfy { $0.count <= 12 })
        }
        for one in open.keys { table.leave(one) }
        #expect(table.served == 0)
    }
}

extension Dictionary where Key == UInt64 {
    fileprivate func randomPick(_ next: (Int) -> Int) -> UInt64? {
        guard !self.isEmpty else { return nil }
        let keys = self.keys.sorted()
        return keys[next(keys.count)]
    }
}
