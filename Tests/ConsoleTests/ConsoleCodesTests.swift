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

    @Test func codesAreBounded() {
        let codes = ConsoleCodes(steadyMs: { 0 })
        let first = codes.issue(for: 0)
        let more = (1...Int64(ConsoleCodes.limit)).map { codes.issue(for: $0) }
        #expect(codes.redeem(first) == nil, "the oldest went")
        #expect(more.map { codes.redeem($0) } == (1...Int64(ConsoleCodes.limit)).map { $0 })
    }
}
