import Foundation
package import Testing

/// The seed of all random choices in tests: another in each run, printed by failures, repeated with `EARSHOT_SEED`.
package enum TestSeed {
    package static let value =
        ProcessInfo.processInfo.environment["EARSHOT_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...0xFFFF_FFFF)
}

/// Random numbers that depend only on the seed, the test and the part (SplitMix64).
package struct TestRandom: RandomNumberGenerator {
    private var state: UInt64

    /// `part` distinguishes tasks or arguments of one test.
    package init(_ part: Int = 0, test: String = #function) {
        // FNV-1a: Swift's own hashes differ between processes.
        self.state = "\(test) \(part)".utf8.reduce(TestSeed.value &+ 0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    package mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

/// Random numbers of a fixed seed (xorshift64*), for tests that try the same cases in each run.
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { self.state = seed | 1 }

    package mutating func next() -> UInt64 {
        self.state ^= self.state >> 12
        self.state ^= self.state << 25
        self.state ^= self.state >> 27
        return self.state &* 2_685_821_657_736_338_717
    }
}

extension Trait where Self == IssueHandlingTrait {
    /// Adds the seed to each failure of a test that uses ``TestRandom``.
    package static var seeded: Self {
        .compactMapIssues { issue in
            var issue = issue
            issue.comments.append("EARSHOT_SEED=\(TestSeed.value)")
            return issue
        }
    }
}
