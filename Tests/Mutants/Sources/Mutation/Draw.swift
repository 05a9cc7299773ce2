/// SplitMix64 (Steele, Lea, Flood 2014): a seed gives the same numbers on every machine.
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { self.state = seed }

    package mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

extension Mutation {
    /// Draws up to `count` mutants that do not overlap, numbered from 1. The same seed and sources give the same draw.
    package static func draw(_ count: Int, from mutants: [Mutant], seed: UInt64) -> [Mutant] {
        var generator = SeededGenerator(seed: seed)
        var drawn: [Mutant] = []
        for var mutant in mutants.shuffled(using: &generator) {
            guard drawn.count < count else { break }
            guard !drawn.contains(where: { $0.file == mutant.file && $0.range.overlaps(mutant.range) }) else { continue }
            mutant.id = drawn.count + 1
            drawn.append(mutant)
        }
        return drawn
    }
}
