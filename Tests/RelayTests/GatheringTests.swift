import Testing

@testable import Relay

/// When a busy loop looks at its sockets less often.
@Suite struct GatheringTests {
    private static let pauseNs: UInt64 = 500_000

    private static func judged(_ gathering: inout Gathering, turns: Int, messages: Int) -> Bool {
        for _ in 0..<turns { gathering.count(messages: messages) }
        gathering.judge(overMs: 100)
        return gathering.isOn
    }

    /// Turns in a tenth of a second, messages of each, and whether it pays.
    @Test(arguments: [(0, 0, false), (199, 1, false), (200, 1, true), (2_000, 1, true), (2_000, 2, false), (50, 300, false)])
    func onlyManySmallTurns(_ turns: Int, _ messages: Int, _ pays: Bool) {
        var gathering = Gathering(pauseNs: Self.pauseNs)
        #expect(Self.judged(&gathering, turns: turns, messages: messages) == pays)
        var never = Gathering(pauseNs: 0)
        #expect(!Self.judged(&never, turns: turns, messages: messages))
    }

    /// While it sleeps there are fewer turns of more messages, which must not end it; silence does.
    @Test func goesOnWhileItIsBusy() {
        var gathering = Gathering(pauseNs: Self.pauseNs)
        #expect(Self.judged(&gathering, turns: 500, messages: 1))
        #expect(Self.judged(&gathering, turns: 150, messages: 5))
        #expect(!Self.judged(&gathering, turns: 10, messages: 5))
        #expect(!Self.judged(&gathering, turns: 150, messages: 5))
    }

    @Test func restsUntilThePauseIsOver() {
        var gathering = Gathering(pauseNs: Self.pauseNs)
        gathering.woke(nowNs: 1_000_000)
        #expect(gathering.rest(nowNs: 1_100_000) == 400_000)
        #expect(gathering.rest(nowNs: 1_500_000) == 0 && gathering.rest(nowNs: 9_000_000) == 0)
    }
}
