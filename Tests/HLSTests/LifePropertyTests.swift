import Foundation
import HLS
import Testing

@Suite struct LifePropertyTests {
    /// For longer runs EARSHOT_HLS_LIVES sets the number of lives, and EARSHOT_SEED the first seed.
    private static func setting(_ name: String, _ short: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap(Int.init) ?? short
    }
    private static let lives = Self.setting("EARSHOT_HLS_LIVES", 48)
    private static let firstSeed = Self.setting("EARSHOT_SEED", 0)

    @Test(arguments: 0..<4) func lives(_ quarter: Int) throws {
        var seen: Set<String> = []
        for index in 0..<Self.lives / 4 {
            let seed = UInt64(Self.firstSeed + index * 4 + quarter)
            var life = try WindowLife(seed: seed)
            try life.run(events: 600)
            if let problem = life.problem {
                Issue.record("seed \(seed): \(problem)")
                return
            }
            seen.formUnion(life.seen)
        }
        #expect(
            seen.isSuperset(of: [
                "interruption", "format change", "end", "group length", "long frame", "forced cut", "target raise", "starvation", "delta",
                "discontinuity", "wait", "bad request", "kept", "gone",
            ]), "not seen in any life: some")
    }
}
