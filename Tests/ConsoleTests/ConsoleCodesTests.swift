import Synchronization
import Testing

@testable import Console

@Suite struct ConsoleCodesTests {
    @Test func aCodeIsGoodOnce() {
        let codes = ConsoleCodes(steadyMs: { 0 })
        let (one, other) = (codes.issue(for: 1), codes.issue(for: 2))
        #expect(codes.redeem("guess") == nil && codes.redeem("") == nil)
        #expect(codes.redeem(other) == 2)
        #expect(codes.redeem(other) == nil)
        #expect(codes.redeem(one) == 1)
    }

    @Test func aCodeLastsFiveMinutes() {
        let nowMs = Atomic<Int64>(0)
        let codes = ConsoleCodes(steadyMs: { nowMs.load(ordering: .relaxed) })
        let (one, other) = (codes.issue(for: 1), codes.issue(for: 2))
        nowMs.store(ConsoleCodes.lifetimeMs - 1, ordering: .relaxed)
        #expect(codes.redeem(one) == 1)
        nowMs.store(ConsoleCodes.lifetimeMs, ordering: .relaxed)
        #expect(codes.redeem(other) == nil)
    }

    /// A token that makes codes without end drops its own only.
    @Test func aTokenDropsItsOwnCodes() {
        let codes = ConsoleCodes(steadyMs: { 0 })
        let admin = codes.issue(for: 1)
        let flood = (0..<5 * ConsoleCodes.limit).map { _ in codes.issue(for: 2) }
        #expect(codes.redeem(admin) == 1)
        #expect(flood.compactMap { codes.redeem($0) }.count == ConsoleCodes.limitPerToken)
        #expect(codes.redeem(flood[flood.count - ConsoleCodes.limitPerToken]) == nil, "used")
    }

    /// Nor do many tokens together drop the code of one that has a single one.
    @Test func manyTokensDropTheCodesOfThoseWithMost() {
        let codes = ConsoleCodes(steadyMs: { 0 })
        let admin = codes.issue(for: 0)
        var made: [String] = []
        for token in 1...Int64(ConsoleCodes.limit / 5) {
            for _ in 0..<ConsoleCodes.limitPerToken { made.append(codes.issue(for: token)) }
        }
        #expect(codes.redeem(admin) == 0)
        #expect(made.compactMap { codes.redeem($0) }.count == ConsoleCodes.limit - 1)
    }

    @Test func oldCodesTakeNoPlace() {
        let nowMs = Atomic<Int64>(0)
        let codes = ConsoleCodes(steadyMs: { nowMs.load(ordering: .relaxed) })
        for token in 0..<Int64(ConsoleCodes.limit) { _ = codes.issue(for: token) }
        nowMs.store(ConsoleCodes.lifetimeMs, ordering: .relaxed)
        let fresh = (0..<Int64(ConsoleCodes.limit)).map { codes.issue(for: $0) }
        #expect(fresh.compactMap { codes.redeem($0) }.count == ConsoleCodes.limit)
    }
}
