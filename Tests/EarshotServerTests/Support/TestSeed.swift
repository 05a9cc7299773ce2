import Foundation
import Testing

/// Where random choices of tests come from: another seed in each run, named by what fails, and `EARSHOT_SEED` to have the same again.
///
/// The folders of tests that use it link to this file.
enum TestSeed {
    static let value = ProcessInfo.processInfo.environment["EARSHOT_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...0xFFFF_FFFF)
}

/// The same numbers for the same seed and the same test, whatever runs beside it (SplitMix64).
struct TestRandom: RandomNumberGenerator {
    private var state: UInt64

    /// `part` sets tasks or arguments of one test apart.
    init(_ part: Int = 0, test: String = #function) {
        // FNV-1a: Swift's own hashes are other ones in each process.
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
    /// Of tests that use ``TestRandom``: what fails names the seed.
    static var seeded: Self {
        .compactMapIssues { issue in
            var issue = issue
            issue.comments.append("EARSHOT_SEED=\(TestSeed.value)")
            return issue
        }
    }
}
