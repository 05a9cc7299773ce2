import Foundation
import Testing

/// The seed of all random choices in tests: another in each run, printed by failures, repeated with `EARSHOT_SEED`.
///
/// The test folders that use it link to this file.
enum TestSeed {
    static let value = ProcessInfo.processInfo.environment["EARSHOT_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...0xFFFF_FFFF)
}

/// Random numbers that depend only on the seed, the test and the part (SplitMix64).
struct TestRandom: RandomNumberGenerator {
    private var state: UInt64

    /// `part` distinguishes tasks or arguments of one test.
    init(_ part: Int = 0, test: String = #function) {
        // FNV-1a: Swift's own hashes differ between processes.
        self.state = "\(test) \(part)".utf8.reduce(TestSeed.value &+ 0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

extension Trait where Self == IssueHandlingTrait {
    /// Adds the seed to each failure of a test that uses ``TestRandom``.
    static var seeded: Self {
        .compactMapIssues { issue in
            var issue = issue
            issue.comments.append("EARSHOT_SEED=\(TestSeed.value)")
            return issue
        }
    }
}
